// Objects that are called without Python if a call is like the last one.
#pragma once
#include <nanobind/nanobind.h>

#include "unlocked.h"

// Calls that may be done natively.
class QuickCalls {
public:
    virtual ~QuickCalls() = default;

    // What the call gives, or `call_further` does if there is more to do than this can.
    virtual nanobind::object call(nanobind::handle checked, nanobind::handle layers,
                                  nanobind::handle network, nanobind::handle params) = 0;
};

// `checked.NAME(...)`.
template <typename... Arguments>
nanobind::object call_method(const char *name, nanobind::handle checked, Arguments &&...arguments) {
    const nanobind::object method = nanobind::steal(PyUnicode_InternFromString(name));
    PyObject *const given[] = {checked.ptr(), arguments.ptr()...};
    PyObject *const found = or_stay([&] {
        return PyObject_VectorcallMethod(method.ptr(), given, sizeof...(arguments) + 1, nullptr);
    });
    if (!found) throw nanobind::python_error();
    return nanobind::steal(found);
}

// What a call without Python leaves to Python.
inline nanobind::object call_further(nanobind::handle checked, nanobind::handle layers,
                                     nanobind::handle network, nanobind::handle params) {
    return call_method("further", checked, layers, network, params);
}
