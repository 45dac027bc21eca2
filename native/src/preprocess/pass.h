#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "preprocess/axis.h"
#include "preprocess/rows.h"

namespace headrace::preprocess {

// Memory layouts of a frame and colour formats of a model, numbered as Python passes them.
enum class Layout { kI420 = 0, kNv12 = 1, kRgb = 2, kBgr = 3, kGray = 4 };
enum class ModelColor { kRgb = 0, kBgr = 1, kGray = 2 };

struct PlaneView {
    const uint8_t *data;
    ptrdiff_t stride;  // bytes from row to row
};

struct IntRect {
    int left, top, width, height;
    bool operator==(const IntRect &other) const {
        return left == other.left && top == other.top && width == other.width &&
               height == other.height;
    }
};

// One item: what to read, how to convert it, where to write it.
struct PassSpec {
    Layout layout;
    std::array<PlaneView, 3> planes;
    int frame_width, frame_height;
    IntRect src;  // even numbers, may stick out of the frame on the right and below
    IntRect dst;
    ColorMatrix matrix;
    ModelColor color;
    bool nhwc;
    int net_width, net_height;
    float scale;
    float fill;                 // level of the bars, before it is normalised
    bool filled;                // the bars are there: `out` is that of an item of the same places
    std::array<float, 3> mean;  // in network channel order
    const float *mean_image;    // (C, H, W) in network channel order, or null
    Filter filter;
    int threads;
    float *out;

    int channels() const { return color == ModelColor::kGray ? 1 : 3; }
    ptrdiff_t item_size() const { return ptrdiff_t(net_width) * net_height * channels(); }
};

// Crops, scales, converts, normalises and pads one item, in bands of rows.
class Pass {
public:
    Pass(const PassSpec &spec, const RowKernels &kernels);
    void run() const;
    // Whether its tables are those of another item: frames of a video are alike.
    bool fits(const PassSpec &spec, const RowKernels &kernels) const;
    // Another item that it fits.
    void take(const PassSpec &spec);

private:
    struct Scratch;
    // One plane as the samplers see it.
    struct Source {
        size_t plane;
        int components;
        std::array<int, 3> rows;  // which colour row each component fills
        int axes;                 // index into `axes_`
        Columns columns;          // nearest, bilinear and `opencv`
    };
    // Tables for planes of one size; which of them are filled depends on the filter.
    struct Axes {
        Axis x, y;
        std::vector<int32_t> nearest_y;
        LinearTable linear_y;
        OpencvTable opencv_x, opencv_y;
        TapTable taps_x, taps_y;
        int first_column = 0, columns = 0;  // what `taps_x` refers to
    };

    int channels() const { return spec_.channels(); }
    int mixed_rows() const { return converts() || sources_[0].components == 3 ? 3 : 1; }
    // Whether sampling makes R, G, B of Y, U, V.
    bool converts() const { return spec_.filter == Filter::kOpencv && sources_.back().axes == 1; }
    void add_axes(const Axis &x, const Axis &y);
    void add_source(size_t plane, int width, int components, std::array<int, 3> rows, int axes);
    const uint8_t *line(const Source &source, int row) const {
        const PlaneView &plane = spec_.planes[source.plane];
        return plane.data + plane.stride * row;
    }
    void rows(int begin, int end) const;
    void sample(const Source &source, int y, Scratch &scratch) const;
    void sample_linear(const Source &source, int y, Scratch &scratch) const;
    void sample_taps(const Source &source, int y, Scratch &scratch) const;
    void sample_opencv(int y, Scratch &scratch) const;
    int mixed_row(int row, int keep, Scratch &scratch) const;
    void take_pairs(const Source &source, int row, Scratch &scratch) const;
    void finish(int y, Scratch &scratch) const;
    template <class T, class Yuv, class Luma, class Plain, class Grey>
    void convert(const T *const *from, const ChannelOut *rgb, Yuv yuv, Luma luma, Plain plain,
                 Grey grey) const;
    void pad(int y, int begin, int end) const;

    PassSpec spec_;
    const RowKernels &kernels_;
    IntMatrix matrix_;
    std::vector<Source> sources_;
    std::vector<Axes> axes_;
};

}  // namespace headrace::preprocess
