// Bindings of the sampling kernels: roi_sample, roi_max_pool, deformed_columns,
// deformable_attention.
#include "plugins/sample.h"

#include <nanobind/stl/array.h>

#include <array>

#include "core/arrays.h"
#include "core/unlocked.h"
#include "module.h"

namespace nb = nanobind;

namespace headrace::plugins {
namespace {

using core::Fill;
using core::In;

using MapIn = In<float, nb::ndim<4>>;

Map map_of(const MapIn &map) {
    return {map.data(), map.shape(0), map.shape(1), map.shape(2), map.shape(3)};
}

void roi_sample(MapIn map, In<std::int32_t, nb::ndim<1>> images, In<std::int32_t, nb::ndim<1>> rows,
                In<float, nb::shape<-1, 4>> grids, In<std::int32_t, nb::shape<-1, 2>> counts,
                float offset, int outside, bool largest, Fill<float, nb::ndim<4>> out) {
    const Map source = map_of(map);
    const RoiRule rule{offset, static_cast<Outside>(outside), largest};
    const std::size_t bins_y = out.shape(2), bins_x = out.shape(3);
    core::Unlocked release;
    for (std::size_t i = 0; i < images.shape(0); ++i) {
        const float *g = grids.data() + 4 * i;
        const std::int32_t *n = counts.data() + 2 * i;
        float *to = out.data() +
                    static_cast<std::size_t>(rows.data()[i]) * source.channels * bins_y * bins_x;
        roi(source, static_cast<std::size_t>(images.data()[i]), {g[0], g[1], n[0]},
            {g[2], g[3], n[1]}, bins_y, bins_x, rule, to);
    }
}

void roi_max_pool(MapIn map, In<std::int32_t, nb::ndim<1>> images,
                  In<std::int64_t, nb::shape<-1, 4>> regions, Fill<float, nb::ndim<4>> out) {
    const Map source = map_of(map);
    const std::size_t each = out.shape(1) * out.shape(2) * out.shape(3);
    core::Unlocked release;
    for (std::size_t i = 0; i < images.shape(0); ++i) {
        const std::int64_t *r = regions.data() + 4 * i;
        pool(source, static_cast<std::size_t>(images.data()[i]), {r[0], r[1], r[2], r[3]},
             out.shape(2), out.shape(3), out.data() + i * each);
    }
}

// `numbers`: kernel y, x; out y, x; stride y, x; padding y, x; dilation y, x; groups.
void deformed_columns(MapIn map, std::size_t image, const std::array<std::int64_t, 11> &numbers,
                      In<float, nb::ndim<3>> offset, In<float, nb::ndim<3>> mask,
                      Fill<float, nb::ndim<2>> columns) {
    const auto &n = numbers;
    const auto size = [&](std::size_t i) { return static_cast<std::size_t>(n[i]); };
    const Convolution c{size(0), size(1), size(2), size(3), n[4],    n[5],
                        n[6],    n[7],    n[8],    n[9],    size(10)};
    core::Unlocked release;
    deformed(map_of(map), image, c, offset.data(), mask.data(), columns.data());
}

void deformable_attention(In<float, nb::ndim<4>> value, In<std::int32_t, nb::shape<-1, 2>> shapes,
                          In<std::int32_t, nb::ndim<1>> starts, In<float, nb::ndim<6>> locations,
                          In<float, nb::ndim<5>> weights, Fill<float, nb::ndim<4>> out) {
    const Attention a{value.shape(1),   value.shape(2),   value.shape(3), weights.shape(3),
                      weights.shape(1), weights.shape(4), shapes.data(),  starts.data()};
    const std::size_t of_value = a.places * a.heads * a.depth;
    const std::size_t of_weights = a.queries * a.heads * a.levels * a.points;
    const std::size_t of_out = a.queries * a.heads * a.depth;
    core::Unlocked release;
    for (std::size_t i = 0; i < value.shape(0); ++i)
        attention(a, value.data() + i * of_value, locations.data() + i * of_weights * 2,
                  weights.data() + i * of_weights, out.data() + i * of_out);
}

}  // namespace

void bind_sample(nb::module_ &m) {
    m.def("roi_sample", &roi_sample, nb::arg("map"), nb::arg("images"), nb::arg("rows"),
          nb::arg("grids"), nb::arg("counts"), nb::arg("offset"), nb::arg("outside"),
          nb::arg("largest"), nb::arg("out"),
          "Regions of (B, C, H, W): region i of image images[i] fills out[rows[i]]. grids is start "
          "y, step y, start x, step x; counts the samples of a bin. Releases the GIL.");
    m.def("roi_max_pool", &roi_max_pool, nb::arg("map"), nb::arg("images"), nb::arg("regions"),
          nb::arg("out"),
          "Caffe's ROI pooling of (B, C, H, W); regions are y0, x0, y1, x1, the last counted in. "
          "Releases the GIL.");
    m.def("deformed_columns", &deformed_columns, nb::arg("map"), nb::arg("image"),
          nb::arg("numbers"), nb::arg("offset"), nb::arg("mask"), nb::arg("columns"),
          "What each tap of a deformable convolution reads: (C * taps, out). Releases the GIL.");
    m.def("deformable_attention", &deformable_attention, nb::arg("value"), nb::arg("shapes"),
          nb::arg("starts"), nb::arg("locations"), nb::arg("weights"), nb::arg("out"),
          "Multi-scale deformable attention. Releases the GIL.");
}

}  // namespace headrace::plugins
