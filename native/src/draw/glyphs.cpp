// Texts put together of glyphs that a font drew once: labels differ in their numbers only.
#include "draw/glyphs.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/arrays.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::draw {
namespace {

// Characters of one font at one size, each on a strip as high as the text.
class Glyphs {
public:
    void add(uint32_t code, Cover strip, int margin, int advance) {
        Glyph glyph{{}, static_cast<int>(strip.shape(1)), margin, advance};
        height_ = static_cast<int>(strip.shape(0));
        glyph.strip.assign(strip.data(), strip.data() + strip.size());
        glyphs_.insert_or_assign(code, std::move(glyph));
    }

    // None if a character is not known.
    nb::object cover(nb::str text, int padding) const {
        const std::vector<const Glyph *> run = known(text);
        const auto length = static_cast<size_t>(PyUnicode_GetLength(text.ptr()));
        if (run.size() < length) return nb::none();
        int width = 2 * padding;
        for (const Glyph *glyph : run) width += glyph->advance;
        width = std::max(2, width + width % 2);
        std::vector<uint8_t> pixels(static_cast<size_t>(width) * static_cast<size_t>(height_));
        int x = padding;
        for (const Glyph *glyph : run) {
            draw(*glyph, x - glyph->margin, width, pixels.data());
            x += glyph->advance;
        }
        return nb::cast(core::array_of(std::move(pixels),
                                       {static_cast<size_t>(height_), static_cast<size_t>(width)}));
    }

private:
    struct Glyph {
        std::vector<uint8_t> strip;
        int width, margin, advance;
    };

    std::vector<const Glyph *> known(nb::str text) const {
        std::vector<const Glyph *> run;
        const auto length = PyUnicode_GetLength(text.ptr());
        run.reserve(static_cast<size_t>(length));
        for (Py_ssize_t i = 0; i < length; ++i) {
            const auto found = glyphs_.find(PyUnicode_ReadChar(text.ptr(), i));
            if (found == glyphs_.end()) break;
            run.push_back(&found->second);
        }
        return run;
    }

    // Over what is there: neighbours may touch.
    void draw(const Glyph &glyph, int left, int width, uint8_t *pixels) const {
        const int first = std::max(0, -left), last = std::min(glyph.width, width - left);
        for (int y = 0; y < height_; ++y) {
            const uint8_t *from = glyph.strip.data() + static_cast<ptrdiff_t>(y) * glyph.width;
            uint8_t *to = pixels + static_cast<ptrdiff_t>(y) * width + left;
            for (int x = first; x < last; ++x) {
                if (!from[x]) continue;
                const unsigned product = to[x] * (255u - from[x]) + 128;
                to[x] = static_cast<uint8_t>(from[x] + ((product + (product >> 8)) >> 8));
            }
        }
    }

    std::unordered_map<uint32_t, Glyph> glyphs_;
    int height_ = 0;
};

}  // namespace

void bind_glyphs(nb::module_ &m) {
    nb::class_<Glyphs>(m, "Glyphs", "Characters of one font at one size, drawn once each.")
        .def(nb::init<>())
        .def("add", &Glyphs::add, "code"_a, "strip"_a.noconvert(), "margin"_a, "advance"_a,
             "A character on a strip of the text's height; it begins margin columns in.")
        .def("cover", &Glyphs::cover, "text"_a, "padding"_a,
             nb::sig("def cover(self, text: str, padding: int) -> NDArray[numpy.uint8] | None"),
             "(h, w) cover 0..255 of a text of one line, w even; None if a character is lacking.");
}

}  // namespace headrace::draw
