#include "custom_library_boxes.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#include <numpy/arrayobject.h>

namespace nb = nanobind;

namespace {

// NumPy's functions, for arrays: calling its types goes through much more code.
void need_numpy() {
    if (!PyArray_API && PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
}

nb::object new_bytes(size_t count, bool with_angles) {
    const size_t bytes = BoxBlock(nullptr, count, with_angles).bytes;
    PyObject *block = PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes));
    if (!block) throw nb::python_error();
    return nb::steal(block);
}

}  // namespace

NumpyBoxes::NumpyBoxes(size_t count, bool with_angles)
    : owner_(new_bytes(count, with_angles)), block_(start(), count, with_angles), count_(count) {
    need_numpy();
}

void *NumpyBoxes::start() const { return PyByteArray_AS_STRING(owner_.ptr()); }

nb::object NumpyBoxes::array(void *data, int dims, int type) const {
    const npy_intp shape[] = {static_cast<npy_intp>(count_), 4};
    nb::object made = nb::steal(PyArray_SimpleNewFromData(dims, shape, type, data));
    if (!made.is_valid()) throw nb::python_error();
    nb::object owner = owner_;
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject *>(made.ptr()),
                              owner.release().ptr()) != 0)
        throw nb::python_error();
    return made;
}

nb::object NumpyBoxes::boxes() const { return array(block_.arrays.boxes, 2, NPY_FLOAT32); }

nb::object NumpyBoxes::scores() const { return array(block_.arrays.scores, 1, NPY_FLOAT32); }

nb::object NumpyBoxes::ids() const { return array(block_.arrays.ids, 1, NPY_INT32); }

nb::object NumpyBoxes::angles() const {
    return block_.arrays.angles ? array(block_.arrays.angles, 1, NPY_FLOAT32) : nb::none();
}
