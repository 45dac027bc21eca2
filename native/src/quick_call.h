// Objects that are called without Python if a call is like the last one.
#pragma once
#include <nanobind/nanobind.h>

// Calls that may be done natively.
class QuickCalls {
public:
    virtual ~QuickCalls() = default;

    // What the call gives, or `checked.further(...)` if there is more to do than this can.
    virtual nanobind::object call(nanobind::handle checked, nanobind::handle layers,
                                  nanobind::handle network, nanobind::handle params) = 0;
};

// `checked.further(...)`: what a call without Python leaves to Python.
template <typename... Arguments>
nanobind::object call_further(nanobind::handle checked, Arguments... arguments) {
    static PyObject *const name = PyUnicode_InternFromString("further");
    PyObject *const given[] = {checked.ptr(), arguments.ptr()...};
    PyObject *const found =
        PyObject_VectorcallMethod(name, given, sizeof...(arguments) + 1, nullptr);
    if (!found) throw nanobind::python_error();
    return nanobind::steal(found);
}
