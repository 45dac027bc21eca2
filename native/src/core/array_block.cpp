#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#include "core/array_block.h"

#include <numpy/arrayobject.h>

#include <algorithm>

namespace nb = nanobind;

namespace headrace::core {

ArrayBlock::ArrayBlock(std::size_t bytes) {
    // NumPy's functions, for arrays: calling its types goes through much more code.
    if (!PyArray_API && PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
    owner_ = nb::steal(PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes)));
    if (!owner_.is_valid()) throw nb::python_error();
}

nb::object ArrayBlock::array(void *data, int type, Shape shape) const {
    npy_intp axes[2] = {};
    std::copy(shape.begin(), shape.end(), axes);
    nb::object made =
        nb::steal(PyArray_SimpleNewFromData(static_cast<int>(shape.size()), axes, type, data));
    if (!made.is_valid()) throw nb::python_error();
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject *>(made.ptr()),
                              nb::object(owner_).release().ptr()) != 0)
        throw nb::python_error();
    return made;
}

nb::object ArrayBlock::array(float *data, Shape shape) const {
    return array(data, NPY_FLOAT32, shape);
}

nb::object ArrayBlock::array(std::int32_t *data, Shape shape) const {
    return array(data, NPY_INT32, shape);
}

nb::object ArrayBlock::array(std::uint8_t *data, Shape shape) const {
    return array(data, NPY_UINT8, shape);
}

}  // namespace headrace::core
