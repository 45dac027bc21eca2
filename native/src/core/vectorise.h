// Loops of comparisons and choices that the compiler turns into vector instructions.
//
// Two things stand in its way, and both are mended here:
// - A comparison with NaN may trap, by the standard; as long as that counts, compilers keep
// branches
//   where masks would do. Nobody looks at the trap, and no value depends on it.
// - The core runs on any x86-64, where vectors hold 4 floats. A HEADRACE_WIDE function is compiled
// twice,
//   and the loader takes the one with 8 where the processor has AVX2. Both give the same bits:
//   neither contracts a product and a sum.
//
// Include it after all other headers: the pragma holds for everything below it in the file, and
// functions compiled under it are not inlined into those that are not, nor the other way round.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define HEADRACE_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define HEADRACE_WIDE
#endif
