#include "custom_library_boxes.h"

#include <structmember.h>

#include <stdexcept>

namespace nb = nanobind;

namespace {

struct NumPy {
    nb::object ndarray, float32, int32;
};

// The GIL keeps others out; the lock of a static that is initialised in place would be waited for
// with it.
const NumPy &numpy() {
    static const NumPy *names = nullptr;  // lives as long as the interpreter
    if (!names) {
        const nb::module_ module = nb::module_::import_("numpy");
        const nb::object dtype = module.attr("dtype");
        names = new NumPy{module.attr("ndarray"), dtype("float32"), dtype("int32")};
    }
    return *names;
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
    : owner_(new_bytes(count, with_angles)), block_(start(), count, with_angles),
      flat_(nb::make_tuple(count)), count_(count) {}

void *NumpyBoxes::start() const { return PyByteArray_AS_STRING(owner_.ptr()); }

nb::object NumpyBoxes::array(const void *data, nb::handle shape, bool whole_numbers) const {
    const auto offset = static_cast<const char *>(data) - static_cast<const char *>(start());
    const NumPy &np = numpy();
    return np.ndarray(shape, whole_numbers ? np.int32 : np.float32, owner_, offset);
}

nb::object NumpyBoxes::boxes() const {
    return array(block_.arrays.boxes, nb::make_tuple(count_, 4), false);
}

nb::object NumpyBoxes::scores() const { return array(block_.arrays.scores, flat_, false); }

nb::object NumpyBoxes::ids() const { return array(block_.arrays.ids, flat_, true); }

nb::object NumpyBoxes::angles() const {
    return block_.arrays.angles ? array(block_.arrays.angles, flat_, false) : nb::none();
}

nb::object NumpyBoxes::detections() const {
    static const DetectionsType *type = nullptr;  // as in numpy()
    if (!type) type = new DetectionsType;
    return type->make(*this);
}
