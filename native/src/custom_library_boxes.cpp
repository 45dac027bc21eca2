#include "custom_library_boxes.h"

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
