#include "custom_library_boxes.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#include <numpy/arrayobject.h>
#include <structmember.h>

#include <stdexcept>

namespace nb = nanobind;

namespace {

// NumPy's functions, for arrays: calling its types goes through much more code.
void need_numpy() {
    if (!PyArray_API && PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
}

// noria.Detections: where its slots are, and the values that are always the same. Setting an attribute
// looks its name up in the type, which is out of the caches after a large tensor.
class DetectionsType {
public:
    DetectionsType() {
        const nb::module_ module = nb::module_::import_("noria.meta");
        type_ = module.attr("Detections");
        const nb::object wanted = nb::make_tuple("boxes", "scores", "class_ids", "masks", "angles",
                                                 "space");
        if (!nb::object(type_.attr("__slots__")).equal(wanted)) throw unexpected();
        for (size_t i = 0; i < 6; ++i) offsets_[i] = offset_of(nb::object(wanted[i]));
        network_ = module.attr("Space").attr("NETWORK");
    }

    nb::object make(const NumpyBoxes &found) const {
        nb::object values[] = {found.boxes(), found.scores(), found.ids(),
                               nb::none(),    found.angles(), network_};
        auto *type = reinterpret_cast<PyTypeObject *>(type_.ptr());
        const nb::object made = nb::steal(type->tp_alloc(type, 0));
        if (!made.is_valid()) throw nb::python_error();
        char *const start = reinterpret_cast<char *>(made.ptr());
        for (size_t i = 0; i < 6; ++i)
            *reinterpret_cast<PyObject **>(start + offsets_[i]) = values[i].release().ptr();
        return made;
    }

private:
    static std::runtime_error unexpected() {
        return std::runtime_error("noria.Detections is not as the native core makes it");
    }

    Py_ssize_t offset_of(const nb::object &name) const {
        const nb::object slot = type_.attr(name);
        if (Py_TYPE(slot.ptr()) != &PyMemberDescr_Type) throw unexpected();
        const PyMemberDef *member = reinterpret_cast<PyMemberDescrObject *>(slot.ptr())->d_member;
        if (member->type != T_OBJECT_EX) throw unexpected();
        return member->offset;
    }

    nb::object type_, network_;
    Py_ssize_t offsets_[6];
};

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

nb::object NumpyBoxes::detections() const {
    // The GIL keeps others out; the lock of a static that is initialised in place would be waited
    // for with it. It lives as long as the interpreter.
    static const DetectionsType *type = nullptr;
    if (!type) type = new DetectionsType;
    return type->make(*this);
}
