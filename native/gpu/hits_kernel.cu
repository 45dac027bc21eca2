// Candidates of score tables that reach the threshold of their best class: one thread looks at one.
//
// The comparisons are those of `best_class` (native/src/decode/scores.cpp), so that the hits are
// the CPU's, bit for bit. They come in any order: `place` sorts them.
#include "kernel_types.h"

namespace headrace::decode {

struct Hit {
    uint32_t place;  // item * candidates + candidate
    int32_t class_id;
    float score, box[4];
};

// Tables of (items, candidates, first + classes) numbers. Mirrored by `_Tables` of
// headrace/infer/gpu/hits.py.
struct Tables {
    const void *data;
    const float *thresholds;
    uint32_t *found;            // how many hits there are
    Hit *hits;                  // room for every candidate
    int64_t item, row, column;  // numbers from one to the next
    int32_t candidates, classes;
    int32_t first;  // column of the first class; of 5, column 4 is the objectness
    int32_t known;  // thresholds
    int32_t half;   // numbers are FP16
    float lowest;   // of the thresholds
};

HEADRACE_TARGET inline float number(const Tables &tables, int64_t at) {
    if (!tables.half) return static_cast<const float *>(tables.data)[at];
#ifdef __CUDACC_RTC__
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<const uint16_t *>(tables.data)[at]));
    return value;
#else
    return float(static_cast<const _Float16 *>(tables.data)[at]);
#endif
}

HEADRACE_TARGET inline float minus_infinity() {
#ifdef __CUDACC_RTC__
    return __int_as_float(0xff800000);
#else
    return -__builtin_huge_valf();
#endif
}

HEADRACE_TARGET inline uint32_t next_of(uint32_t *count) {
#ifdef __CUDACC_RTC__
    return atomicAdd(count, 1u);
#else
    return (*count)++;
#endif
}

HEADRACE_TARGET inline void look_at(const Tables &tables, int item, int candidate) {
    const int64_t start = item * tables.item + candidate * tables.row;
    const bool weighted = tables.first > 4;
    const float objectness = weighted ? number(tables, start + 4 * tables.column) : 1.0f;
    if (weighted && tables.lowest > 0 && !(objectness >= tables.lowest)) return;
    // NaN never wins; nothing above minus infinity leaves class 0
    const int64_t scores = start + tables.first * tables.column;
    float best = minus_infinity();
    int class_id = 0;
    for (int k = 0; k < tables.classes; ++k) {
        const float score = number(tables, scores + k * tables.column);
        if (score > best) {
            best = score;
            class_id = k;
        }
    }
    const float score = weighted ? objectness * best : best;
    if (!(score >= tables.lowest) || class_id >= tables.known ||
        !(score >= tables.thresholds[class_id]))
        return;
    Hit &hit = tables.hits[next_of(tables.found)];
    hit.place = uint32_t(item) * uint32_t(tables.candidates) + uint32_t(candidate);
    hit.class_id = class_id;
    hit.score = score;
    for (int k = 0; k < 4; ++k) hit.box[k] = number(tables, start + k * tables.column);
}

#ifdef __CUDACC_RTC__
// Grid: x over the candidates, y over the items.
extern "C" __global__ void headrace_hits(Tables tables) {
    const int candidate = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (candidate < tables.candidates) look_at(tables, int(blockIdx.y), candidate);
}
#endif

}  // namespace headrace::decode
