#include "preprocess/pass.h"

#include <algorithm>
#include <cmath>

#include "core/thread_pool.h"

namespace headrace::preprocess {
namespace {

constexpr int kSlack = RowKernels::kSlack;

template <class T>
T *grown(std::vector<T> &buffer, size_t size) {
    if (buffer.size() < size + kSlack) buffer.resize(size + kSlack);
    return buffer.data();
}

// Products of at most 2^11 and 2^15: numbers that FFmpeg's own tables round to.
IntMatrix int_matrix(const ColorMatrix &m) {
    auto gain = [](float value) { return int16_t(std::lrint(value * 8192)); };
    return {int16_t(8 * m.luma_zero), gain(m.luma_gain), gain(m.red_v),
            gain(m.green_u),          gain(m.green_v),   gain(m.blue_u)};
}

}  // namespace

// Rows between the steps; kept by each thread.
struct Pass::Scratch {
    std::vector<uint8_t> bytes[3];
    std::vector<float> levels[3], output[3], sum;
    std::vector<int16_t> mixed[2][3], chroma[3];  // of the rows `held` and `held_chroma`
    int held[2], held_chroma;
};

Pass::Pass(const PassSpec &spec, const RowKernels &kernels) : kernels_(kernels) {
    take(spec);
    const Axis x = Axis::crop(spec.src.left, spec.src.width, spec.dst.width, spec.frame_width);
    const Axis y = Axis::crop(spec.src.top, spec.src.height, spec.dst.height, spec.frame_height);
    sources_.reserve(3);
    axes_.reserve(2);
    const int width = spec.frame_width, half = (width + 1) / 2;
    add_axes(x, y);
    switch (spec.layout) {
    case Layout::kRgb: add_source(0, width, 3, {0, 1, 2}, 0); return;
    case Layout::kBgr: add_source(0, width, 3, {2, 1, 0}, 0); return;
    default: add_source(0, width, 1, {0}, 0);
    }
    if (spec.layout == Layout::kGray || spec.color == ModelColor::kGray) return;
    add_axes(x.halved(), y.halved());  // `opencv` halves places instead: chroma is not interpolated
    if (spec.layout == Layout::kNv12) {
        add_source(1, half, 2, {1, 2}, 1);
    } else {
        add_source(1, half, 1, {1}, 1);
        add_source(2, half, 1, {2}, 1);
    }
}

bool Pass::fits(const PassSpec &spec, const RowKernels &kernels) const {
    const PassSpec &own = spec_;
    return &kernels == &kernels_ && spec.layout == own.layout && spec.color == own.color &&
           spec.filter == own.filter && spec.frame_width == own.frame_width &&
           spec.frame_height == own.frame_height && spec.src == own.src && spec.dst == own.dst;
}

void Pass::take(const PassSpec &spec) {
    spec_ = spec;
    matrix_ = int_matrix(spec.matrix);
}

void Pass::add_axes(const Axis &x, const Axis &y) {
    Axes axes{};
    axes.x = x;
    axes.y = y;
    if (spec_.filter == Filter::kNearest) {
        axes.nearest_y = nearest_table(y);
    } else if (spec_.filter == Filter::kBilinear) {
        axes.linear_y = linear_table(y);
    } else if (spec_.filter == Filter::kOpencv) {
        const Axis &full_x = axes_.empty() ? x : axes_[0].x,
                   &full_y = axes_.empty() ? y : axes_[0].y;
        axes.opencv_x = opencv_table(full_x, false);
        axes.opencv_y = opencv_table(full_y, true);
    } else {
        axes.taps_x = tap_table(x, spec_.filter);
        axes.taps_y = tap_table(y, spec_.filter);
        std::vector<int32_t> &first = axes.taps_x.first;
        int end = 0;
        for (size_t d = 0; d < first.size(); ++d)
            end = std::max(end, first[d] + axes.taps_x.taps[d]);
        axes.first_column = *std::min_element(first.begin(), first.end());
        axes.columns = end - axes.first_column;
        for (int32_t &column : first) column -= axes.first_column;
    }
    axes_.push_back(std::move(axes));
}

void Pass::add_source(size_t plane, int width, int components, std::array<int, 3> rows, int axes) {
    Source source{plane, components, rows, axes, {}};
    const Axis &x = axes_[size_t(axes)].x;
    if (axes > 0 && sources_.back().axes == axes) {
        source.columns = sources_.back().columns;
    } else if (spec_.filter == Filter::kNearest) {
        source.columns = make_columns(nearest_table(x), {}, components, width, kernels_.shuffles);
    } else if (spec_.filter == Filter::kOpencv) {
        std::vector<int32_t> first = axes_[0].opencv_x.first, second = axes_[0].opencv_x.second;
        if (axes > 0)
            for (size_t i = 0; i < first.size(); ++i) first[i] /= 2, second[i] /= 2;
        source.columns = make_pairs(std::move(first), second, components, width, kernels_.shuffles);
    } else if (spec_.filter == Filter::kBilinear) {
        LinearTable table = linear_table(x);
        source.columns = make_columns(std::move(table.first), table.weight, components, width,
                                      kernels_.shuffles);
    }
    sources_.push_back(std::move(source));
}

void Pass::run() const {
    const int height = spec_.net_height, threads = std::max(1, spec_.threads);
    const int bands = threads == 1 ? 1 : std::min(threads * 4, (height + 7) / 8);
    core::ThreadPool::shared().run(threads, bands, [&](int band) {
        rows(int(int64_t(height) * band / bands), int(int64_t(height) * (band + 1) / bands));
    });
}

void Pass::rows(int begin, int end) const {
    static thread_local Scratch scratch;
    const IntRect &dst = spec_.dst;
    scratch.held[0] = scratch.held[1] = scratch.held_chroma = -1;
    const int first = std::clamp(dst.top, begin, end);
    const int last = std::clamp(dst.top + dst.height, first, end);
    pad(begin, 0, (first - begin) * spec_.net_width);
    for (int y = first; y < last; ++y) {
        const int row = y - dst.top;
        if (spec_.filter == Filter::kOpencv)
            sample_opencv(row, scratch);
        else
            for (const Source &source : sources_) sample(source, row, scratch);
        pad(y, 0, dst.left);
        finish(y, scratch);
        pad(y, dst.left + dst.width, spec_.net_width);
    }
    pad(last, 0, (end - last) * spec_.net_width);
}

void Pass::sample(const Source &source, int y, Scratch &scratch) const {
    if (spec_.filter == Filter::kBilinear) return sample_linear(source, y, scratch);
    if (spec_.filter != Filter::kNearest) return sample_taps(source, y, scratch);
    const Axes &axes = axes_[size_t(source.axes)];
    const int n = source.components, count = spec_.dst.width;
    uint8_t *to[3] = {};
    for (int c = 0; c < n; ++c) to[c] = grown(scratch.bytes[source.rows[size_t(c)]], size_t(count));
    kernels_.nearest[n](line(source, axes.nearest_y[size_t(y)]), source.columns, to);
}

void Pass::sample_linear(const Source &source, int y, Scratch &scratch) const {
    const Axes &axes = axes_[size_t(source.axes)];
    const int n = source.components, count = spec_.dst.width;
    float *to[3] = {};
    for (int c = 0; c < n; ++c)
        to[c] = grown(scratch.levels[source.rows[size_t(c)]], size_t(count));
    const int weight = axes.linear_y.weight[size_t(y)];
    const int first = axes.linear_y.first[size_t(y)], second = weight ? first + 1 : first;
    kernels_.linear[n](line(source, first), line(source, second), weight, source.columns, to);
}

void Pass::take_pairs(const Source &source, int row, Scratch &scratch) const {
    uint8_t *to[3] = {};
    for (int c = 0; c < source.components; ++c)
        to[c] = grown(scratch.bytes[source.rows[size_t(c)]], 2 * size_t(spec_.dst.width));
    kernels_.pairs[source.components](line(source, row), source.columns, to);
}

// Makes one of the two rows held source row `row`, mixed along x, but not that in place `keep`.
// Returns its place.
int Pass::mixed_row(int row, int keep, Scratch &scratch) const {
    int *held = scratch.held;
    if (held[0] == row || held[1] == row) return held[0] == row ? 0 : 1;
    const int place = keep >= 0 ? 1 - keep : held[0] < held[1] ? 0 : 1;
    const int count = spec_.dst.width;
    held[place] = row;
    int16_t *to[3] = {}, *chroma[3] = {};
    for (int c = 0; c < mixed_rows(); ++c) to[c] = grown(scratch.mixed[place][c], size_t(count));
    take_pairs(sources_[0], row, scratch);
    const int16_t *weights = axes_[0].opencv_x.weights.data();
    if (!converts()) {
        for (int c = 0; c < mixed_rows(); ++c)
            kernels_.mix(scratch.bytes[c].data(), weights, count, to[c]);
        return place;
    }
    for (int c = 0; c < 3; ++c) chroma[c] = grown(scratch.chroma[c], 2 * size_t(count));
    if (scratch.held_chroma != row / 2) {
        scratch.held_chroma = row / 2;
        for (size_t i = 1; i < sources_.size(); ++i) take_pairs(sources_[i], row / 2, scratch);
        kernels_.chroma(scratch.bytes[1].data(), scratch.bytes[2].data(), count, matrix_, chroma);
    }
    kernels_.mix_yuv(scratch.bytes[0].data(), chroma, weights, count, matrix_, to);
    return place;
}

void Pass::sample_opencv(int y, Scratch &scratch) const {
    const OpencvTable &rows = axes_[0].opencv_y;
    const int above = mixed_row(rows.first[size_t(y)], -1, scratch);
    const int below = mixed_row(rows.second[size_t(y)], above, scratch);
    for (int c = 0; c < mixed_rows(); ++c)
        kernels_.blend(scratch.mixed[above][c].data(), scratch.mixed[below][c].data(),
                       rows.weights[2 * size_t(y) + 1], spec_.dst.width, scratch.bytes[c].data());
}

void Pass::sample_taps(const Source &source, int y, Scratch &scratch) const {
    const Axes &axes = axes_[size_t(source.axes)];
    const int n = source.components, count = spec_.dst.width, width = axes.columns * n;
    float *to[3] = {};
    for (int c = 0; c < n; ++c)
        to[c] = grown(scratch.levels[source.rows[size_t(c)]], size_t(count));
    float *sum = grown(scratch.sum, size_t(width));
    std::fill_n(sum, width, 0.0f);
    const TapTable &taps = axes.taps_y;
    for (int i = 0; i < taps.taps[size_t(y)]; ++i) {
        const uint8_t *from = line(source, taps.first[size_t(y)] + i) + n * axes.first_column;
        kernels_.accumulate(from, taps.weights[size_t(y) * size_t(taps.stride) + size_t(i)], width,
                            sum);
    }
    kernels_.taps[n](sum, axes.taps_x.first.data(), axes.taps_x.taps.data(),
                     axes.taps_x.weights.data(), axes.taps_x.stride, count, to);
}

template <class T, class Yuv, class Luma, class Plain, class Grey>
void Pass::convert(const T *const *from, const ChannelOut *rgb, Yuv yuv, Luma luma, Plain plain,
                   Grey grey) const {
    const int n = spec_.dst.width;
    const float scale = spec_.scale;
    const bool to_grey = spec_.color == ModelColor::kGray;
    switch (converts() ? Layout::kRgb : spec_.layout) {
    case Layout::kI420:
    case Layout::kNv12:
        to_grey ? luma(from[0], n, spec_.matrix, scale, rgb[0])
                : yuv(from, n, spec_.matrix, scale, rgb);
        return;
    case Layout::kRgb:
    case Layout::kBgr:
        if (to_grey) return grey(from, n, scale, rgb[0]);
        for (int c = 0; c < 3; ++c) plain(from[c], n, scale, rgb[c]);
        return;
    case Layout::kGray:
        for (int c = 0; c < channels(); ++c) plain(from[0], n, scale, rgb[c]);
    }
}

void Pass::finish(int y, Scratch &scratch) const {
    const ptrdiff_t plane = ptrdiff_t(spec_.net_width) * spec_.net_height;
    const ptrdiff_t at = ptrdiff_t(y) * spec_.net_width + spec_.dst.left;
    const bool interleave = spec_.nhwc && channels() == 3;
    ChannelOut rgb[3] = {};
    const float *output[3] = {};
    for (int c = 0; c < channels(); ++c) {
        float *row = interleave ? grown(scratch.output[c], size_t(spec_.dst.width))
                                : spec_.out + c * plane + at;
        output[c] = row;
        const int color = spec_.color == ModelColor::kBgr ? 2 - c : c;
        const float *mean_row = spec_.mean_image ? spec_.mean_image + c * plane + at : nullptr;
        rgb[color] = {row, mean_row, spec_.mean[size_t(c)]};
    }
    if (spec_.filter == Filter::kNearest || spec_.filter == Filter::kOpencv) {
        const uint8_t *from[3] = {scratch.bytes[0].data(), scratch.bytes[1].data(),
                                  scratch.bytes[2].data()};
        convert(from, rgb, kernels_.yuv_u8, kernels_.luma_u8, kernels_.plain_u8, kernels_.grey_u8);
    } else {
        const float *from[3] = {scratch.levels[0].data(), scratch.levels[1].data(),
                                scratch.levels[2].data()};
        convert(from, rgb, kernels_.yuv_f32, kernels_.luma_f32, kernels_.plain_f32,
                kernels_.grey_f32);
    }
    if (interleave) kernels_.interleave(output, spec_.dst.width, spec_.out + 3 * at);
}

// The fill, normalised, in columns begin ... end of row y; those behind its end are the next rows'.
void Pass::pad(int y, int begin, int end) const {
    if (begin >= end || spec_.filled) return;
    const ptrdiff_t plane = ptrdiff_t(spec_.net_width) * spec_.net_height;
    const ptrdiff_t row = ptrdiff_t(y) * spec_.net_width;
    const int step = spec_.nhwc ? channels() : 1;
    for (int c = 0; c < channels(); ++c) {
        float *out = spec_.out + (spec_.nhwc ? row * step + c : c * plane + row);
        const float *mean = spec_.mean_image ? spec_.mean_image + c * plane + row : nullptr;
        const float value = spec_.scale * (spec_.fill - spec_.mean[size_t(c)]);
        if (mean)
            for (int x = begin; x < end; ++x) out[x * step] = spec_.scale * (spec_.fill - mean[x]);
        else if (step == 1)
            std::fill(out + begin, out + end, value);
        else
            for (int x = begin; x < end; ++x) out[x * step] = value;
    }
}

}  // namespace headrace::preprocess
