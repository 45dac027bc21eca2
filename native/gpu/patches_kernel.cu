// Samples of an image for a visual tracker: one thread takes one, as `Image::read` on the CPU
// (native/src/track/image.cpp), so that patches have the same bytes.
#include "component.h"
#include "track/sampled_color.h"

namespace headrace::track {

// Patches of side x side samples of a frame. Mirrored by `_Patches` of
// headrace/infer/gpu/patches.py.
struct Patches {
    preprocess::Component component[3];
    const int32_t *across, *down;  // (patches, side) columns and rows of the image
    uint8_t *rgb;                  // (patches, 3, side, side)
    int32_t side, wide;
    preprocess::ColorMatrix matrix;
};

HEADRACE_TARGET inline void take_sample(const Patches &p, int patch, int row, int column) {
    const int x = p.across[patch * p.side + column], y = p.down[patch * p.side + row];
    const int area = p.side * p.side;
    uint8_t *to = p.rgb + int64_t(patch) * 3 * area + row * p.side + column;
    rgb_of(preprocess::sample_of(p.component[0], p.wide, y, x),
           preprocess::sample_of(p.component[1], p.wide, y / 2, x / 2),
           preprocess::sample_of(p.component[2], p.wide, y / 2, x / 2), p.matrix, to, to + area,
           to + 2 * area);
}

#ifdef __CUDACC_RTC__
// Grid: x over the columns, y over the rows, z over the patches.
extern "C" __global__ void headrace_patches(Patches patches) {
    const int column = int(blockIdx.x * blockDim.x + threadIdx.x);
    const int row = int(blockIdx.y * blockDim.y + threadIdx.y);
    if (column < patches.side && row < patches.side)
        take_sample(patches, int(blockIdx.z), row, column);
}
#endif

}  // namespace headrace::track
