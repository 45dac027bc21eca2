// Binding of the fused pre-processing pass; Python has checked the arguments.
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include "core/thread_pool.h"
#include "core/unlocked.h"
#include "module.h"
#include "preprocess/fit.h"
#include "preprocess/pass.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::preprocess {
namespace {

using PlaneArray = nb::ndarray<const uint8_t, nb::device::cpu>;
using FloatArray = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using MeanArray = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

template <class T>
using Column = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T, int N>
using Table = nb::ndarray<T, nb::shape<-1, N>, nb::c_contig, nb::device::cpu>;

IntRect rect(const int32_t *ltwh) { return {ltwh[0], ltwh[1], ltwh[2], ltwh[3]}; }

// The last pass of this thread where it fits.
const Pass &pass_of(const PassSpec &item, const RowKernels &kernels) {
    static thread_local std::optional<Pass> kept;
    if (kept && kept->fits(item, kernels))
        kept->take(item);
    else
        kept.emplace(item, kernels);
    return *kept;
}

// A row of `src` without area asks for nothing: its item becomes zeros.
void preprocess(const std::vector<PlaneArray> &planes, int layout, std::array<int, 2> frame_size,
                const Table<const int32_t, 4> &src, const Table<const int32_t, 4> &dst,
                std::array<float, 6> matrix, FloatArray out, std::array<int, 2> net_size, int color,
                bool nhwc, float scale, float fill, bool filled, std::array<float, 3> mean,
                std::optional<MeanArray> mean_image, int filter, int threads, bool generic) {
    PassSpec spec{};
    spec.layout = Layout(layout);
    for (size_t i = 0; i < planes.size() && i < spec.planes.size(); ++i)
        spec.planes[i] = {planes[i].data(), ptrdiff_t(planes[i].stride(0))};
    spec.frame_width = frame_size[0];
    spec.frame_height = frame_size[1];
    spec.matrix = {matrix[0], matrix[1], matrix[2], matrix[3], matrix[4], matrix[5]};
    spec.color = ModelColor(color);
    spec.nhwc = nhwc;
    spec.net_width = net_size[0];
    spec.net_height = net_size[1];
    spec.scale = scale;
    spec.fill = fill;
    spec.filled = filled;
    spec.mean = mean;
    spec.mean_image = mean_image ? mean_image->data() : nullptr;
    spec.filter = Filter(filter);
    spec.out = out.data();
    const int count = int(src.shape(0));
    // Threads share the items, or the rows of an item where there are fewer of them.
    const bool by_item = count >= threads;
    spec.threads = by_item ? 1 : threads;
    const RowKernels *fast = generic ? nullptr : vector_row_kernels();
    const RowKernels &kernels = fast ? *fast : generic_row_kernels();
    const int32_t *from = src.data(), *to = dst.data();
    core::Unlocked release;
    core::ThreadPool::shared().run(by_item ? threads : 1, count, [&](int i) {
        PassSpec item = spec;
        item.src = rect(from + 4 * ptrdiff_t(i));
        item.dst = rect(to + 4 * ptrdiff_t(i));
        item.out += item.item_size() * i;
        if (item.src.width > 0)
            pass_of(item, kernels).run();
        else
            std::fill_n(item.out, item.item_size(), 0.0f);
    });
}

void fit_crops(const Table<const double, 4> &rects, std::array<int, 2> frame_size,
               std::array<int, 2> net_size, bool keep_aspect, bool symmetric, bool modern,
               const Column<bool> &valid, const Table<int32_t, 4> &src,
               const Table<int32_t, 4> &dst, const Table<double, 2> &ratio) {
    const FitRules rules{
        {frame_size[0], frame_size[1]}, {net_size[0], net_size[1]}, keep_aspect, symmetric, modern};
    for (size_t i = 0; i < rects.shape(0); ++i) {
        Fit fit;
        valid.data()[i] = fit_crop(rects.data() + 4 * i, rules, fit);
        std::copy_n(fit.src, 4, src.data() + 4 * i);
        std::copy_n(fit.dst, 4, dst.data() + 4 * i);
        std::copy_n(fit.ratio, 2, ratio.data() + 2 * i);
    }
}

}  // namespace

void bind(nb::module_ &m) {
    m.def("preprocess", &preprocess, "planes"_a, "layout"_a, "frame_size"_a, "src"_a, "dst"_a,
          "matrix"_a, "out"_a.noconvert(), "net_size"_a, "color"_a, "nhwc"_a, "scale"_a, "fill"_a,
          "filled"_a, "mean"_a, "mean_image"_a.none(), "filter"_a, "threads"_a, "generic"_a,
          "Crop, scale, convert and normalise pieces of one frame, (N, 4) src and dst, into N "
          "items of"
          " `out`; zeros where src has no width. `filled`: the bars are there. Releases the GIL.");
    m.def("fit_crops", &fit_crops, "rects"_a, "frame_size"_a, "net_size"_a, "keep_aspect"_a,
          "symmetric"_a, "modern"_a, "valid"_a.noconvert(), "src"_a.noconvert(),
          "dst"_a.noconvert(), "ratio"_a.noconvert(),
          "headrace.infer.geometry.fit for many rectangles of one frame; fills the last four, each "
          "with"
          " N rows.");
    m.def(
        "preprocess_has_simd", [] { return vector_row_kernels() != nullptr; },
        "Whether this machine runs the vector kernels of preprocess.");
}

}  // namespace headrace::preprocess
