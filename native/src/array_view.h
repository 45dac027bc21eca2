// Arrays of Python by their buffers: NumPy's other ways to tell what they are make objects first.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>

#include "unlocked.h"

// Keeps an array's memory where it is for as long as this lives.
class ArrayView {
public:
    ArrayView() = default;
    ~ArrayView() { PyBuffer_Release(&buffer_); }
    ArrayView(const ArrayView &) = delete;
    ArrayView &operator=(const ArrayView &) = delete;

    // Views a dense, row-major array, once; `flags`: further ones of PyObject_GetBuffer. False with
    // a Python error if it is none.
    bool open(nanobind::handle array, int flags) {
        return PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_C_CONTIGUOUS | flags) == 0;
    }

    // The same for `data` of a noria.Layer. That may be code, which changes what the layer is in.
    bool open_layer(nanobind::object layer, int flags) {
        static PyObject *const name = PyUnicode_InternFromString("data");
        const nanobind::object array = nanobind::steal(
            or_stay([&] { return PyObject_GetAttr(layer.ptr(), name); }));
        return array.is_valid() && open(array, flags);
    }

    const Py_buffer *operator->() const { return &buffer_; }
    const Py_buffer &operator*() const { return buffer_; }

private:
    Py_buffer buffer_{};
};

using ArrayViews = std::unique_ptr<ArrayView[]>;  // they are never moved
