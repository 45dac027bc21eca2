// Perfect shuffles of vectors of any width, whose `low` and `high` interleave two of them in each
// 16 bytes alone. The file that includes this one defines them, `Vector`, HEADRACE_TARGET and
// HEADRACE_INLINE before.
namespace headrace::plugins {
namespace {

constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }

// Rows become columns by log2(Count) of them: vector i of the rows comes from `take`, column i goes
// to `put`. Half of the vectors end before the other half begins, so that few of them leave the
// registers.
template <int Item, int Count, int First = 0, typename Take, typename Put>
HEADRACE_INLINE void transpose(Take take, Put put) {
    if constexpr (Count == 1) {
        put(First, take(0));
    } else {
        constexpr int kPairs = Count / 2;
        Vector lower[kPairs], upper[kPairs];
        for (int i = 0; i < kPairs; ++i) {
            const Vector a = take(i), b = take(i + kPairs);
            lower[i] = low<Item>(a, b);
            upper[i] = high<Item>(a, b);
        }
        transpose<Item, kPairs, First>([&](int i) HEADRACE_HERE { return lower[i]; }, put);
        transpose<Item, kPairs, First + kPairs>([&](int i) HEADRACE_HERE { return upper[i]; }, put);
    }
}

}  // namespace
}  // namespace headrace::plugins
