// Boxes as the NumPy arrays that Python is given.
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>
#include <cstring>

#include "custom/library.h"

namespace nb = nanobind;

namespace headrace::custom {

static_assert(sizeof(NvDsInferInstanceMaskInfo) == 48, "the same in every generation");

namespace {

// Of the finite numbers and infinity, a greater magnitude has greater bits; those of NaN are
// greater still. Source: IEEE 754.
constexpr uint32_t kInfinityBits = 0x7f800000;

uint32_t largest_magnitude(const float *values, size_t count) {
    uint32_t largest = 0;
    for (size_t i = 0; i < count; ++i) {
        uint32_t bits;
        std::memcpy(&bits, &values[i], 4);
        largest = std::max(largest, bits & 0x7fffffff);
    }
    return largest;
}

// Arrays of one frame, not yet filled, one after the other in one block, each from a multiple of 64
// bytes on: with few boxes, making memory and an owner for each array would take longer than
// filling them.
class NumpyBoxes {
public:
    NumpyBoxes(size_t count, bool with_angles) : count_(count) {
        // NumPy's functions, for arrays: calling its types goes through much more code.
        if (!PyArray_API && PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
        owner_ = nb::steal(PyByteArray_FromStringAndSize(
            nullptr, static_cast<Py_ssize_t>(bytes(count, with_angles))));
        if (!owner_.is_valid()) throw nb::python_error();
        boxes = reinterpret_cast<float *>(start());
        scores = reinterpret_cast<float *>(start() + rounded(16 * count));
        ids = reinterpret_cast<int32_t *>(start() + rounded(16 * count) + rounded(4 * count));
        if (with_angles)
            angles =
                reinterpret_cast<float *>(start() + rounded(16 * count) + 2 * rounded(4 * count));
    }

    static size_t bytes(size_t count, bool with_angles) {
        return rounded(16 * count) + (with_angles ? 2 : 1) * rounded(4 * count) + 4 * count;
    }

    char *start() const { return PyByteArray_AS_STRING(owner_.ptr()); }

    // What take_boxes gives.
    nb::tuple result() const {
        uint32_t largest =
            std::max(largest_magnitude(boxes, 4 * count_), largest_magnitude(scores, count_));
        if (angles) largest = std::max(largest, largest_magnitude(angles, count_));
        int32_t signs = 0;
        for (size_t i = 0; i < count_; ++i) signs |= ids[i];
        return nb::make_tuple(array(boxes, 2, NPY_FLOAT32), array(scores, 1, NPY_FLOAT32),
                              array(ids, 1, NPY_INT32),
                              angles ? array(angles, 1, NPY_FLOAT32) : nb::none(),
                              largest < kInfinityBits && signs >= 0);
    }

    float *boxes;  // left, top, width, height of each
    float *scores;
    int32_t *ids;
    float *angles = nullptr;

private:
    static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

    nb::object array(void *data, int dims, int type) const {
        const npy_intp shape[] = {static_cast<npy_intp>(count_), 4};
        nb::object made = nb::steal(PyArray_SimpleNewFromData(dims, shape, type, data));
        if (!made.is_valid()) throw nb::python_error();
        if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject *>(made.ptr()),
                                  nb::object(owner_).release().ptr()) != 0)
            throw nb::python_error();
        return made;
    }

    nb::object owner_;
    size_t count_;
};

template <size_t stride>
void take_records(const void *records, size_t count, const NumpyBoxes &to) {
    const char *from = static_cast<const char *>(records);
    for (size_t i = 0; i < count; ++i, from += stride) {
        std::memcpy(&to.ids[i], from, 4);
        std::memcpy(&to.boxes[4 * i], from + 4, 16);
        std::memcpy(&to.scores[i], from + 20, 4);
        if (stride == 28 && to.angles) std::memcpy(&to.angles[i], from + 24, 4);
    }
}

}  // namespace

nb::tuple take_boxes(const void *records, size_t count, size_t stride, bool with_angles) {
    const NumpyBoxes found(count, with_angles && stride == 28);
    switch (stride) {  // loops over constants are much faster
    case 24: take_records<24>(records, count, found); break;
    case 28: take_records<28>(records, count, found); break;
    default: take_records<sizeof(NvDsInferInstanceMaskInfo)>(records, count, found);
    }
    return found.result();
}

nb::object copied_boxes(uintptr_t address, size_t size, size_t count, bool with_angles) {
    if (count > size / 24 || NumpyBoxes::bytes(count, with_angles) > size) return nb::none();
    const NumpyBoxes found(count, with_angles);
    const size_t bytes = NumpyBoxes::bytes(count, with_angles);
    std::memcpy(found.start(), reinterpret_cast<const void *>(address), bytes);
    return nb::make_tuple(found.result(), bytes);
}

}  // namespace headrace::custom
