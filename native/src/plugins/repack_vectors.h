// Vectors of AVX2 that become columns, and back. A vector holds as many bytes of two runs of
// positions, one a half, so that all shuffles stay in their halves. For repack_avx2.cpp alone.
#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#define HEADRACE_TARGET __attribute__((target("avx2")))
#define HEADRACE_HERE __attribute__((target("avx2"), always_inline))
#define HEADRACE_INLINE HEADRACE_HERE inline

namespace headrace::plugins {
namespace {

using Vector = __m256i;
constexpr int kHalf = 16;  // bytes
constexpr int kLine = 64;  // of a cache

template <int Item>
HEADRACE_INLINE Vector low(Vector a, Vector b) {
    if constexpr (Item == 1) return _mm256_unpacklo_epi8(a, b);
    if constexpr (Item == 2) return _mm256_unpacklo_epi16(a, b);
    if constexpr (Item == 4) return _mm256_unpacklo_epi32(a, b);
    return _mm256_unpacklo_epi64(a, b);
}
template <int Item>
HEADRACE_INLINE Vector high(Vector a, Vector b) {
    if constexpr (Item == 1) return _mm256_unpackhi_epi8(a, b);
    if constexpr (Item == 2) return _mm256_unpackhi_epi16(a, b);
    if constexpr (Item == 4) return _mm256_unpackhi_epi32(a, b);
    return _mm256_unpackhi_epi64(a, b);
}

}  // namespace
}  // namespace headrace::plugins

#include "plugins/repack_shuffles.h"

namespace headrace::plugins {
namespace {

// `Stages` perfect shuffles over all elements of `Count` vectors, in each half alone: log2(Count)
// of them interleave `Count` rows, log2(elements of a half) bring the rows back.
template <int Item, int Count, int Stages>
HEADRACE_INLINE void shuffle(Vector (&v)[Count]) {
    for (int stage = 0; stage < Stages; ++stage) {
        Vector out[Count];
        for (int i = 0; i < Count / 2; ++i) {
            out[2 * i] = low<Item>(v[i], v[i + Count / 2]);
            out[2 * i + 1] = high<Item>(v[i], v[i + Count / 2]);
        }
        for (int i = 0; i < Count; ++i) v[i] = out[i];
    }
}

HEADRACE_INLINE Vector load(const char *at) {
    return _mm256_loadu_si256(reinterpret_cast<const Vector *>(at));
}
HEADRACE_INLINE __m128i half(const char *at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(at));
}
HEADRACE_INLINE Vector load(const char *first, const char *second) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(half(first)), half(second), 1);
}
HEADRACE_INLINE void store(char *at, Vector v) {
    _mm256_storeu_si256(reinterpret_cast<Vector *>(at), v);
}
HEADRACE_INLINE void store(char *first, char *second, Vector v) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(first), _mm256_castsi256_si128(v));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(second), _mm256_extracti128_si256(v, 1));
}
// The lower halves of all vectors, then the upper ones.
template <int Count>
HEADRACE_INLINE void store_halves(char *at, const Vector (&v)[Count]) {
    for (int i = 0; i < Count; i += 2) {
        store(at + i * kHalf, _mm256_permute2x128_si256(v[i], v[i + 1], 0x20));
        store(at + (Count + i) * kHalf, _mm256_permute2x128_si256(v[i], v[i + 1], 0x31));
    }
}

// The bytes of three channels of `Item` bytes without the fourth's, and with it.
template <int Item, bool Fourth>
HEADRACE_INLINE Vector three() {
    alignas(32) std::int8_t at[32] = {};
    for (int i = 0; i < 32; ++i) {
        const int byte = i % kHalf, group = Fourth ? byte / (4 * Item) : byte / (3 * Item);
        const int in = Fourth ? byte % (4 * Item) : byte % (3 * Item);
        const int from = group * (Fourth ? 3 : 4) * Item + in;
        at[i] = static_cast<std::int8_t>(in < 3 * Item && from < kHalf ? from : -1);
    }
    return _mm256_load_si256(reinterpret_cast<const Vector *>(at));
}

HEADRACE_INLINE Vector row_or_zero(const char *rows, std::size_t row, int i, int present) {
    return i < present ? load(rows + static_cast<std::size_t>(i) * row) : _mm256_setzero_si256();
}

// A half holds one column of so many channels as it has elements.
template <int Item, bool Dense>
HEADRACE_INLINE void weave_wide(const char *rows, std::size_t row, int present, char *columns,
                                std::size_t column) {
    constexpr int kLanes = kHalf / Item;
    const auto take = [=](int i) HEADRACE_TARGET { return row_or_zero(rows, row, i, present); };
    if constexpr (Dense) {
        Vector v[kLanes];
        transpose<Item, kLanes>(take, [&](int i, Vector out) HEADRACE_TARGET { v[i] = out; });
        return store_halves<kLanes>(columns, v);
    }
    transpose<Item, kLanes>(take, [=](int i, Vector out) HEADRACE_TARGET {
        store(columns + static_cast<std::size_t>(i) * column,
              columns + static_cast<std::size_t>(i + kLanes) * column, out);
    });
}
// A vector holds one column of twice as many channels; of half as many positions.
template <int Item>
HEADRACE_INLINE void weave_double(const char *rows, std::size_t row, int present, char *columns,
                                  std::size_t column) {
    constexpr int kLanes = kHalf / Item;
    const auto take = [=](int i) HEADRACE_TARGET {
        const char *first = rows + static_cast<std::size_t>(i) * row,
                   *second = first + kLanes * row;
        if (i + kLanes < present) return load(first, second);
        return i < present ? _mm256_zextsi128_si256(half(first)) : _mm256_setzero_si256();
    };
    transpose<Item, kLanes>(take, [=](int i, Vector out) HEADRACE_TARGET {
        store(columns + static_cast<std::size_t>(i) * column, out);
    });
}
template <int Item>
HEADRACE_INLINE void unweave_double(const char *columns, std::size_t column, char *rows,
                                    std::size_t row, int present) {
    constexpr int kLanes = kHalf / Item;
    Vector v[kLanes];
    const auto take = [=](int first) HEADRACE_TARGET {
        return [=](int i) HEADRACE_TARGET {
            return load(columns + static_cast<std::size_t>(first + i) * column);
        };
    };
    transpose<Item, kLanes>(take(0), [&](int i, Vector out) HEADRACE_TARGET { v[i] = out; });
    transpose<Item, kLanes>(take(kLanes), [&](int i, Vector out) HEADRACE_TARGET {
        char *at = rows + static_cast<std::size_t>(i) * row;
        if (i < present) store(at, _mm256_permute2x128_si256(v[i], out, 0x20));
        if (i + kLanes < present)
            store(at + kLanes * row, _mm256_permute2x128_si256(v[i], out, 0x31));
    });
}
template <int Item>
HEADRACE_INLINE void unweave_wide(const char *columns, std::size_t column, char *rows,
                                  std::size_t row, int present) {
    constexpr int kLanes = kHalf / Item;
    const auto take = [=](int i) HEADRACE_TARGET {
        return load(columns + static_cast<std::size_t>(i) * column,
                    columns + static_cast<std::size_t>(i + kLanes) * column);
    };
    transpose<Item, kLanes>(take, [=](int i, Vector out) HEADRACE_TARGET {
        if (i < present) store(rows + static_cast<std::size_t>(i) * row, out);
    });
}
// A half holds several columns of `Rows` channels.
template <int Item, int Rows>
HEADRACE_INLINE void weave_narrow(const char *rows, std::size_t row, int present, char *columns) {
    Vector v[Rows];
    for (int i = 0; i < Rows; ++i) v[i] = row_or_zero(rows, row, i, present);
    shuffle<Item, Rows, log2_of(Rows)>(v);
    store_halves(columns, v);
}
template <int Item, int Rows>
HEADRACE_INLINE void unweave_narrow(const char *columns, char *rows, std::size_t row, int present) {
    Vector v[Rows];
    for (int i = 0; i < Rows; ++i) v[i] = load(columns + i * kHalf, columns + (Rows + i) * kHalf);
    shuffle<Item, Rows, log2_of(kHalf / Item)>(v);
    for (int i = 0; i < Rows; ++i)
        if (i < present) store(rows + static_cast<std::size_t>(i) * row, v[i]);
}
// Three channels without a fourth: a half of 12 bytes after the other, so that 4 bytes behind the
// last one are written, or read.
template <int Item>
HEADRACE_INLINE void weave_three(const char *rows, std::size_t row, char *columns) {
    const Vector without = three<Item, false>();
    Vector v[4] = {load(rows), load(rows + row), load(rows + 2 * row), _mm256_setzero_si256()};
    shuffle<Item, 4, 2>(v);
    for (int i = 0; i < 4; ++i) v[i] = _mm256_shuffle_epi8(v[i], without);
    for (int i = 0; i < 4; ++i)
        _mm_storeu_si128(reinterpret_cast<__m128i *>(columns + i * 12),
                         _mm256_castsi256_si128(v[i]));
    for (int i = 0; i < 4; ++i)
        _mm_storeu_si128(reinterpret_cast<__m128i *>(columns + 48 + i * 12),
                         _mm256_extracti128_si256(v[i], 1));
}
template <int Item>
HEADRACE_INLINE void unweave_three(const char *columns, char *rows, std::size_t row) {
    const Vector with = three<Item, true>();
    Vector v[4];
    for (int i = 0; i < 4; ++i)
        v[i] = _mm256_shuffle_epi8(load(columns + i * 12, columns + 48 + i * 12), with);
    shuffle<Item, 4, log2_of(kHalf / Item)>(v);
    for (int i = 0; i < 3; ++i) store(rows + static_cast<std::size_t>(i) * row, v[i]);
}

// Copies of whole lines, past the caches if `Stream`.
template <bool Stream>
HEADRACE_INLINE void copy_lines(char *to, const char *from, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += kLine) {
        const Vector a = load(from + i), b = load(from + i + kLine / 2);
        if constexpr (Stream) {
            _mm256_stream_si256(reinterpret_cast<Vector *>(to + i), a);
            _mm256_stream_si256(reinterpret_cast<Vector *>(to + i + kLine / 2), b);
        } else {
            store(to + i, a);
            store(to + i + kLine / 2, b);
        }
    }
}

enum class Way { kThree, kNarrow, kSquare, kWide, kTwice };

// What one strip does: positions of a vector of a row, of half of one if `twice` weaves.
template <int Item, bool There, int Rows, Way Kind, bool Full>
HEADRACE_INLINE void strip(char *rows, std::size_t row, int present, char *columns,
                           std::size_t column) {
    if (Full) present = Rows;
    if constexpr (Kind == Way::kThree && There)
        weave_three<Item>(rows, row, columns);
    else if constexpr (Kind == Way::kThree)
        unweave_three<Item>(columns, rows, row);
    else if constexpr (Kind == Way::kNarrow && There)
        weave_narrow<Item, Rows>(rows, row, present, columns);
    else if constexpr (Kind == Way::kNarrow)
        unweave_narrow<Item, Rows>(columns, rows, row, present);
    else if constexpr (Kind == Way::kTwice && There)
        weave_double<Item>(rows, row, present, columns, column);
    else if constexpr (Kind == Way::kTwice)
        unweave_double<Item>(columns, column, rows, row, present);
    else if constexpr (There)
        weave_wide<Item, Kind == Way::kSquare>(rows, row, present, columns, column);
    else
        unweave_wide<Item>(columns, column, rows, row, present);
}

}  // namespace
}  // namespace headrace::plugins
