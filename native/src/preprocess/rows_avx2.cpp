// Row kernels for x86 processors with AVX2, chosen at run time.
#include "preprocess/rows.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <type_traits>

#define HEADRACE_TARGET __attribute__((target("avx2")))
#include "preprocess/rows_impl.h"

namespace headrace::preprocess {
namespace {

HEADRACE_TARGET inline __m128i load(const void *from) {
    return _mm_loadu_si128(static_cast<const __m128i *>(from));
}

// Block after block of a `Shuffle`. The usual numbers of parts are constants, 1 and 2: a loop over
// so few costs more than they do. 0 is any number.
template <int Parts>
struct Blocks {
    Blocks(const Shuffle &shuffle, int first = 0)
        : any(shuffle.parts),
          base(shuffle.base.data() + first),
          mask(shuffle.masks.data() + 16 * ptrdiff_t(first) * any) {}

    HEADRACE_TARGET __m128i of(const uint8_t *row) const {
        const uint8_t *from = row + *base;
        __m128i bytes = _mm_shuffle_epi8(load(from), load(mask));
        for (int i = 1; i < (Parts ? Parts : any); ++i)
            bytes = _mm_or_si128(bytes, _mm_shuffle_epi8(load(from + 16 * i), load(mask + 16 * i)));
        return bytes;
    }

    HEADRACE_TARGET void next() {
        ++base;
        mask += 16 * (Parts ? Parts : any);
    }

    const int any;
    const int32_t *base;
    const uint8_t *mask;
};

// Call `blocks` with the number of parts as a constant where there is one, `plain` where it is 0.
template <class Plain, class Of>
void by_parts(int parts, Plain plain, Of blocks) {
    switch (parts) {
    case 0: return plain();
    case 1: return blocks(std::integral_constant<int, 1>{});
    case 2: return blocks(std::integral_constant<int, 2>{});
    default: blocks(std::integral_constant<int, 0>{});
    }
}

template <int N, int Parts>
HEADRACE_TARGET void nearest_blocks(const uint8_t *row, const Columns &columns,
                                    uint8_t *const *to) {
    const int count = columns.count;
    uint8_t *first = to[0], *second = to[N - 1];
    Blocks<Parts> blocks(columns.shuffle);
    for (int x = 0; x < count; x += 16 / N, blocks.next()) {
        const __m128i bytes = blocks.of(row);
        if constexpr (N == 1) {
            _mm_storeu_si128(reinterpret_cast<__m128i *>(first + x), bytes);
        } else {
            _mm_storel_epi64(reinterpret_cast<__m128i *>(first + x), bytes);
            _mm_storeh_pd(reinterpret_cast<double *>(second + x), _mm_castsi128_pd(bytes));
        }
    }
}

template <int N>
void nearest_shuffled(const uint8_t *row, const Columns &columns, uint8_t *const *to) {
    by_parts(
        columns.shuffle.parts, [&] { nearest_plain<N>(row, columns, to); },
        [&](auto parts) { nearest_blocks<N, decltype(parts)::value>(row, columns, to); });
}

HEADRACE_TARGET inline int word32(const uint8_t *from) {
    int word;
    std::memcpy(&word, from, sizeof word);
    return word;
}

HEADRACE_TARGET void nearest3(const uint8_t *row, const Columns &columns, uint8_t *const *to) {
    // Four pixels, of each component.
    const __m128i apart = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const int32_t *index = columns.index.data();
    int x = 0;
    for (; x + 8 <= columns.safe; x += 8) {
        __m128i four[2];
        for (int i = 0; i < 2; ++i) {
            const int32_t *at = index + x + 4 * i;
            __m128i pixels = _mm_cvtsi32_si128(word32(row + 3 * at[0]));
            pixels = _mm_insert_epi32(pixels, word32(row + 3 * at[1]), 1);
            pixels = _mm_insert_epi32(pixels, word32(row + 3 * at[2]), 2);
            pixels = _mm_insert_epi32(pixels, word32(row + 3 * at[3]), 3);
            four[i] = _mm_shuffle_epi8(pixels, apart);
        }
        const __m128i two = _mm_unpacklo_epi32(four[0], four[1]);
        _mm_storel_epi64(reinterpret_cast<__m128i *>(to[0] + x), two);
        _mm_storeh_pd(reinterpret_cast<double *>(to[1] + x), _mm_castsi128_pd(two));
        _mm_storel_epi64(reinterpret_cast<__m128i *>(to[2] + x),
                         _mm_unpackhi_epi32(four[0], four[1]));
    }
    nearest_from<3>(x, row, columns, to);
}

// `blended` and the weighing of pairs, of 16 bytes each.
HEADRACE_TARGET inline __m256i interpolated(__m128i a, __m128i b, __m256i weight, __m256i pair) {
    const __m256i low = _mm256_cvtepu8_epi16(a), high = _mm256_cvtepu8_epi16(b);
    const __m256i step = _mm256_slli_epi16(_mm256_sub_epi16(high, low), 7);
    const __m256i between =
        _mm256_add_epi16(_mm256_slli_epi16(low, 7), _mm256_mulhrs_epi16(step, weight));
    return _mm256_madd_epi16(between, pair);
}

HEADRACE_TARGET inline void store_levels(float *to, __m256i sums) {
    _mm256_storeu_ps(to, _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_set1_ps(kLinearUnit)));
}

template <int N, int Parts>
HEADRACE_TARGET void linear_blocks(const uint8_t *a, const uint8_t *b, int weight,
                                   const Columns &columns, float *const *to) {
    const __m256i rows = _mm256_set1_epi16(int16_t(weight));
    const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    const __m256i apart = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    const int count = columns.count;
    const int32_t *pair = columns.pair.data();
    float *first = to[0], *second = to[N - 1];
    Blocks<Parts> blocks(columns.shuffle);
    for (int x = 0; x < count; x += 8 / N, blocks.next()) {
        const __m128i above = blocks.of(a), below = blocks.of(b);
        if constexpr (N == 1) {
            const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(pair + x));
            store_levels(first + x, interpolated(above, below, rows, pairs));
        } else {
            const __m256i four = _mm256_castsi128_si256(load(pair + x));
            const __m256i pairs = _mm256_permutevar8x32_epi32(four, twice);
            const __m256i sums =
                _mm256_permutevar8x32_epi32(interpolated(above, below, rows, pairs), apart);
            const __m256 levels =
                _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_set1_ps(kLinearUnit));
            _mm_storeu_ps(first + x, _mm256_castps256_ps128(levels));
            _mm_storeu_ps(second + x, _mm256_extractf128_ps(levels, 1));
        }
    }
}

template <int N>
void linear_shuffled(const uint8_t *a, const uint8_t *b, int weight, const Columns &columns,
                     float *const *to) {
    by_parts(
        columns.shuffle.parts, [&] { linear_plain<N>(a, b, weight, columns, to); },
        [&](auto parts) { linear_blocks<N, decltype(parts)::value>(a, b, weight, columns, to); });
}

// Two neighbours of two output pixels, eight bytes each.
HEADRACE_TARGET inline __m128i neighbours(const uint8_t *row, int one, int other) {
    const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i *>(row + 3 * one));
    return _mm_castpd_si128(
        _mm_loadh_pd(_mm_castsi128_pd(low), reinterpret_cast<const double *>(row + 3 * other)));
}

HEADRACE_TARGET void linear3(const uint8_t *a, const uint8_t *b, int weight, const Columns &columns,
                             float *const *to) {
    const __m256i rows = _mm256_set1_epi16(int16_t(weight));
    const __m128i pairwise = _mm_setr_epi8(0, 3, 1, 4, 2, 5, -1, -1, 8, 11, 9, 12, 10, 13, -1, -1);
    const int32_t *index = columns.index.data(), *pair = columns.pair.data();
    int x = 0;
    for (; x + 8 <= columns.safe; x += 8) {
        __m256i sums[4];  // outputs i and i + 4: three components and nothing, each
        for (int i = 0; i < 4; ++i) {
            const int one = index[x + i], other = index[x + i + 4];
            const __m256i pairs =
                _mm256_setr_m128i(_mm_set1_epi32(pair[x + i]), _mm_set1_epi32(pair[x + i + 4]));
            sums[i] =
                interpolated(_mm_shuffle_epi8(neighbours(a, one, other), pairwise),
                             _mm_shuffle_epi8(neighbours(b, one, other), pairwise), rows, pairs);
        }
        const __m256i low01 = _mm256_unpacklo_epi32(sums[0], sums[1]);
        const __m256i low23 = _mm256_unpacklo_epi32(sums[2], sums[3]);
        const __m256i high01 = _mm256_unpackhi_epi32(sums[0], sums[1]);
        const __m256i high23 = _mm256_unpackhi_epi32(sums[2], sums[3]);
        store_levels(to[0] + x, _mm256_unpacklo_epi64(low01, low23));
        store_levels(to[1] + x, _mm256_unpackhi_epi64(low01, low23));
        store_levels(to[2] + x, _mm256_unpacklo_epi64(high01, high23));
    }
    linear_from<3>(x, a, b, weight, columns, to);
}

template <int N, int Parts>
HEADRACE_TARGET void pairs_blocks(const uint8_t *row, const Columns &columns, uint8_t *const *to) {
    constexpr int kStep = 8 / N;
    const int count = columns.count;
    uint8_t *first = to[0], *second = to[N - 1];
    int x = 0;
    if constexpr (N == 1 && Parts == 1) {  // two blocks at a time
        const int32_t *base = columns.shuffle.base.data();
        const uint8_t *masks = columns.shuffle.masks.data();
        for (; x + 16 <= count; x += 16, base += 2, masks += 32) {
            const __m256i both = _mm256_setr_m128i(load(row + base[0]), load(row + base[1]));
            const __m256i mask = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(masks));
            _mm256_storeu_si256(reinterpret_cast<__m256i *>(first + 2 * x),
                                _mm256_shuffle_epi8(both, mask));
        }
    }
    Blocks<Parts> blocks(columns.shuffle, x / kStep);
    for (; x < count; x += kStep, blocks.next()) {
        const __m128i bytes = blocks.of(row);
        if constexpr (N == 1) {
            _mm_storeu_si128(reinterpret_cast<__m128i *>(first + 2 * x), bytes);
        } else {
            _mm_storel_epi64(reinterpret_cast<__m128i *>(first + 2 * x), bytes);
            _mm_storeh_pd(reinterpret_cast<double *>(second + 2 * x), _mm_castsi128_pd(bytes));
        }
    }
}

template <int N>
void pairs_shuffled(const uint8_t *row, const Columns &columns, uint8_t *const *to) {
    by_parts(
        columns.shuffle.parts, [&] { pairs_plain<N>(row, columns, to); },
        [&](auto parts) { pairs_blocks<N, decltype(parts)::value>(row, columns, to); });
}

HEADRACE_TARGET void pairs3(const uint8_t *row, const Columns &columns, uint8_t *const *to) {
    // A second pixel that is the first once more has no weight: the one after it does as well.
    const __m128i both = _mm_setr_epi8(0, 3, 8, 11, 1, 4, 9, 12, 2, 5, 10, 13, -1, -1, -1, -1);
    const int32_t *index = columns.index.data();
    int x = 0;
    for (; x + 8 <= columns.safe; x += 8) {
        __m128i two[4];
        for (int i = 0; i < 4; ++i) {
            two[i] =
                _mm_shuffle_epi8(neighbours(row, index[x + 2 * i], index[x + 2 * i + 1]), both);
        }
        const __m128i low01 = _mm_unpacklo_epi32(two[0], two[1]);
        const __m128i low23 = _mm_unpacklo_epi32(two[2], two[3]);
        const __m128i high01 = _mm_unpackhi_epi32(two[0], two[1]);
        const __m128i high23 = _mm_unpackhi_epi32(two[2], two[3]);
        const __m128i rows[3] = {_mm_unpacklo_epi64(low01, low23), _mm_unpackhi_epi64(low01, low23),
                                 _mm_unpacklo_epi64(high01, high23)};
        for (int c = 0; c < 3; ++c)
            _mm_storeu_si128(reinterpret_cast<__m128i *>(to[c] + 2 * x), rows[c]);
    }
    pairs_from<3>(x, row, columns, to);
}

// 16 bytes as 16 bits each.
HEADRACE_TARGET inline __m256i widened(const uint8_t *from) {
    return _mm256_cvtepu8_epi16(load(from));
}

HEADRACE_TARGET inline __m256i load16(const int16_t *from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
}

HEADRACE_TARGET inline void store16(int16_t *to, __m256i numbers) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), numbers);
}

HEADRACE_TARGET void chroma16(const uint8_t *u, const uint8_t *v, int n, const IntMatrix &m,
                              int16_t *const *to) {
    const __m256i middle = _mm256_set1_epi16(1024), red_v = _mm256_set1_epi16(m.red_v);
    const __m256i green_u = _mm256_set1_epi16(m.green_u), green_v = _mm256_set1_epi16(m.green_v);
    const __m256i blue_u = _mm256_set1_epi16(m.blue_u);
    for (int i = 0; i < 2 * n; i += 16) {
        const __m256i cb = _mm256_sub_epi16(_mm256_slli_epi16(widened(u + i), 3), middle);
        const __m256i cr = _mm256_sub_epi16(_mm256_slli_epi16(widened(v + i), 3), middle);
        store16(to[0] + i, _mm256_mulhi_epi16(cr, red_v));
        store16(to[1] + i,
                _mm256_add_epi16(_mm256_mulhi_epi16(cb, green_u), _mm256_mulhi_epi16(cr, green_v)));
        store16(to[2] + i, _mm256_mulhi_epi16(cb, blue_u));
    }
}

// `mixed`, of 8 outputs in 32 bits.
HEADRACE_TARGET inline __m256i mixed8(__m256i levels, __m256i weights) {
    return _mm256_srai_epi32(_mm256_madd_epi16(levels, weights), 4);
}

HEADRACE_TARGET inline void store_mixed(int16_t *to, __m256i low, __m256i high) {
    store16(to, _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8));
}

HEADRACE_TARGET void mix_yuv16(const uint8_t *y, const int16_t *const *chroma,
                               const int16_t *weights, int n, const IntMatrix &m,
                               int16_t *const *to) {
    const __m256i most = _mm256_set1_epi16(255), none = _mm256_setzero_si256();
    const __m256i zero = _mm256_set1_epi16(m.luma_zero), gain = _mm256_set1_epi16(m.luma_gain);
    for (int x = 0; x < n; x += 16) {
        __m256i luma[2], weight[2];
        for (int k = 0; k < 2; ++k) {
            const int at = 2 * x + 16 * k;
            const __m256i level = _mm256_slli_epi16(widened(y + at), 3);
            luma[k] = _mm256_mulhi_epi16(_mm256_sub_epi16(level, zero), gain);
            weight[k] = load16(weights + at);
        }
        for (int c = 0; c < 3; ++c) {
            __m256i mixed[2];
            for (int k = 0; k < 2; ++k) {
                const __m256i level = _mm256_add_epi16(luma[k], load16(chroma[c] + 2 * x + 16 * k));
                mixed[k] = mixed8(_mm256_min_epi16(_mm256_max_epi16(level, none), most), weight[k]);
            }
            store_mixed(to[c] + x, mixed[0], mixed[1]);
        }
    }
}

HEADRACE_TARGET void mix16(const uint8_t *from, const int16_t *weights, int n, int16_t *to) {
    for (int x = 0; x < n; x += 16) {
        const int at = 2 * x;
        store_mixed(to + x, mixed8(widened(from + at), load16(weights + at)),
                    mixed8(widened(from + at + 16), load16(weights + at + 16)));
    }
}

HEADRACE_TARGET inline __m256i blended16(const int16_t *above, const int16_t *below, __m256i low,
                                         __m256i high) {
    const __m256i sum = _mm256_add_epi16(_mm256_mulhi_epi16(load16(above), low),
                                         _mm256_mulhi_epi16(load16(below), high));
    return _mm256_srai_epi16(_mm256_add_epi16(sum, _mm256_set1_epi16(2)), 2);
}

HEADRACE_TARGET void blend32(const int16_t *above, const int16_t *below, int weight, int n,
                             uint8_t *to) {
    const __m256i low = _mm256_set1_epi16(int16_t(2048 - weight));
    const __m256i high = _mm256_set1_epi16(int16_t(weight));
    for (int x = 0; x < n; x += 32) {
        const __m256i bytes =
            _mm256_packus_epi16(blended16(above + x, below + x, low, high),
                                blended16(above + x + 16, below + x + 16, low, high));
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(to + x),
                            _mm256_permute4x64_epi64(bytes, 0xd8));
    }
}

RowKernels avx2_kernels() {
    RowKernels k = plain_kernels();
    k.shuffles = true;
    k.nearest[1] = nearest_shuffled<1>;
    k.nearest[2] = nearest_shuffled<2>;
    k.nearest[3] = nearest3;
    k.linear[1] = linear_shuffled<1>;
    k.linear[2] = linear_shuffled<2>;
    k.linear[3] = linear3;
    k.pairs[1] = pairs_shuffled<1>;
    k.pairs[2] = pairs_shuffled<2>;
    k.pairs[3] = pairs3;
    k.chroma = chroma16;
    k.mix_yuv = mix_yuv16;
    k.mix = mix16;
    k.blend = blend32;
    return k;
}

}  // namespace

const RowKernels *vector_row_kernels() {
    static const bool usable = __builtin_cpu_supports("avx2");
    static const RowKernels kernels = avx2_kernels();
    return usable ? &kernels : nullptr;
}

}  // namespace headrace::preprocess

#endif
