// Numbers of objects as JSON text, with the digits that Python's `%.3f` and `%.6f` give.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "core/arrays.h"
#include "module.h"

namespace nb = nanobind;

namespace headrace::results {
namespace {

using core::In;

// Writes the digits of a number before `end`, at least so many; returns the first.
char *digits_before(char *end, std::uint64_t value, int least) {
    for (int n = 0; value || n < least; value /= 10, ++n)
        *--end = static_cast<char>('0' + value % 10);
    return end;
}

void append_integer(std::string &text, std::uint64_t value) {
    char digits[20];
    char *first = digits_before(std::end(digits), value, 1);
    text.append(first, std::end(digits));
}

// Exact: 24 bits of a float times 10^decimals fit a double, and are rounded half to even. A value
// that is rounded to zero has no sign.
template <int decimals>
void append_fixed(std::string &text, float value) {
    static_assert(decimals == 3 || decimals == 6);
    constexpr std::uint32_t kUnit = decimals == 3 ? 1000 : 1000000;
    const double scaled = std::fabs(static_cast<double>(value)) * kUnit;
    if (!(scaled < 9e18)) {  // does not fit 64 bits
        char *all = PyOS_double_to_string(static_cast<double>(value), 'f', decimals, 0, nullptr);
        text += all;
        PyMem_Free(all);
        return;
    }
    auto units = static_cast<std::uint64_t>(scaled);
    const double rest = scaled - static_cast<double>(units);  // exact, whatever the rounding mode
    if (rest > 0.5 || (rest == 0.5 && (units & 1))) ++units;
    char digits[24];
    char *first = digits_before(std::end(digits), units % kUnit, decimals);
    *--first = '.';
    first = digits_before(first, units / kUnit, 1);
    if (units && std::signbit(value)) *--first = '-';
    text.append(first, std::end(digits));
}

void append_bytes(std::string &text, nb::handle part) {
    char *data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(part.ptr(), &data, &size)) throw nb::python_error();
    text.append(data, static_cast<std::size_t>(size));
}

// Objects whose numbers are not all finite are left out; tails are those of the others, or empty.
nb::tuple json_objects(In<float, nb::ndim<1>> confidences, In<float, nb::shape<-1, 4>> rects,
                       In<std::int32_t, nb::ndim<1>> components,
                       In<std::int32_t, nb::ndim<1>> classes, In<std::uint64_t, nb::ndim<1>> ids,
                       std::optional<In<float, nb::ndim<1>>> scores, std::uint64_t none,
                       nb::handle heads, const nb::list &tails) {
    constexpr std::string_view kNames[] = {",\"left\":", ",\"top\":", ",\"width\":", ",\"height\":"};
    std::string text;
    text.reserve(160 * rects.shape(0));
    std::size_t written = 0;
    for (std::size_t i = 0; i < rects.shape(0); ++i) {
        const float *box = rects.data() + 4 * i, confidence = confidences.data()[i];
        if (!std::isfinite(confidence) ||
            !std::all_of(box, box + 4, [](float v) { return std::isfinite(v); }))
            continue;
        if (written) text.push_back(',');
        const nb::object head = heads[nb::make_tuple(components.data()[i], classes.data()[i])];
        append_bytes(text, head);
        append_fixed<6>(text, confidence);
        for (std::size_t k = 0; k < 4; ++k) {
            text += kNames[k];
            append_fixed<3>(text, box[k]);
        }
        if (ids.data()[i] != none) {
            text += ",\"object_id\":";
            append_integer(text, ids.data()[i]);
            if (scores && std::isfinite(scores->data()[i])) {
                text += ",\"tracker_confidence\":";
                append_fixed<6>(text, scores->data()[i]);
            }
        }
        if (tails.size()) append_bytes(text, tails[written]);
        text.push_back('}');
        ++written;
    }
    return nb::make_tuple(nb::bytes(text.data(), text.size()), rects.shape(0) - written);
}

}  // namespace

void bind_json_numbers(nb::module_ &m) {
    m.def("json_objects", &json_objects, nb::arg("confidences"), nb::arg("rects"),
          nb::arg("components"), nb::arg("classes"), nb::arg("ids"), nb::arg("scores").none(),
          nb::arg("none"), nb::arg("heads"), nb::arg("tails"),
          "JSON of N objects, with commas between, and how many are left out for numbers that are not "
          "finite. Of each: its head, bytes of heads by (component, class), up to the confidence; that "
          "with 6 decimals, left, top, width, height with 3; the track, unless its id is none, with its "
          "score, if that is finite; its tail, if there are tails, one for each object that is written; "
          "the closing brace.");
}

}  // namespace headrace::results
