// See repack_avx2.h. A vector holds as many bytes of two runs of positions, one a half, so that all
// shuffles stay in their halves.
#include "plugins/repack_avx2.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#define HEADRACE_TARGET __attribute__((target("avx2")))
#define HEADRACE_INLINE __attribute__((target("avx2"), always_inline)) inline

namespace headrace::plugins {
namespace {

using Vector = __m256i;
constexpr int kHalf = 16;  // bytes
constexpr int kLine = 64;

constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }

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

// All log2(Count) of them at once: vector i of the rows comes from `take`, column i goes to `put`.
// Half of the vectors end before the other half begins, so that few of them leave the registers.
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
        transpose<Item, kPairs, First>([&](int i) HEADRACE_TARGET { return lower[i]; }, put);
        transpose<Item, kPairs, First + kPairs>([&](int i) HEADRACE_TARGET { return upper[i]; },
                                                put);
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

// Positions from the first on that are done of `present` rows, and of as many behind them in each
// of `Groups`. The last ones are moved twice where their number is odd.
template <int Item, bool There, int Rows, Way Kind, bool Full, int Groups = 1, bool Far = false>
HEADRACE_TARGET std::size_t along(const Strips &s, std::size_t first, int present) {
    constexpr std::size_t kStep = (Kind == Way::kTwice && There ? kHalf : 2 * kHalf) / Item;
    const std::size_t spare = Kind == Way::kThree ? (4 + 3 * Item - 1) / (3 * Item) : 0;
    if (s.positions < kStep + spare) return 0;
    const std::size_t column = s.width * Item, row = s.row, end = s.positions - spare;
    char *rows = s.rows + first * row, *columns = s.columns + first * Item;
    const std::size_t rows_ahead = s.rows_ahead, columns_ahead = s.columns_ahead;
    const auto step = [=](std::size_t at) HEADRACE_TARGET {
        if constexpr (Far) {
            if (rows_ahead && at * Item % kLine < kStep * Item)
                for (int r = 0; r < Rows * Groups; ++r)
                    __builtin_prefetch(rows + static_cast<std::size_t>(r) * row + at * Item +
                                       rows_ahead);
            for (std::size_t k = 0; k < kStep; ++k)
                __builtin_prefetch(columns + (at + k) * column + columns_ahead);
        }
        for (int g = 0; g < Groups; ++g)
            strip<Item, There, Rows, Kind, Full>(
                rows + static_cast<std::size_t>(g * Rows) * row + at * Item, row, present,
                columns + g * Rows * Item + at * column, column);
    };
    std::size_t at = 0;
    for (; at + kStep <= end; at += kStep) step(at);
    if (Kind == Way::kThree) return at;
    if (at < end) step(end - kStep);
    return s.positions;
}

// So many groups that they fill `Bytes` of a column.
template <int Item, bool There, int Rows, Way Kind, int Bytes, bool Far>
std::size_t groups(const Strips &s) {
    constexpr int kTogether = Kind == Way::kTwice ? std::max(1, Bytes / (Rows * Item)) : 1;
    std::size_t done = s.positions, c = 0;
    if constexpr (kTogether > 1 || Far)
        for (; c + kTogether * Rows <= s.channels; c += kTogether * Rows)
            done = along<Item, There, Rows, Kind, true, kTogether, Far>(s, c, Rows);
    for (; c < s.channels; c += Rows) {
        // The last rows are moved twice, too.
        const std::size_t first = std::min(c, s.width - Rows);
        const int present = static_cast<int>(std::min<std::size_t>(Rows, s.channels - first));
        done = present == Rows ? along<Item, There, Rows, Kind, true>(s, first, present)
                               : along<Item, There, Rows, Kind, false>(s, first, present);
    }
    return done;
}

template <int Item, bool There, int Rows, Way Kind>
std::size_t strips(const Strips &s) {
    // Of smaller elements a whole line's rows would be more than a core follows in memory.
    constexpr int kFarBytes = Item < 4 ? kLine / 2 : kLine;
    if (Kind != Way::kThree && Kind != Way::kNarrow && s.columns_ahead)
        return groups<Item, There, Rows, Kind, kFarBytes, true>(s);
    return groups<Item, There, Rows, Kind, kLine, false>(s);
}

template <int Item, bool There>
std::size_t by_width(const Strips &s) {
    constexpr int kLanes = kHalf / Item;
    if (s.width >= 2 * kLanes) return strips<Item, There, 2 * kLanes, Way::kTwice>(s);
    if (There && s.width == kLanes) return strips<Item, There, kLanes, Way::kSquare>(s);
    if (s.width >= kLanes) return strips<Item, There, kLanes, Way::kWide>(s);
    if (s.width == 2) return strips<Item, There, 2, Way::kNarrow>(s);
    if constexpr (kLanes > 2) {
        if (s.width == 3 && s.channels == 3) return strips<Item, There, 3, Way::kThree>(s);
    }
    if constexpr (kLanes > 4) {
        if (s.width == 4) return strips<Item, There, 4, Way::kNarrow>(s);
    }
    if constexpr (kLanes > 8) {
        if (s.width == 8) return strips<Item, There, 8, Way::kNarrow>(s);
    }
    return 0;
}

template <bool There>
std::size_t by_item(const Strips &s, std::size_t item) {
    static const bool usable = __builtin_cpu_supports("avx2");
    if (!usable) return 0;
    switch (item) {
    case 1: return by_width<1, There>(s);
    case 2: return by_width<2, There>(s);
    case 4: return by_width<4, There>(s);
    default: return by_width<8, There>(s);
    }
}

}  // namespace

std::size_t weave_strips(const Strips &s, std::size_t item) { return by_item<true>(s, item); }
std::size_t unweave_strips(const Strips &s, std::size_t item) { return by_item<false>(s, item); }

}  // namespace headrace::plugins

#else

namespace headrace::plugins {
std::size_t weave_strips(const Strips &, std::size_t) { return 0; }
std::size_t unweave_strips(const Strips &, std::size_t) { return 0; }
}  // namespace headrace::plugins

#endif
