// Numbers of objects as JSON text, with the digits that Python's `%.3f` and `%.6f` give.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

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

// The numbers of one field: keys with comma and colon, and for each object as many values.
struct Numbers {
    nb::tuple keys;
    int digits;
    In<float> values;
    const float *first = values.data();
    std::size_t width = keys.size();

    const float *of(std::size_t object) const { return first + width * object; }

    bool finite(std::size_t object) const {
        return std::all_of(of(object), of(object) + width,
                           [](float v) { return std::isfinite(v); });
    }

    void append(std::string &text, std::size_t object) const {
        const float *value = of(object);
        for (std::size_t k = 0; k < width; ++k) {
            append_bytes(text, keys[k]);
            if (digits == 3)
                append_fixed<3>(text, value[k]);
            else
                append_fixed<6>(text, value[k]);
        }
    }
};

// The beginnings of the classes of one frame, each looked up once.
class Heads {
public:
    explicit Heads(nb::handle by_class) : by_class_(by_class) {}

    nb::handle of(std::int32_t component, std::int32_t class_id) {
        for (const Entry &entry : seen_)
            if (entry.class_id == class_id && entry.component == component) return entry.head;
        seen_.push_back({component, class_id, by_class_[nb::make_tuple(component, class_id)]});
        return seen_.back().head;
    }

private:
    struct Entry {
        std::int32_t component, class_id;
        nb::object head;
    };
    nb::handle by_class_;
    std::vector<Entry> seen_;
};

// The fields of a layout whose arrays are there: those from `first` on.
std::vector<Numbers> numbers_of(const nb::tuple &layout, const nb::tuple &arrays,
                                std::size_t first) {
    std::vector<Numbers> fields;
    fields.reserve(layout.size());
    for (std::size_t i = 0; i < layout.size(); ++i) {
        const nb::object values = arrays[first + i];
        if (values.is_none()) continue;
        const nb::object row = layout[i];
        fields.push_back(
            {nb::borrow<nb::tuple>(row[0]), nb::cast<int>(row[1]), nb::cast<In<float>>(values)});
    }
    return fields;
}

nb::tuple json_objects(nb::handle by_class, In<std::int32_t, nb::ndim<1>> components,
                       In<std::int32_t, nb::ndim<1>> classes, In<std::uint64_t, nb::ndim<1>> ids,
                       std::uint64_t none, const nb::bytes &track, const nb::tuple &numbers,
                       const nb::tuple &of_track, const nb::tuple &arrays, const nb::list &tails) {
    const std::vector<Numbers> always = numbers_of(numbers, arrays, 0);
    const std::vector<Numbers> tracked = numbers_of(of_track, arrays, numbers.size());
    Heads heads(by_class);
    const std::size_t count = ids.shape(0);
    std::string text;
    text.reserve(160 * count);
    std::size_t written = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (!std::all_of(always.begin(), always.end(),
                         [i](const Numbers &n) { return n.finite(i); }))
            continue;
        if (written) text.push_back(',');
        append_bytes(text, heads.of(components.data()[i], classes.data()[i]));
        for (const Numbers &field : always) field.append(text, i);
        if (ids.data()[i] != none) {
            text.append(track.c_str(), track.size());
            append_integer(text, ids.data()[i]);
            for (const Numbers &field : tracked)
                if (field.finite(i)) field.append(text, i);
        }
        if (tails.size()) append_bytes(text, tails[written]);
        text.push_back('}');
        ++written;
    }
    return nb::make_tuple(nb::bytes(text.data(), text.size()), count - written);
}

}  // namespace

void bind_json_numbers(nb::module_ &m) {
    m.def(
        "json_objects", &json_objects, nb::arg("heads"), nb::arg("components"), nb::arg("classes"),
        nb::arg("ids"), nb::arg("none"), nb::arg("track"), nb::arg("numbers"), nb::arg("of_track"),
        nb::arg("arrays"), nb::arg("tails"),
        "JSON of N objects, with commas between, and how many are left out for numbers that are "
        "not "
        "finite. Of each: its head, bytes of heads by (component, class); the fields of numbers; "
        "the "
        "key track and the id, unless that is none, and behind it the fields of_track that are "
        "finite; its tail, if there are tails, one for each object that is written; the closing "
        "brace. A field is (keys, digits): keys with comma and colon, 3 or 6 decimals; arrays has "
        "(N,) or (N, keys) float32 of each, or None.");
}

}  // namespace headrace::results
