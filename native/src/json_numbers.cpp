// Numbers of objects as JSON text, with the digits that Python's `%.3f` and `%.6f` give.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "arrays.h"
#include "module.h"

namespace nb = nanobind;

namespace {

using noria::In;

void append_integer(std::string &text, std::uint64_t value, int least_digits) {
    char digits[20];
    int n = 0;
    for (; value || n < least_digits; value /= 10) digits[n++] = static_cast<char>('0' + value % 10);
    while (n) text.push_back(digits[--n]);
}

// Exact: the value times 10^decimals is a whole number of 2^exponent, rounded half to even. A value
// that is rounded to zero has no sign.
template <int decimals>
void append_fixed(std::string &text, double value) {
    static_assert(decimals == 3 || decimals == 6);
    constexpr std::uint64_t unit = decimals == 3 ? 1000 : 1000000;
    int exponent;
    const double fraction = std::frexp(std::fabs(value), &exponent);
    if (!(exponent <= 43)) {  // whose units do not fit 64 bits
        char *all = PyOS_double_to_string(value, 'f', decimals, 0, nullptr);
        text += all;
        PyMem_Free(all);
        return;
    }
    const auto mantissa = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
    const int shift = 53 - exponent;
    unsigned __int128 scaled = static_cast<unsigned __int128>(mantissa) * unit;
    std::uint64_t units = 0;
    if (shift < 80) {  // else below any half
        units = static_cast<std::uint64_t>(scaled >> shift);
        const unsigned __int128 one = 1, rest = scaled & ((one << shift) - 1);
        const unsigned __int128 half = shift ? one << (shift - 1) : 0;
        if (shift && (rest > half || (rest == half && (units & 1)))) ++units;
    }
    if (units && std::signbit(value)) text.push_back('-');
    append_integer(text, units / unit, 1);
    text.push_back('.');
    append_integer(text, units % unit, decimals);
}

nb::object text_of(const std::string &text) {
    return nb::steal(PyUnicode_DecodeASCII(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr));
}

// Of objects whose numbers are not all finite: None.
nb::list json_boxes(In<double, nb::ndim<1>> confidences, In<double, nb::shape<-1, 4>> rects) {
    constexpr std::string_view names[] = {",\"left\":", ",\"top\":", ",\"width\":", ",\"height\":"};
    nb::list found;
    std::string text;
    for (std::size_t i = 0; i < rects.shape(0); ++i) {
        const double *box = rects.data() + 4 * i, confidence = confidences.data()[i];
        if (!std::isfinite(confidence) ||
            !std::all_of(box, box + 4, [](double v) { return std::isfinite(v); })) {
            found.append(nb::none());
            continue;
        }
        text.clear();
        append_fixed<6>(text, confidence);
        for (std::size_t k = 0; k < 4; ++k) {
            text += names[k];
            append_fixed<3>(text, box[k]);
        }
        found.append(text_of(text));
    }
    return found;
}

// An empty text for an object without an id; a confidence that is not finite is left out.
nb::list json_tracks(In<std::uint64_t, nb::ndim<1>> ids, In<double, nb::ndim<1>> confidences,
                     std::uint64_t none) {
    nb::list found;
    std::string text;
    for (std::size_t i = 0; i < ids.shape(0); ++i) {
        text.clear();
        if (ids.data()[i] != none) {
            text += ",\"object_id\":";
            append_integer(text, ids.data()[i], 1);
            if (confidences.shape(0) && std::isfinite(confidences.data()[i])) {
                text += ",\"tracker_confidence\":";
                append_fixed<6>(text, confidences.data()[i]);
            }
        }
        found.append(text_of(text));
    }
    return found;
}

}  // namespace

void bind_json_numbers(nb::module_ &m) {
    m.def("json_boxes", &json_boxes, nb::arg("confidences"), nb::arg("rects"),
          "JSON text of confidence and box of each of N objects, from the number of the confidence on: "
          "that with 6 decimals, left, top, width, height with 3. None for numbers that are not finite.");
    m.def("json_tracks", &json_tracks, nb::arg("ids"), nb::arg("confidences"), nb::arg("none"),
          "JSON members with the track of each of N objects, each with its comma; empty for the id none. "
          "Confidences may be empty.");
}
