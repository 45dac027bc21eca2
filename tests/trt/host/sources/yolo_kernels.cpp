// Host twins of the CUDA functions that two popular YOLO libraries call: what a user gives beside
// the unchanged sources. Written from the formulas, not from the kernels.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cuda_runtime_api.h"

namespace {

float logistic(float x) { return 1.0f / (1.0f + std::exp(-x)); }

// One head of `count` anchors: `planes` values for each cell; `row` makes six numbers of one cell.
template <typename Row>
void decode(const void *input, void *output, uint batch, uint64_t outputs, uint64_t first,
            uint width, uint height, uint count, uint classes, Row row) {
    const uint cells = width * height, planes = 5 + classes;
    std::vector<float> values(planes);
    for (uint b = 0; b < batch; ++b)
        for (uint a = 0; a < count; ++a)
            for (uint cell = 0; cell < cells; ++cell) {
                const float *from = static_cast<const float *>(input) +
                                    (size_t(b) * count + a) * planes * cells + cell;
                for (uint p = 0; p < planes; ++p) values[p] = from[size_t(p) * cells];
                float *to = static_cast<float *>(output) +
                            (b * outputs + first + a * cells + cell) * 6;
                row(values.data(), a, cell % width, cell / width, to);
            }
}

void put(float *to, float x, float y, float w, float h, float score, uint label) {
    const float made[6] = {x - w / 2, y - h / 2, x + w / 2, y + h / 2, score, float(label)};
    std::memcpy(to, made, sizeof(made));
}

uint best(const float *scores, uint count) {
    uint found = 0;
    for (uint i = 1; i < count; ++i)
        if (scores[i] > scores[found]) found = i;
    return found;
}

}  // namespace

cudaError_t cudaYoloLayer(const void *input, void *output, const uint &batch, const uint64_t &,
                          const uint64_t &outputs, const uint64_t &first, const uint &netWidth,
                          const uint &netHeight, const uint &width, const uint &height,
                          const uint &classes, const uint &count, const float &scale,
                          const void *anchors, const void *mask, cudaStream_t) {
    const float *sizes = static_cast<const float *>(anchors);
    const int *chosen = static_cast<const int *>(mask);
    decode(input, output, batch, outputs, first, width, height, count, classes,
           [&](const float *t, uint a, uint x, uint y, float *to) {
               const float shift = (scale - 1) / 2;
               const uint label = best(t + 5, classes);
               put(to, (logistic(t[0]) * scale - shift + x) * netWidth / width,
                   (logistic(t[1]) * scale - shift + y) * netHeight / height,
                   std::exp(t[2]) * sizes[2 * chosen[a]], std::exp(t[3]) * sizes[2 * chosen[a] + 1],
                   logistic(t[4]) * logistic(t[5 + label]), label);
           });
    return cudaSuccess;
}

cudaError_t cudaYoloLayer_nc(const void *input, void *output, const uint &batch, const uint64_t &,
                             const uint64_t &outputs, const uint64_t &first, const uint &netWidth,
                             const uint &netHeight, const uint &width, const uint &height,
                             const uint &classes, const uint &count, const float &scale,
                             const void *anchors, const void *mask, cudaStream_t) {
    const float *sizes = static_cast<const float *>(anchors);
    const int *chosen = static_cast<const int *>(mask);
    decode(input, output, batch, outputs, first, width, height, count, classes,
           [&](const float *t, uint a, uint x, uint y, float *to) {
               const float shift = (scale - 1) / 2;
               const uint label = best(t + 5, classes);
               put(to, (t[0] * scale - shift + x) * netWidth / width,
                   (t[1] * scale - shift + y) * netHeight / height,
                   4 * t[2] * t[2] * sizes[2 * chosen[a]],
                   4 * t[3] * t[3] * sizes[2 * chosen[a] + 1], t[4] * t[5 + label], label);
           });
    return cudaSuccess;
}

cudaError_t cudaRegionLayer(const void *input, void *, void *output, const uint &batch,
                            const uint64_t &, const uint64_t &outputs, const uint64_t &first,
                            const uint &netWidth, const uint &netHeight, const uint &width,
                            const uint &height, const uint &classes, const uint &count,
                            const void *anchors, cudaStream_t) {
    const float *sizes = static_cast<const float *>(anchors);
    decode(input, output, batch, outputs, first, width, height, count, classes,
           [&](const float *t, uint a, uint x, uint y, float *to) {
               const uint label = best(t + 5, classes);
               float sum = 0;
               for (uint c = 0; c < classes; ++c) sum += std::exp(t[5 + c] - t[5 + label]);
               put(to, (logistic(t[0]) + x) * netWidth / width,
                   (logistic(t[1]) + y) * netHeight / height,
                   std::exp(t[2]) * sizes[2 * a] * netWidth / width,
                   std::exp(t[3]) * sizes[2 * a + 1] * netHeight / height, logistic(t[4]) / sum,
                   label);
           });
    return cudaSuccess;
}

// The older library leaves the planes as they are: centre, objectness and classes through the
// logistic function, sizes through the exponential one.
cudaError_t cudaYoloLayerV3(const void *input, void *output, const uint &batch, const uint &grid,
                            const uint &classes, const uint &count, uint64_t size, cudaStream_t) {
    const uint cells = grid * grid;
    for (uint b = 0; b < batch; ++b)
        for (uint a = 0; a < count; ++a)
            for (uint p = 0; p < 5 + classes; ++p)
                for (uint cell = 0; cell < cells; ++cell) {
                    const size_t at = b * size + (size_t(a) * (5 + classes) + p) * cells + cell;
                    const float x = static_cast<const float *>(input)[at];
                    static_cast<float *>(output)[at] = p == 2 || p == 3 ? std::exp(x) : logistic(x);
                }
    return cudaSuccess;
}
