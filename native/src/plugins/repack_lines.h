// Vectors of AVX-512 that become columns, and back. A vector holds four lanes of 16 bytes from four
// places, so that few shuffles are left, and is one line of what is written: neither unaligned
// arrays nor colliding rows cost much. For repack_avx512.cpp alone.
#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#define HEADRACE_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,prfchw")))
#define HEADRACE_HERE HEADRACE_TARGET __attribute__((always_inline))
#define HEADRACE_INLINE HEADRACE_HERE inline

namespace headrace::plugins {
namespace {

using Vector = __m512i;
constexpr std::uint64_t kAll = ~std::uint64_t{0};  // GCC 12 warns of the intrinsics without a mask
constexpr int kLine = 64, kLane = 16;              // bytes

template <int Item>
HEADRACE_INLINE Vector low(Vector a, Vector b) {
    if constexpr (Item == 1) return _mm512_maskz_unpacklo_epi8(kAll, a, b);
    if constexpr (Item == 2) return _mm512_maskz_unpacklo_epi16(static_cast<__mmask32>(kAll), a, b);
    if constexpr (Item == 4) return _mm512_maskz_unpacklo_epi32(static_cast<__mmask16>(kAll), a, b);
    return _mm512_maskz_unpacklo_epi64(static_cast<__mmask8>(kAll), a, b);
}
template <int Item>
HEADRACE_INLINE Vector high(Vector a, Vector b) {
    if constexpr (Item == 1) return _mm512_maskz_unpackhi_epi8(kAll, a, b);
    if constexpr (Item == 2) return _mm512_maskz_unpackhi_epi16(static_cast<__mmask32>(kAll), a, b);
    if constexpr (Item == 4) return _mm512_maskz_unpackhi_epi32(static_cast<__mmask16>(kAll), a, b);
    return _mm512_maskz_unpackhi_epi64(static_cast<__mmask8>(kAll), a, b);
}

}  // namespace
}  // namespace headrace::plugins

#include "plugins/repack_shuffles.h"

namespace headrace::plugins {
namespace {

// Indices of units of `Unit` bytes.
template <int Unit>
struct Order {
    static constexpr int kUnits = kLine / Unit;
    alignas(kLine) std::uint8_t bytes[kLine] = {};
    std::uint64_t from_third = 0;  // units of the third of three vectors

    constexpr void set(int to, int from) { bytes[to * Unit] = static_cast<std::uint8_t>(from); }
};

// (pieces, rest) become (rest, pieces).
template <int Unit, int Pieces>
constexpr Order<Unit> turned() {
    Order<Unit> order;
    constexpr int kN = Order<Unit>::kUnits;
    for (int i = 0; i < kN; ++i) order.set(i, i % Pieces * (kN / Pieces) + i / Pieces);
    return order;
}

// Vector `k` of what three become.
template <int Unit, bool There>
constexpr Order<Unit> of_three(int k) {
    Order<Unit> order;
    constexpr int kN = Order<Unit>::kUnits;
    for (int i = 0; i < kN; ++i) {
        const int at = There ? (k * kN + i) % 3 * kN + (k * kN + i) / 3 : 3 * i + k;
        order.set(i, at % (2 * kN));
        if (at >= 2 * kN) order.from_third |= std::uint64_t{1} << i;
    }
    return order;
}

// Two vectors interleaved in the lower (0) or upper (1) halves of their lanes; of each lane the
// first eight bytes, then the second ones.
constexpr Order<4> of_halves(int upper) {
    Order<4> order;
    for (int i = 0; i < 16; ++i) order.set(i, i % 2 * 16 + i / 2 % 4 * 4 + upper * 2 + i / 8);
    return order;
}

template <int Unit>
HEADRACE_INLINE Vector indices(const Order<Unit> &order) {
    return _mm512_load_si512(order.bytes);
}
template <int Unit>
HEADRACE_INLINE Vector moved(const Order<Unit> &order, Vector v) {
    const Vector at = indices(order);
    if constexpr (Unit == 1)
        return _mm512_maskz_permutexvar_epi8(static_cast<__mmask64>(kAll), at, v);
    if constexpr (Unit == 2)
        return _mm512_maskz_permutexvar_epi16(static_cast<__mmask32>(kAll), at, v);
    if constexpr (Unit == 4)
        return _mm512_maskz_permutexvar_epi32(static_cast<__mmask16>(kAll), at, v);
    return _mm512_maskz_permutexvar_epi64(static_cast<__mmask8>(kAll), at, v);
}
template <int Unit>
HEADRACE_INLINE Vector moved(const Order<Unit> &order, Vector a, Vector b, Vector c) {
    const Vector at = indices(order);
    if constexpr (Unit == 1)
        return _mm512_mask_permutexvar_epi8(_mm512_permutex2var_epi8(a, at, b), order.from_third,
                                            at, c);
    if constexpr (Unit == 2)
        return _mm512_mask_permutexvar_epi16(_mm512_permutex2var_epi16(a, at, b),
                                             static_cast<__mmask32>(order.from_third), at, c);
    return _mm512_mask_permutexvar_epi32(_mm512_permutex2var_epi32(a, at, b),
                                         static_cast<__mmask16>(order.from_third), at, c);
}

HEADRACE_INLINE Vector load(const char *at) { return _mm512_loadu_si512(at); }
HEADRACE_INLINE __m128i lane(const char *at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(at));
}
HEADRACE_INLINE Vector load(const char *a, const char *b, const char *c, const char *d) {
    Vector v = _mm512_castsi128_si512(lane(a));
    v = _mm512_maskz_inserti32x4(static_cast<__mmask16>(kAll), v, lane(b), 1);
    v = _mm512_maskz_inserti32x4(static_cast<__mmask16>(kAll), v, lane(c), 2);
    return _mm512_maskz_inserti32x4(static_cast<__mmask16>(kAll), v, lane(d), 3);
}
HEADRACE_INLINE Vector load(const char *a, const char *b) {
    const Vector v =
        _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(a)));
    return _mm512_maskz_inserti64x4(static_cast<__mmask8>(kAll), v,
                                    _mm256_loadu_si256(reinterpret_cast<const __m256i *>(b)), 1);
}

// Hides where a value comes from: the addresses of so many rows, kept for the next step, would fill
// the registers and more.
template <typename Value>
HEADRACE_INLINE Value fresh(Value value) {
    __asm__("" : "+r"(value));
    return value;
}

alignas(kLine) constexpr char kZeros[kLine] = {};

// Rows become columns but for the last shuffle, of each two vectors that `end` gets: units of
// `Unit` bytes are interleaved, then pairs of them.
template <int Unit, int Sets, int Each = 1, int Count, typename End>
HEADRACE_INLINE void join(const Vector (&v)[Count], End end) {
    if constexpr (Sets == 2) {
        for (int k = 0; k < Each; ++k) end(2 * k, v[k], v[Each + k]);
    } else {
        Vector out[Count];
        for (int m = 0; m < Sets; m += 2)
            for (int k = 0; k < Each; ++k) {
                const Vector a = v[m * Each + k], b = v[(m + 1) * Each + k];
                out[m * Each + 2 * k] = low<Unit>(a, b);
                out[m * Each + 2 * k + 1] = high<Unit>(a, b);
            }
        join<2 * Unit, Sets / 2, 2 * Each>(out, end);
    }
}

// A place to write to, and how far behind it a line is asked for: stores wait for their lines.
template <bool Past>
HEADRACE_INLINE void put(char *at, std::size_t ahead, Vector v) {
    if constexpr (Past) {
        _mm512_stream_si512(reinterpret_cast<Vector *>(at), v);
    } else {
        __builtin_prefetch(at + ahead, 1);
        _mm512_storeu_si512(at, v);
    }
}

// A piece of each of `Rows` rows becomes whole lines: of one column each, or of several where a
// column is shorter.
template <int Item, int Rows, bool Full, bool Past>
HEADRACE_INLINE void weave(const char *rows, std::size_t row, int present, char *columns,
                           std::size_t column, std::size_t ahead) {
    constexpr int kTogether = kLine / (Rows * Item);  // columns of a line
    if (Rows > 4)
        rows = fresh(rows), row = fresh(row), columns = fresh(columns), column = fresh(column);
    const auto at = [=](int i) HEADRACE_HERE {
        return Full || i < present ? rows + static_cast<std::size_t>(i) * row : kZeros;
    };
    if constexpr (Rows == 3) {
        const Vector a = load(at(0)), b = load(at(1)), c = load(at(2));
        static constexpr Order<Item> kOrders[] = {of_three<Item, true>(0), of_three<Item, true>(1),
                                                  of_three<Item, true>(2)};
        for (int k = 0; k < 3; ++k)
            put<Past>(columns + k * kLine, ahead, moved(kOrders[k], a, b, c));
    } else if constexpr (Rows == 2) {
        static constexpr auto kOrder = turned<Item, 2>();
        put<Past>(columns, ahead, moved(kOrder, load(at(0), at(1))));
    } else {
        constexpr int kVectors = Rows / 4;
        constexpr bool kPairs = kTogether == 2 && kVectors > 1;
        const auto take = [=](int i) HEADRACE_HERE {
            return load(at(i), at(i + kVectors), at(i + 2 * kVectors), at(i + 3 * kVectors));
        };
        const std::size_t line = kTogether > 1 ? kLine : column;
        const auto to = [=](int i, Vector v) HEADRACE_HERE {
            if constexpr (kTogether > 1 && !kPairs) {
                static constexpr auto kOrder = turned<kLane / kTogether, 4>();
                v = moved(kOrder, v);
            }
            put<Past>(columns + static_cast<std::size_t>(i) * line, ahead, v);
        };
        if constexpr (kPairs) {  // the last shuffle and the order of both columns at once
            static constexpr Order<4> kOrders[] = {of_halves(0), of_halves(1)};
            Vector v[kVectors];
            for (int i = 0; i < kVectors; ++i) v[i] = take(i);
            join<Item, kVectors>(v, [=](int i, Vector a, Vector b) HEADRACE_HERE {
                to(i, _mm512_permutex2var_epi32(a, indices(kOrders[0]), b));
                to(i + 1, _mm512_permutex2var_epi32(a, indices(kOrders[1]), b));
            });
        } else {
            transpose<Item, kVectors>(take, to);
        }
    }
}

// The way back: a line of each of `Rows` rows.
template <int Item, int Rows, bool Full, bool Past>
HEADRACE_INLINE void unweave(const char *columns, std::size_t column, char *rows, std::size_t row,
                             int present, std::size_t ahead) {
    if (Rows > 4)
        rows = fresh(rows), row = fresh(row), columns = fresh(columns), column = fresh(column);
    const auto to = [=](int i, Vector v) HEADRACE_HERE {
        if (Full || i < present) put<Past>(rows + static_cast<std::size_t>(i) * row, ahead, v);
    };
    if constexpr (Rows == 3) {
        const Vector a = load(columns), b = load(columns + kLine), c = load(columns + 2 * kLine);
        static constexpr Order<Item> kOrders[] = {
            of_three<Item, false>(0), of_three<Item, false>(1), of_three<Item, false>(2)};
        for (int k = 0; k < 3; ++k) to(k, moved(kOrders[k], a, b, c));
    } else if constexpr (Rows * Item == kLane) {
        const auto take = [=](int i) HEADRACE_HERE {
            const char *const at = columns + static_cast<std::size_t>(i) * column;
            return load(at, at + Rows * column, at + 2 * Rows * column, at + 3 * Rows * column);
        };
        transpose<Item, Rows>(take, to);
    } else {
        static constexpr auto kOrder = turned<Item, kLine / (Rows * Item)>();
        Vector v[Rows];
        for (int i = 0; i < Rows; ++i) v[i] = moved(kOrder, load(columns + i * kLine));
        if constexpr (Rows == 2) {
            to(0, _mm512_maskz_shuffle_i64x2(static_cast<__mmask8>(kAll), v[0], v[1], 0x44));
            to(1, _mm512_maskz_shuffle_i64x2(static_cast<__mmask8>(kAll), v[0], v[1], 0xEE));
        } else {
            for (int i = 0; i < 4; i += 2) {
                const Vector even =
                    _mm512_maskz_shuffle_i64x2(static_cast<__mmask8>(kAll), v[i], v[i + 1], 0x88);
                v[i + 1] =
                    _mm512_maskz_shuffle_i64x2(static_cast<__mmask8>(kAll), v[i], v[i + 1], 0xDD);
                v[i] = even;
            }
            for (int i = 0; i < 2; ++i) {
                to(i,
                   _mm512_maskz_shuffle_i64x2(static_cast<__mmask8>(kAll), v[i], v[i + 2], 0x88));
                to(i + 2,
                   _mm512_maskz_shuffle_i64x2(static_cast<__mmask8>(kAll), v[i], v[i + 2], 0xDD));
            }
        }
    }
}

}  // namespace
}  // namespace headrace::plugins
