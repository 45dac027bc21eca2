// An image in a GPU's memory as JPEG has it: one thread makes four pixels with their chroma.
#include "component.h"
#include "track/sampled_color.h"

namespace headrace::jpeg {

// Mirrored by `_Samples` of headrace/media/sinks/gpu_jpeg.py.
struct Samples {
    preprocess::Component component[3];
    uint8_t *plane[3];  // Y, Cb, Cr of JFIF: BT.601, all 256 values, chroma of 2 x 2 pixels
    int32_t pitch[3];
    int32_t wide, width, height;
    preprocess::ColorMatrix matrix;
};

// Weights of red and blue in luma are 0.299 and 0.114. Source: JFIF 1.02.
HEADRACE_TARGET inline void jpeg_quad(const Samples &s, int x, int y) {
    const int u = preprocess::sample_of(s.component[1], s.wide, y, x);
    const int v = preprocess::sample_of(s.component[2], s.wide, y, x);
    float sum[3] = {0, 0, 0};
    int count = 0;
    for (int i = 0; i < 4; ++i) {
        const int column = 2 * x + i % 2, row = 2 * y + i / 2;
        if (column >= s.width || row >= s.height) continue;
        uint8_t rgb[3];
        track::rgb_of(preprocess::sample_of(s.component[0], s.wide, row, column), u, v, s.matrix,
                      rgb, rgb + 1, rgb + 2);
        const float luma = 0.299f * float(rgb[0]) + 0.587f * float(rgb[1]) + 0.114f * float(rgb[2]);
        s.plane[0][int64_t(row) * s.pitch[0] + column] = track::nearest_byte(luma);
        for (int c = 0; c < 3; ++c) sum[c] += float(rgb[c]);
        ++count;
    }
    const float red = sum[0] / float(count), green = sum[1] / float(count),
                blue = sum[2] / float(count);
    const float luma = 0.299f * red + 0.587f * green + 0.114f * blue;
    s.plane[1][int64_t(y) * s.pitch[1] + x] = track::nearest_byte(128 + (blue - luma) / 1.772f);
    s.plane[2][int64_t(y) * s.pitch[2] + x] = track::nearest_byte(128 + (red - luma) / 1.402f);
}

#ifdef __CUDACC_RTC__
// Grid: x and y over the chroma samples.
extern "C" __global__ void headrace_jpeg(Samples samples) {
    const int x = int(blockIdx.x * blockDim.x + threadIdx.x);
    const int y = int(blockIdx.y * blockDim.y + threadIdx.y);
    if (2 * x < samples.width && 2 * y < samples.height) jpeg_quad(samples, x, y);
}
#endif

}  // namespace headrace::jpeg
