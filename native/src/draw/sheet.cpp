// Planes of a frame that are drawn on: rectangles and texts, each one call for all planes. Python
// has checked the arguments; headrace.media.draw.canvas says what each means.
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/arrays.h"
#include "core/vectorise.h"  // last, see there
#include "draw/glyphs.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::draw {
namespace {

using PlaneArray = nb::ndarray<uint8_t, nb::c_contig, nb::device::cpu>;
using Color = std::array<uint8_t, 3>;

struct Span {
    int first, last, part;  // part: how much of each sample, 1 or 2 halves
};

struct Spans {
    std::array<Span, 3> all{};
    size_t count = 0;

    void add(int first, int last, int part) { all[count++] = {first, last, part}; }
    const Span *begin() const { return all.data(); }
    const Span *end() const { return all.data() + count; }
};

HEADRACE_WIDE void tint(uint8_t *__restrict out, unsigned value, unsigned opacity, int count) {
    const unsigned keep = 255 - opacity, add = value * opacity + 127;
    for (int x = 0; x < count; ++x) {
        const auto sum = static_cast<uint16_t>(out[x] * keep + add);
        // Exact for all sums of 16 bits: division by 255.
        out[x] = static_cast<uint8_t>((sum + 1 + (sum >> 8)) >> 8);
    }
}

uint8_t mixed(unsigned under, unsigned over, unsigned alpha) {
    return static_cast<uint8_t>((under * (255 - alpha) + over * alpha + 127) / 255);
}

// Colours of the planes and opacity of text, by how much it covers a pixel.
class Inks {
public:
    Inks(core::In<float, nb::shape<256, 3>> colors, core::In<uint8_t, nb::shape<256>> alphas) {
        std::copy_n(colors.data(), colors_.size(), colors_.begin());
        std::copy_n(alphas.data(), alphas_.size(), alphas_.begin());
        std::transform(colors_.begin(), colors_.end(), bytes_.begin(), [](float value) {
            return static_cast<uint8_t>(std::min(std::max(std::nearbyint(value), 0.0f), 255.0f));
        });
        opaque_ = std::all_of(alphas_.begin(), alphas_.end(), [](int a) { return a == 255; });
    }

    bool opaque() const { return opaque_; }
    unsigned alpha(uint8_t level) const { return alphas_[level]; }
    const uint8_t *bytes(uint8_t level) const { return &bytes_[size_t{level} * 3]; }
    const float *color(uint8_t level) const { return &colors_[size_t{level} * 3]; }

private:
    std::array<float, 768> colors_{};
    std::array<uint8_t, 768> bytes_{};
    std::array<uint8_t, 256> alphas_{};
    bool opaque_ = false;
};

class Sheet {
public:
    explicit Sheet(std::vector<PlaneArray> planes) : planes_(std::move(planes)) {
        height_ = static_cast<int>(planes_[0].shape(0));
        width_ = static_cast<int>(planes_[0].shape(1));
    }

    void fill(int left, int top, int right, int bottom, Color color, int opacity) {
        left = std::max(left, 0), top = std::max(top, 0);
        right = std::min(right, width_), bottom = std::min(bottom, height_);
        if (left >= right || top >= bottom) return;
        if (planes_.size() == 1) {
            fill_packed(left, top, right, bottom, color, opacity);
            return;
        }
        area(0, left, top, right, bottom, color[0], opacity);
        // Chroma covers 2 x 2 pixels. The edges of an odd box cover half of it: half the colour.
        const Spans columns = halves(left, right, width_);
        for (const Span &y : halves(top, bottom, height_))
            for (const Span &x : columns)
                for (size_t i = 1; i < 3; ++i)
                    area(i, x.first, y.first, x.last, y.last, color[i],
                         opacity * x.part * y.part / 4);
    }

    void outline(int left, int top, int right, int bottom, int width, Color color, int opacity) {
        if (right - left <= 2 * width || bottom - top <= 2 * width) {
            fill(left, top, right, bottom, color, opacity);
            return;
        }
        fill(left, top, right, top + width, color, opacity);
        fill(left, bottom - width, right, bottom, color, opacity);
        fill(left, top + width, left + width, bottom - width, color, opacity);
        fill(right - width, top + width, right, bottom - width, color, opacity);
    }

    void paste(const Cover &cover, int left, int top, const Inks &inks) {
        const Part part{cover, left, top, inks};
        const int height = static_cast<int>(cover.shape(0)),
                  width = static_cast<int>(cover.shape(1));
        const int x0 = std::max(left, 0), x1 = std::min(left + width, width_);
        const int y0 = std::max(top, 0), y1 = std::min(top + height, height_);
        if (x0 >= x1 || y0 >= y1) return;
        if (planes_.size() == 1) {
            for (int y = y0; y < y1; ++y) paste_packed(part, x0, x1, y);
            return;
        }
        for (int y = y0; y < y1; ++y) paste_luma(part, x0, x1, y);
        for (int y = y0 / 2; y < (y1 + 1) / 2; ++y) paste_chroma(part, x0 / 2, (x1 + 1) / 2, y);
    }

private:
    struct Part {
        const Cover &cover;
        int left, top;
        const Inks &inks;

        const uint8_t *at(int x, int y) const {
            return cover.data() + static_cast<ptrdiff_t>(y - top) * cover.stride(0) + (x - left);
        }
    };

    uint8_t *row(size_t plane, int y) {
        return planes_[plane].data() + static_cast<ptrdiff_t>(y) * planes_[plane].stride(0);
    }

    void area(size_t plane, int left, int top, int right, int bottom, unsigned value, int opacity) {
        if (opacity <= 0) return;
        for (int y = top; y < bottom; ++y) {
            uint8_t *out = row(plane, y) + left;
            if (opacity >= 255 && right - left < 16)  // a border; no call for so few
                for (int x = 0; x < right - left; ++x) out[x] = static_cast<uint8_t>(value);
            else if (opacity >= 255)
                std::memset(out, static_cast<int>(value), static_cast<size_t>(right - left));
            else
                tint(out, value, static_cast<unsigned>(opacity), right - left);
        }
    }

    void fill_packed(int left, int top, int right, int bottom, Color color, int opacity) {
        const auto bytes = static_cast<size_t>(right - left) * 3;
        uint8_t *first = nullptr;
        for (int y = top; y < bottom; ++y) {
            uint8_t *out = row(0, y) + static_cast<ptrdiff_t>(left) * 3;
            if (opacity >= 255 && first) {
                std::memcpy(out, first, bytes);
                continue;
            }
            for (size_t i = 0; i < bytes; i += 3)
                for (size_t c = 0; c < 3; ++c)
                    out[i + c] = opacity >= 255
                                     ? color[c]
                                     : mixed(out[i + c], color[c], static_cast<unsigned>(opacity));
            first = out;
        }
    }

    void paste_packed(const Part &part, int x0, int x1, int y) {
        const uint8_t *level = part.at(x0, y);
        uint8_t *out = row(0, y) + static_cast<ptrdiff_t>(x0) * 3;
        const bool opaque = part.inks.opaque();
        for (int x = x0; x < x1; ++x, ++level, out += 3) {
            const uint8_t *color = part.inks.bytes(*level);
            const unsigned alpha = part.inks.alpha(*level);
            for (size_t c = 0; c < 3; ++c)
                out[c] = opaque ? color[c] : mixed(out[c], color[c], alpha);
        }
    }

    void paste_luma(const Part &part, int x0, int x1, int y) {
        const uint8_t *level = part.at(x0, y);
        uint8_t *out = row(0, y) + x0;
        const bool opaque = part.inks.opaque();
        for (int x = x0; x < x1; ++x, ++level, ++out) {
            const uint8_t luma = *part.inks.bytes(*level);
            *out = opaque ? luma : mixed(*out, luma, part.inks.alpha(*level));
        }
    }

    // Colours of four pixels count as much as they are seen. The cover has even sides and an even
    // place, so that a sample has all of its pixels in it.
    void paste_chroma(const Part &part, int x0, int x1, int y) {
        const uint8_t *first = part.at(2 * x0, 2 * y), *second = first + part.cover.stride(0);
        uint8_t *blue = row(1, y) + x0, *red = row(2, y) + x0;
        for (int x = x0; x < x1; ++x, first += 2, second += 2, ++blue, ++red) {
            std::array<uint8_t, 2> colors{};
            unsigned alpha = 0;
            if (first[0] == first[1] && first[0] == second[0] && first[0] == second[1]) {
                alpha = part.inks.alpha(first[0]);
                colors = {part.inks.bytes(first[0])[1], part.inks.bytes(first[0])[2]};
            } else {
                alpha = mean_of(part.inks, {first[0], first[1], second[0], second[1]}, colors);
            }
            *blue = mixed(*blue, colors[0], alpha);
            *red = mixed(*red, colors[1], alpha);
        }
    }

    static unsigned mean_of(const Inks &inks, std::array<uint8_t, 4> levels,
                            std::array<uint8_t, 2> &colors) {
        unsigned seen = 0;
        float blue = 0, red = 0;
        for (const uint8_t level : levels) {
            const unsigned weight = inks.alpha(level);
            seen += weight;
            blue += inks.color(level)[1] * static_cast<float>(weight);
            red += inks.color(level)[2] * static_cast<float>(weight);
        }
        if (!seen) return 0;
        colors = {rounded(blue / static_cast<float>(seen)),
                  rounded(red / static_cast<float>(seen))};
        return (seen + 1 + (seen >> 2 & 1)) >> 2;  // a quarter, halves to even
    }

    static uint8_t rounded(float value) {
        return static_cast<uint8_t>(std::min(std::max(value, 0.0f), 255.0f) + 0.5f);
    }

    // Chroma samples touched by pixels start..end, with how much of each.
    static Spans halves(int start, int end, int size) {
        if (end == size) end += size % 2;  // the last sample of an odd size has one pixel only
        Spans spans;
        if (start % 2) spans.add(start / 2, start / 2 + 1, 1);
        if ((start + 1) / 2 < end / 2) spans.add((start + 1) / 2, end / 2, 2);
        if (end % 2 && end / 2 >= (start + 1) / 2) spans.add(end / 2, end / 2 + 1, 1);
        return spans;
    }

    std::vector<PlaneArray> planes_;
    int width_, height_;
};

// Far outside is as good as outside; no sum below is too large for a number of pixels.
double near(double edge) { return std::min(std::max(edge, -1e6), 1e6); }

nb::list whole_boxes(core::In<double, nb::shape<-1, 4>> rects, int width, int height, bool even) {
    nb::list boxes;
    for (size_t i = 0; i < rects.shape(0); ++i) {
        const double *rect = rects.data() + 4 * i;
        std::array<double, 4> edge{near(rect[0]), near(rect[1]), near(rect[0] + rect[2]),
                                   near(rect[1] + rect[3])};
        bool shown = edge[0] < edge[2] && edge[1] < edge[3] &&
                     std::all_of(rect, rect + 4, [](double v) { return std::isfinite(v); });
        if (shown && even) {
            for (double &value : edge) value = 2 * std::nearbyint(value / 2);
            edge[2] = std::max(edge[0] + 2, edge[2]);
            edge[3] = std::max(edge[1] + 2, edge[3]);
            shown = edge[0] < width && edge[1] < height && edge[2] > 0 && edge[3] > 0;
        }
        if (shown)
            boxes.append(nb::make_tuple(static_cast<int>(edge[0]), static_cast<int>(edge[1]),
                                        static_cast<int>(std::ceil(edge[2])),
                                        static_cast<int>(std::ceil(edge[3]))));
        else
            boxes.append(nb::none());
    }
    return boxes;
}

}  // namespace

void bind_sheet(nb::module_ &m) {
    const auto color = [](nb::tuple values) {
        return Color{nb::cast<uint8_t>(values[0]), nb::cast<uint8_t>(values[1]),
                     nb::cast<uint8_t>(values[2])};
    };
    m.def("whole_boxes", &whole_boxes, "rects"_a.noconvert(), "width"_a, "height"_a, "even"_a,
          nb::sig("def whole_boxes(rects: NDArray[numpy.float64], width: int, height: int, even: "
                  "bool) -> list[tuple[int, int, int, int] | None]"),
          "Left, top, right and bottom in whole pixels of rectangles; None where one is empty, not "
          "finite, or, as far as they are even, outside of the frame.");
    nb::class_<Inks>(m, "Inks",
                     "Colours of the planes and opacities for each level of a text's cover.")
        .def(nb::init<core::In<float, nb::shape<256, 3>>, core::In<uint8_t, nb::shape<256>>>(),
             "colors"_a.noconvert(), "alphas"_a.noconvert());
    nb::class_<Sheet>(
        m, "Sheet",
        "Planes to draw on: one of (H, W, 3), or Y, U, V with chroma of 2 x 2 pixels. "
        "Everything is clipped to them; opacities are 0..255.")
        .def(nb::init<std::vector<PlaneArray>>(), "planes"_a)
        .def(
            "fill",
            [color](Sheet &sheet, int left, int top, int right, int bottom, nb::tuple values,
                    int opacity) { sheet.fill(left, top, right, bottom, color(values), opacity); },
            "left"_a, "top"_a, "right"_a, "bottom"_a, "color"_a, "opacity"_a)
        .def(
            "outline",
            [color](Sheet &sheet, int left, int top, int right, int bottom, int width,
                    nb::tuple values, int opacity) {
                sheet.outline(left, top, right, bottom, width, color(values), opacity);
            },
            "left"_a, "top"_a, "right"_a, "bottom"_a, "width"_a, "color"_a, "opacity"_a,
            "A border of so many pixels inside a box; one too small for it is filled.")
        .def("paste", &Sheet::paste, "cover"_a.noconvert(), "left"_a, "top"_a, "inks"_a,
             "Blend a text, its corner at an even place.");
}

}  // namespace headrace::draw
