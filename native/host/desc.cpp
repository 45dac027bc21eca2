#include "host/desc.h"

#include <cstring>
#include <stdexcept>

namespace nb = nanobind;

namespace headrace::hosting {
namespace {

int32_t number_or(nb::handle value, int32_t otherwise) {
    return value.is_none() ? otherwise : nb::cast<int32_t>(nb::int_(value));
}

void take(nb::handle desc, headrace_desc &out) {
    out.dims = dims_of(desc.attr("dims"));
    out.type = number_or(desc.attr("type"), -1);
    out.format = number_or(desc.attr("format"), -1);
    out.scale = nb::cast<float>(nb::float_(desc.attr("scale")));
}

}  // namespace

headrace_dims dims_of(nb::handle axes) {
    headrace_dims out{};
    for (nb::handle axis : nb::iter(axes)) {
        if (out.count == HEADRACE_MAX_AXES) throw std::invalid_argument("more than 8 axes");
        out.axes[out.count++] = nb::cast<int64_t>(nb::int_(axis));
    }
    return out;
}

nb::tuple dims_to_python(const headrace_dims &dims) {
    if (dims.count < 0 || dims.count > HEADRACE_MAX_AXES)
        throw std::invalid_argument(std::to_string(dims.count) + " axes; Dims has at most 8");
    nb::list axes;
    for (int32_t i = 0; i < dims.count; ++i) axes.append(dims.axes[i]);
    return nb::tuple(axes);
}

std::vector<headrace_desc> descs_of(nb::handle descs) {
    std::vector<headrace_desc> out;
    for (nb::handle desc : nb::iter(descs)) {
        headrace_desc one{};
        const nb::object inner = nb::getattr(desc, "desc", nb::none());
        if (inner.is_none()) {
            take(desc, one);
        } else {
            take(inner, one);
            one.least = dims_of(desc.attr("min"));
            one.best = dims_of(desc.attr("opt"));
            one.most = dims_of(desc.attr("max"));
        }
        out.push_back(one);
    }
    return out;
}

std::vector<headrace_dims> all_dims_of(nb::handle shapes) {
    std::vector<headrace_dims> out;
    for (nb::handle shape : nb::iter(shapes)) out.push_back(dims_of(shape));
    return out;
}

std::vector<int32_t> ints_of(nb::handle values) {
    std::vector<int32_t> out;
    for (nb::handle value : nb::iter(values)) out.push_back(nb::cast<int32_t>(nb::int_(value)));
    return out;
}

std::vector<uint8_t> bools_of(nb::handle values) {
    std::vector<uint8_t> out;
    for (nb::handle value : nb::iter(values)) out.push_back(nb::cast<bool>(nb::bool_(value)));
    return out;
}

std::vector<void *> addresses_of(nb::handle values) {
    std::vector<void *> out;
    for (nb::handle value : nb::iter(values))
        out.push_back(reinterpret_cast<void *>(nb::cast<uintptr_t>(value)));
    return out;
}

std::vector<headrace_exprs> LentExprs::lend(nb::handle all) {
    std::vector<headrace_exprs> out;
    for (nb::handle exprs : nb::iter(all)) {
        headrace_exprs one{};
        for (nb::handle axis : nb::iter(exprs)) one.axes[one.count++] = headrace_object::of(axis);
        out.push_back(one);
    }
    return out;
}

nb::list LentExprs::taken(const headrace_exprs &exprs) {
    if (exprs.count < 0 || exprs.count > HEADRACE_MAX_AXES)
        throw std::invalid_argument(std::to_string(exprs.count) + " axes; DimsExprs has at most 8");
    nb::list out;
    for (int32_t i = 0; i < exprs.count; ++i)
        out.append(exprs.axes[i] ? headrace_object::behind(exprs.axes[i]) : nb::none());
    return out;
}

nb::object text_or_none(const char *text) {
    if (!text) return nb::none();
    PyObject *made =
        PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "surrogateescape");
    if (!made) throw nb::python_error();
    return nb::steal(made);
}

}  // namespace headrace::hosting
