// Bilinear sampling of feature maps, as ROI layers and deformable layers do it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace headrace::plugins {

struct Map {
    const float *data;  // images x channels x height x width
    std::size_t images, channels, height, width;
};

// What a sample outside of the map is.
enum Outside : int {
    kEdge = 0,     // the nearest place
    kZero = 1,     // 0
    kZeroFar = 2,  // the nearest place as far as one step away, then 0
};

// Sample k of bin i of an axis lies at start + step * i + step * (k + offset) / count.
struct Axis {
    float start, step;
    std::int32_t count;
};

struct RoiRule {
    float offset;
    Outside outside;
    bool largest;  // of the weighted corners of all samples, instead of the mean of the samples
};

// One region of one image, all channels: channels x bins_y x bins_x.
void roi(const Map &map, std::size_t image, const Axis &y, const Axis &x, std::size_t bins_y,
         std::size_t bins_x, const RoiRule &rule, float *out);

// Caffe's ROI pooling of one region, its first and last place on each axis counted in: the largest
// value of each bin, 0 where a bin is empty; channels x bins_y x bins_x.
struct Region {
    std::int64_t y0, x0, y1, x1;
};
void pool(const Map &map, std::size_t image, const Region &region, std::size_t bins_y,
          std::size_t bins_x, float *out);

struct Convolution {
    std::size_t kernel_y, kernel_x, out_y, out_x;
    std::ptrdiff_t stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;
    std::size_t groups;  // of channels that share offsets
};

// What each tap of a deformable convolution reads: (channels * taps) x (out_y * out_x), of one
// image. `offset` is groups x taps x 2 (y, x) x out, `mask` is groups x taps x out.
void deformed(const Map &map, std::size_t image, const Convolution &c, const float *offset,
              const float *mask, float *columns);

struct Attention {
    std::size_t places, heads, depth, levels, queries, points;
    const std::int32_t *shapes;  // levels x 2: height, width
    const std::int32_t *starts;  // levels
};

// Deformable attention of one image: value is places x heads x depth, locations is queries x heads
// x levels x points x 2 (x, y in 0..1), weights the same without the 2; out is queries x heads x
// depth.
void attention(const Attention &a, const float *value, const float *locations, const float *weights,
               float *out);

}  // namespace headrace::plugins
