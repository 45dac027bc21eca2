// Arrays of Python by their buffers: NumPy's other ways to tell what they are make objects first.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>

namespace headrace::core {

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

    const Py_buffer *operator->() const { return &buffer_; }
    const Py_buffer &operator*() const { return buffer_; }

private:
    Py_buffer buffer_{};
};

using ArrayViews = std::unique_ptr<ArrayView[]>;  // they are never moved

}  // namespace headrace::core
