// A plane seen through a map of places; Python has checked the arguments.
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/unlocked.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::preprocess {
namespace {

using PlaneArray = nb::ndarray<const uint8_t, nb::device::cpu>;
using PlaceArray = nb::ndarray<const float, nb::shape<-1, -1, 2>, nb::c_contig, nb::device::cpu>;
using OutArray = nb::ndarray<uint8_t, nb::c_contig, nb::device::cpu>;

struct Source {
    const uint8_t *data;
    ptrdiff_t stride;
    int width, height, black;
    bool bordered;

    template <int C>
    int at(int x, int y, int c) const {
        if (bordered && (x < 0 || y < 0 || x >= width || y >= height)) return black;
        x = std::clamp(x, 0, width - 1);
        y = std::clamp(y, 0, height - 1);
        return data[y * stride + ptrdiff_t(x) * C + c];
    }
};

// Bilinear, with weights of 1/256.
template <int C>
void row(const Source &source, const float *places, uint8_t *out, size_t width) {
    const auto most_x = float(source.width), most_y = float(source.height);
    for (size_t i = 0; i < width; ++i, out += C) {
        // two pixels beyond the image are all edge: no number overflows
        const float px = places[2 * i], py = places[2 * i + 1];
        if (std::isnan(px)) {
            std::fill_n(out, C, uint8_t(source.black));
            continue;
        }
        const float x = std::clamp(px, -2.f, most_x + 1.f);
        const float y = std::clamp(py, -2.f, most_y + 1.f);
        const float left = std::floor(x), top = std::floor(y);
        const int x0 = int(left), y0 = int(top);
        const int wx = int((x - left) * 256.f + .5f), wy = int((y - top) * 256.f + .5f);
        const bool inside = x0 >= 0 && y0 >= 0 && x0 + 1 < source.width && y0 + 1 < source.height;
        for (int c = 0; c < C; ++c) {
            int a, b, d, e;
            if (inside) {
                const uint8_t *p = source.data + y0 * source.stride + ptrdiff_t(x0) * C + c;
                a = p[0], b = p[C], d = p[source.stride], e = p[source.stride + C];
            } else {
                a = source.at<C>(x0, y0, c), b = source.at<C>(x0 + 1, y0, c);
                d = source.at<C>(x0, y0 + 1, c), e = source.at<C>(x0 + 1, y0 + 1, c);
            }
            const int upper = a * (256 - wx) + b * wx, lower = d * (256 - wx) + e * wx;
            out[c] = uint8_t((upper * (256 - wy) + lower * wy + (1 << 15)) >> 16);
        }
    }
}

void remap(PlaneArray plane, PlaceArray places, OutArray out, int black, bool bordered) {
    const Source source{
        plane.data(), ptrdiff_t(plane.stride(0)), int(plane.shape(1)), int(plane.shape(0)), black,
        bordered};
    const size_t height = places.shape(0), width = places.shape(1);
    const size_t channels = plane.ndim() == 3 ? plane.shape(2) : 1;
    core::Unlocked release;
    for (size_t y = 0; y < height; ++y) {
        const float *from = places.data() + y * width * 2;
        uint8_t *to = out.data() + y * width * channels;
        if (channels == 1)
            row<1>(source, from, to, width);
        else if (channels == 2)
            row<2>(source, from, to, width);
        else
            row<3>(source, from, to, width);
    }
}

}  // namespace

void bind_remap(nb::module_ &m) {
    m.def("remap", &remap, "plane"_a.noconvert(), "places"_a.noconvert(), "out"_a.noconvert(),
          "black"_a, "bordered"_a,
          "Fill (height, width[, channels]) with a plane's values at (x, y) of `places`, "
          "bilinearly; NaN gives `black`, as does what is beyond the plane if `bordered`, else the "
          "plane's edge. Releases the GIL.");
}

}  // namespace headrace::preprocess
