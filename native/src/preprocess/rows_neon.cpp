// Row kernels for AArch64, where each processor has NEON. By hand stand those that gather pixels:
// compilers make vectors of the others, which the plain table has.
#include "preprocess/rows.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#define HEADRACE_TARGET
#include "preprocess/rows_impl.h"

namespace headrace::preprocess {
namespace {

uint8x16_t shuffled(const uint8_t *row, const Shuffle &shuffle, int block) {
    const uint8_t *from = row + shuffle.base[size_t(block)];
    const uint8_t *mask = shuffle.masks.data() + ptrdiff_t(block) * shuffle.parts * 16;
    uint8x16_t bytes = vqtbl1q_u8(vld1q_u8(from), vld1q_u8(mask));
    for (int i = 1; i < shuffle.parts; ++i)  // a place that a mask does not name stays
        bytes = vqtbx1q_u8(bytes, vld1q_u8(from + ptrdiff_t(16) * i),
                           vld1q_u8(mask + ptrdiff_t(16) * i));
    return bytes;
}

// A block of one component, or half a block of each of two, from place `x` on.
template <int N>
void store_block(uint8x16_t bytes, uint8_t *const *to, ptrdiff_t x) {
    if constexpr (N == 1) {
        vst1q_u8(to[0] + x, bytes);
    } else {
        vst1_u8(to[0] + x, vget_low_u8(bytes));
        vst1_u8(to[1] + x, vget_high_u8(bytes));
    }
}

template <int N>
void nearest_shuffled(const uint8_t *row, const Columns &columns, uint8_t *const *to) {
    if (columns.shuffle.parts == 0) return nearest_plain<N>(row, columns, to);
    constexpr int kStep = 16 / N;
    for (int x = 0; x < columns.count; x += kStep)
        store_block<N>(shuffled(row, columns.shuffle, x / kStep), to, x);
}

// Four pixels, of each component; the last byte of each belongs to the pixel after it.
uint32x4_t apart(const uint8_t *row, const int32_t *index) {
    constexpr uint8_t kPlaces[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    uint32_t words[4];
    for (int i = 0; i < 4; ++i) std::memcpy(words + i, row + ptrdiff_t(3) * index[i], 4);
    const uint8x16_t pixels = vreinterpretq_u8_u32(vld1q_u32(words));
    return vreinterpretq_u32_u8(vqtbl1q_u8(pixels, vld1q_u8(kPlaces)));
}

void nearest3(const uint8_t *row, const Columns &columns, uint8_t *const *to) {
    const int32_t *index = columns.index.data();
    int x = 0;
    for (; x + 8 <= columns.safe; x += 8) {
        const uint32x4_t low = apart(row, index + x), high = apart(row, index + x + 4);
        store_block<2>(vreinterpretq_u8_u32(vzip1q_u32(low, high)), to, x);
        vst1_u8(to[2] + x, vget_low_u8(vreinterpretq_u8_u32(vzip2q_u32(low, high))));
    }
    nearest_from<3>(x, row, columns, to);
}

// `blended` of eight bytes, and the weighing of its four pairs.
int32x4_t interpolated(uint8x8_t a, uint8x8_t b, int16_t weight, int32x4_t pairs) {
    const int16x8_t step = vshlq_n_s16(vreinterpretq_s16_u16(vsubl_u8(b, a)), 7);
    const int16x8_t between =
        vaddq_s16(vreinterpretq_s16_u16(vshll_n_u8(a, 7)), vqrdmulhq_n_s16(step, weight));
    const int16x8_t weights = vreinterpretq_s16_s32(pairs);
    return vpaddq_s32(vmull_s16(vget_low_s16(between), vget_low_s16(weights)),
                      vmull_high_s16(between, weights));
}

void store_levels(float *to, int32x4_t sums) {
    vst1q_f32(to, vmulq_n_f32(vcvtq_f32_s32(sums), kLinearUnit));
}

void linear1(const uint8_t *a, const uint8_t *b, int weight, const Columns &columns,
             float *const *to) {
    if (columns.shuffle.parts == 0) return linear_plain<1>(a, b, weight, columns, to);
    const int32_t *pair = columns.pair.data();
    const auto rows = int16_t(weight);
    for (int x = 0; x < columns.count; x += 8) {
        const uint8x16_t above = shuffled(a, columns.shuffle, x / 8);
        const uint8x16_t below = shuffled(b, columns.shuffle, x / 8);
        store_levels(to[0] + x, interpolated(vget_low_u8(above), vget_low_u8(below), rows,
                                             vld1q_s32(pair + x)));
        store_levels(to[0] + x + 4, interpolated(vget_high_u8(above), vget_high_u8(below), rows,
                                                 vld1q_s32(pair + x + 4)));
    }
}

void linear2(const uint8_t *a, const uint8_t *b, int weight, const Columns &columns,
             float *const *to) {
    if (columns.shuffle.parts == 0) return linear_plain<2>(a, b, weight, columns, to);
    const int32_t *pair = columns.pair.data();
    const auto rows = int16_t(weight);
    for (int x = 0; x < columns.count; x += 4) {
        const uint8x16_t above = shuffled(a, columns.shuffle, x / 4);
        const uint8x16_t below = shuffled(b, columns.shuffle, x / 4);
        const int32x4_t pairs = vld1q_s32(pair + x);
        const int32x4_t low =
            interpolated(vget_low_u8(above), vget_low_u8(below), rows, vzip1q_s32(pairs, pairs));
        const int32x4_t high =
            interpolated(vget_high_u8(above), vget_high_u8(below), rows, vzip2q_s32(pairs, pairs));
        store_levels(to[0] + x, vuzp1q_s32(low, high));
        store_levels(to[1] + x, vuzp2q_s32(low, high));
    }
}

// Of four outputs of three components and nothing each, the three rows.
struct Rows {
    int32x4_t of[3];

    explicit Rows(const int32x4_t (&outputs)[4]) {
        const int64x2_t low01 = vreinterpretq_s64_s32(vzip1q_s32(outputs[0], outputs[1]));
        const int64x2_t low23 = vreinterpretq_s64_s32(vzip1q_s32(outputs[2], outputs[3]));
        const int64x2_t high01 = vreinterpretq_s64_s32(vzip2q_s32(outputs[0], outputs[1]));
        const int64x2_t high23 = vreinterpretq_s64_s32(vzip2q_s32(outputs[2], outputs[3]));
        of[0] = vreinterpretq_s32_s64(vzip1q_s64(low01, low23));
        of[1] = vreinterpretq_s32_s64(vzip2q_s64(low01, low23));
        of[2] = vreinterpretq_s32_s64(vzip1q_s64(high01, high23));
    }
};

// Two neighbours, a pair of each component.
uint8x8_t neighbours(const uint8_t *row, int index) {
    constexpr uint8_t kPairwise[8] = {0, 3, 1, 4, 2, 5, 255, 255};
    return vtbl1_u8(vld1_u8(row + ptrdiff_t(3) * index), vld1_u8(kPairwise));
}

void linear3(const uint8_t *a, const uint8_t *b, int weight, const Columns &columns,
             float *const *to) {
    const int32_t *index = columns.index.data(), *pair = columns.pair.data();
    const auto between = int16_t(weight);
    int x = 0;
    for (; x + 4 <= columns.safe; x += 4) {
        int32x4_t sums[4];
        for (int i = 0; i < 4; ++i)
            sums[i] = interpolated(neighbours(a, index[x + i]), neighbours(b, index[x + i]),
                                   between, vdupq_n_s32(pair[x + i]));
        const Rows rows(sums);
        for (int c = 0; c < 3; ++c) store_levels(to[c] + x, rows.of[c]);
    }
    linear_from<3>(x, a, b, weight, columns, to);
}

template <int N>
void pairs_shuffled(const uint8_t *row, const Columns &columns, uint8_t *const *to) {
    if (columns.shuffle.parts == 0) return pairs_plain<N>(row, columns, to);
    constexpr int kStep = 8 / N;
    for (int x = 0; x < columns.count; x += kStep)
        store_block<N>(shuffled(row, columns.shuffle, x / kStep), to, ptrdiff_t(2) * x);
}

void pairs3(const uint8_t *row, const Columns &columns, uint8_t *const *to) {
    // A second pixel that is the first once more has no weight: the one after it does as well.
    const int32_t *index = columns.index.data();
    int x = 0;
    for (; x + 8 <= columns.safe; x += 8) {
        int32x4_t outputs[4];  // two of 16 bits in each place
        for (int i = 0; i < 4; ++i) {
            const uint16x4_t one = vreinterpret_u16_u8(neighbours(row, index[x + 2 * i]));
            const uint16x4_t other = vreinterpret_u16_u8(neighbours(row, index[x + 2 * i + 1]));
            outputs[i] =
                vreinterpretq_s32_u16(vcombine_u16(vzip1_u16(one, other), vzip2_u16(one, other)));
        }
        const Rows rows(outputs);
        for (int c = 0; c < 3; ++c)
            vst1q_u8(to[c] + ptrdiff_t(2) * x, vreinterpretq_u8_s32(rows.of[c]));
    }
    pairs_from<3>(x, row, columns, to);
}

RowKernels neon_kernels() {
    RowKernels k = plain_kernels();
    k.shuffles = true;
    k.nearest[1] = nearest_shuffled<1>;
    k.nearest[2] = nearest_shuffled<2>;
    k.nearest[3] = nearest3;
    k.linear[1] = linear1;
    k.linear[2] = linear2;
    k.linear[3] = linear3;
    k.pairs[1] = pairs_shuffled<1>;
    k.pairs[2] = pairs_shuffled<2>;
    k.pairs[3] = pairs3;
    return k;
}

}  // namespace

const RowKernels *vector_row_kernels() {
    static const RowKernels kernels = neon_kernels();
    return &kernels;
}

}  // namespace headrace::preprocess

#endif
