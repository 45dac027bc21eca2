// Values between C++ libraries and Python.
#include <nanobind/ndarray.h>

#include "host/desc.h"
#include "host/fields.h"
#include "host/foreign.h"
#include "host/world.h"

namespace nb = nanobind;

namespace headrace::hosting {
namespace {

nb::object text(const void *data) { return text_or_none(static_cast<const char *>(data)); }

std::string chars(nb::handle text) {
    const nb::object bytes =
        nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
    if (!bytes.is_valid()) throw nb::python_error();
    return {PyBytes_AsString(bytes.ptr()), static_cast<size_t>(PyBytes_Size(bytes.ptr()))};
}

nb::object bytes(const void *data, int64_t size) {
    return nb::bytes(size > 0 ? data : "", static_cast<size_t>(size > 0 ? size : 0));
}

bool is_dims(nb::handle value) {
    if (PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr()) || PyDict_Check(value.ptr()))
        return false;
    if (PyTuple_Check(value.ptr())) return true;
    return nb::hasattr(value, "MAX_DIMS");
}

}  // namespace

nb::list fields_to_python(const headrace_fields *fields) {
    nb::list out;
    if (!fields) return out;
    for (int32_t i = 0; i < fields->count; ++i) {
        const headrace_field &f = fields->fields[i];
        nb::object values = nb::none();
        if (f.data) values = bytes(f.data, static_cast<int64_t>(field_bytes(f.type, f.length)));
        out.append(nb::make_tuple(text(f.name ? f.name : ""), f.type, f.length, values));
    }
    return out;
}

void fields_from_python(nb::handle fields, FieldStore &store) {
    for (nb::handle item : nb::iter(fields)) {
        const nb::tuple field = nb::cast<nb::tuple>(item);
        const bool declared = field[3].is_none();
        std::string values;
        if (!declared) {
            const nb::bytes raw = nb::cast<nb::bytes>(field[3]);
            values.assign(raw.c_str(), raw.size());
        }
        store.add(chars(field[0]), nb::cast<int32_t>(field[1]), nb::cast<int32_t>(field[2]),
                  declared ? nullptr : &values);
    }
}

nb::object to_python(const headrace_value &v) {
    switch (v.kind) {
    case HEADRACE_BOOL: return nb::bool_(v.number != 0);
    case HEADRACE_INT: return nb::int_(v.number);
    case HEADRACE_REAL: return nb::float_(v.real);
    case HEADRACE_TEXT: return text(v.data);
    case HEADRACE_BYTES: return bytes(v.data, v.number);
    case HEADRACE_ADDRESS: return nb::int_(reinterpret_cast<uintptr_t>(v.data));
    case HEADRACE_ENUM:
        return world().attr("enum")(static_cast<const char *>(v.extra), v.number,
                                    v.data ? text(v.data) : nb::none());
    case HEADRACE_WEIGHTS:
        return world().attr("weights")(v.code, reinterpret_cast<uintptr_t>(v.data), v.number);
    case HEADRACE_OBJECT:
        return headrace_object::behind(static_cast<const headrace_object *>(v.data));
    case HEADRACE_FIELDS:
        return world().attr("fields")(
            fields_to_python(static_cast<const headrace_fields *>(v.data)));
    case HEADRACE_PLUGIN:
        return plugin_to_python(*static_cast<const headrace_plugin *>(v.data), false);
    case HEADRACE_PLUGINS_CREATOR:
    case HEADRACE_LOGGER:
    case HEADRACE_CALIBRATOR:
    case HEADRACE_CALLBACK:
    case HEADRACE_FACTORY: return foreign_to_python(v);
    case HEADRACE_DIMS: {
        if (v.dims.count < 0) return nb::none();
        nb::list axes;
        for (int32_t i = 0; i < v.dims.count && i < HEADRACE_MAX_AXES; ++i)
            axes.append(v.dims.axes[i]);
        return nb::tuple(axes);
    }
    case HEADRACE_INTS:
    case HEADRACE_REALS:
    case HEADRACE_OBJECTS: {
        nb::list items;
        for (int64_t i = 0; i < v.number; ++i) {
            if (v.kind == HEADRACE_INTS) {
                items.append(static_cast<const int64_t *>(v.data)[i]);
            } else if (v.kind == HEADRACE_REALS) {
                items.append(static_cast<const float *>(v.data)[i]);
            } else {
                const auto *object = static_cast<headrace_object *const *>(v.data)[i];
                items.append(object ? headrace_object::behind(object) : nb::none());
            }
        }
        return std::move(items);
    }
    default: return nb::none();
    }
}

headrace_value from_python(nb::handle value, headrace_object *owner) {
    headrace_value out{};
    if (!value.is_valid() || value.is_none()) return out;
    if (foreign_from_python(value, out)) return out;
    if (PyBool_Check(value.ptr())) {
        out.kind = HEADRACE_BOOL;
        out.number = value.ptr() == Py_True;
    } else if (PyFloat_Check(value.ptr())) {
        out.kind = HEADRACE_REAL;
        out.real = PyFloat_AsDouble(value.ptr());
    } else if (PyUnicode_Check(value.ptr())) {
        out.kind = HEADRACE_TEXT;
        out.data = owner->texts.insert(chars(value)).first->c_str();
    } else if (PyBytes_CheckExact(value.ptr())) {
        owner->bytes = nb::borrow(value);
        out.kind = HEADRACE_BYTES;
        out.data = PyBytes_AsString(value.ptr());
        out.number = PyBytes_Size(value.ptr());
    } else if (PyIndex_Check(value.ptr())) {
        out.kind = HEADRACE_INT;
        out.number = nb::cast<int64_t>(nb::steal(PyNumber_Index(value.ptr())));
    } else if (is_dims(value)) {
        out.kind = HEADRACE_DIMS;
        out.dims = dims_of(value);
    } else if (nb::hasattr(value, "__headrace_address__")) {
        out.kind = HEADRACE_ADDRESS;
        out.data =
            reinterpret_cast<void *>(nb::cast<uintptr_t>(value.attr("__headrace_address__")));
    } else if (nb::hasattr(value, "__headrace_fields__")) {
        owner->store = FieldStore{};
        fields_from_python(value.attr("__headrace_fields__"), owner->store);
        owner->fields = owner->store.view();
        out.kind = HEADRACE_FIELDS;
        out.data = &owner->fields;
    } else {
        out.kind = HEADRACE_OBJECT;
        out.data = headrace_object::of(value);
    }
    return out;
}

}  // namespace headrace::hosting
