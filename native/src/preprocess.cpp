// Binding of the fused pre-processing pass; Python has checked the arguments.
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "module.h"
#include "preprocess_pass.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using PlaneArray = nb::ndarray<const uint8_t, nb::device::cpu>;
using FloatArray = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using MeanArray = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

IntRect rect(const std::array<int, 4> &ltwh) { return {ltwh[0], ltwh[1], ltwh[2], ltwh[3]}; }

void preprocess(const std::vector<PlaneArray> &planes, int layout, std::array<int, 2> frame_size,
                std::array<int, 4> src, std::array<int, 4> dst, std::array<float, 6> matrix,
                FloatArray out, std::array<int, 2> net_size, int color, bool nhwc, float scale,
                std::array<float, 3> mean, std::optional<MeanArray> mean_image, int filter,
                int threads, bool generic) {
    PassSpec spec{};
    spec.layout = Layout(layout);
    for (size_t i = 0; i < planes.size() && i < spec.planes.size(); ++i)
        spec.planes[i] = {planes[i].data(), ptrdiff_t(planes[i].stride(0))};
    spec.frame_width = frame_size[0];
    spec.frame_height = frame_size[1];
    spec.src = rect(src);
    spec.dst = rect(dst);
    spec.matrix = {matrix[0], matrix[1], matrix[2], matrix[3], matrix[4], matrix[5]};
    spec.color = ModelColor(color);
    spec.nhwc = nhwc;
    spec.net_width = net_size[0];
    spec.net_height = net_size[1];
    spec.scale = scale;
    spec.mean = mean;
    spec.mean_image = mean_image ? mean_image->data() : nullptr;
    spec.filter = Filter(filter);
    spec.threads = threads;
    spec.out = out.data();
    const RowKernels *fast = generic ? nullptr : avx2_row_kernels();
    nb::gil_scoped_release release;
    Pass(spec, fast ? *fast : generic_row_kernels()).run();
}

}  // namespace

void bind_preprocess(nb::module_ &m) {
    m.def("preprocess", &preprocess, "planes"_a, "layout"_a, "frame_size"_a, "src"_a, "dst"_a,
          "matrix"_a, "out"_a.noconvert(), "net_size"_a, "color"_a, "nhwc"_a, "scale"_a, "mean"_a,
          "mean_image"_a.none(), "filter"_a, "threads"_a, "generic"_a,
          "Crop, scale, convert and normalise one frame into `out`. Releases the GIL.");
    m.def("has_avx2", [] { return avx2_row_kernels() != nullptr; },
          "Whether the AVX2 kernels are used.");
}
