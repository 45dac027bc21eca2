// Boxes as the NumPy arrays that Python is given.
#include <algorithm>
#include <cstring>

#include "core/array_block.h"
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

// Arrays of one frame, not yet filled.
class NumpyBoxes {
public:
    NumpyBoxes(size_t count, bool with_angles) : block_(bytes(count, with_angles)), count_(count) {
        boxes = block_.room<float>(4 * count);
        scores = block_.room<float>(count);
        ids = block_.room<int32_t>(count);
        if (with_angles) angles = block_.room<float>(count);
    }

    static size_t bytes(size_t count, bool with_angles) {
        using core::ArrayBlock;
        return ArrayBlock::rounded(16 * count) +
               (with_angles ? 2 : 1) * ArrayBlock::rounded(4 * count) + 4 * count;
    }

    char *start() const { return block_.start(); }

    // What take_boxes gives.
    nb::tuple result() const {
        uint32_t largest =
            std::max(largest_magnitude(boxes, 4 * count_), largest_magnitude(scores, count_));
        if (angles) largest = std::max(largest, largest_magnitude(angles, count_));
        int32_t signs = 0;
        for (size_t i = 0; i < count_; ++i) signs |= ids[i];
        return nb::make_tuple(block_.array(boxes, {count_, 4}), block_.array(scores, {count_}),
                              block_.array(ids, {count_}),
                              angles ? block_.array(angles, {count_}) : nb::none(),
                              largest < kInfinityBits && signs >= 0);
    }

    float *boxes;  // left, top, width, height of each
    float *scores;
    int32_t *ids;
    float *angles = nullptr;

private:
    core::ArrayBlock block_;
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
