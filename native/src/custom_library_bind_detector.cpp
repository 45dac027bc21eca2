// Python face of detector and instance parsers.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "custom_library_boxes.h"
#include "custom_library_detector.h"
#include "custom_library_tensors.h"
#include "unlocked.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Bytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;

void free_storage(void *storage) noexcept { ::operator delete(storage); }

// (bytes of the boxes, bytes of their storage)
nb::tuple raw_boxes(ByteVector &boxes) {
    const size_t size = boxes.size(), capacity = boxes.capacity();
    void *storage = boxes.release();
    nb::capsule owner(storage ? storage : ::operator new(1), free_storage);
    Bytes bytes(owner.data(), {size}, owner);
    return nb::make_tuple(bytes, capacity);
}

// `count` records of `words` 32-bit words each -> ((N, 4) boxes, scores, class ids, angles or None,
// sound).
nb::tuple decode_records(const void *records, size_t count, size_t words, bool with_angles) {
    const NumpyBoxes found(count, with_angles && words == 7);
    const bool sound = take_boxes(records, count, 4 * words, found.arrays());
    return nb::make_tuple(found.boxes(), found.scores(), found.ids(), found.angles(), sound);
}

nb::tuple decode_boxes(const Bytes &bytes, size_t words, bool with_angles) {
    return decode_records(bytes.data(), bytes.shape(0) / (4 * words), words, with_angles);
}

// None if the function returned false; what decode_boxes gives, if the boxes are sound and no more than
// `most`; else what raw_boxes gives. `words`: 32-bit words of a box; 0: not known yet, boxes stay raw.
nb::object call_detector(DetectorParser &parser, const nb::list &tensors,
                         const std::vector<int> &data_types, unsigned int width,
                         unsigned int height, unsigned int channels, size_t words,
                         bool with_angles, size_t most) {
    BoundTensors bound(parser, tensors, data_types);
    ByteVector boxes;
    bool usable;
    {
        Unlocked unlocked;
        usable = parser.call(NvDsInferNetworkInfo{width, height, channels}, boxes);
    }
    if (!usable) return nb::none();
    const size_t bytes = boxes.size(), count = words ? bytes / (4 * words) : 0;
    if (bytes == 4 * words * count && count <= most) {
        nb::tuple found = decode_records(boxes.begin, count, words, with_angles);
        if (nb::cast<bool>(found[4])) return found;
    }
    return raw_boxes(boxes);
}

// How many masks could not be taken over, and how large they are. Sizes in pixels.
struct MaskFaults {
    size_t not_finite = 0, wrong_size = 0, largest = 0, total = 0;
};

// A copy of the mask of one record, or None.
nb::object copy_mask(const NvDsInferInstanceMaskInfo &record, size_t most, size_t most_together,
                     MaskFaults &faults) {
    const size_t pixels = size_t{record.mask_width} * record.mask_height;
    if (!record.mask || (pixels == 0 && record.mask_size == 0)) return nb::none();
    if (record.mask_size != pixels * sizeof(float)) {
        ++faults.wrong_size;
        return nb::none();
    }
    faults.largest = std::max(faults.largest, pixels);
    faults.total += pixels;
    if (faults.largest > most || faults.total > most_together) return nb::none();
    std::unique_ptr<float[]> copy(new float[pixels]);
    std::memcpy(copy.get(), record.mask, record.mask_size);
    if (!std::all_of(copy.get(), copy.get() + pixels, [](float v) { return std::isfinite(v); })) {
        ++faults.not_finite;
        return nb::none();
    }
    float *const values = copy.release();
    nb::capsule owner(values, [](void *p) noexcept { delete[] static_cast<float *>(p); });
    return nb::cast(nb::ndarray<nb::numpy, float>(values, {record.mask_height, record.mask_width},
                                                  owner));
}

// None if the function returned false; a number of objects above the limit; or (boxes, scores,
// class ids, sound, masks or None for each, (not finite, of wrong size, largest, total)).
nb::object call_instances(InstanceParser &parser, const nb::list &tensors,
                          const std::vector<int> &data_types, unsigned int width,
                          unsigned int height, unsigned int channels, size_t most_objects,
                          size_t most_pixels, size_t most_pixels_together) {
    BoundTensors bound(parser, tensors, data_types);
    InstanceVector objects;
    bool usable;
    {
        Unlocked unlocked;
        usable = parser.call(NvDsInferNetworkInfo{width, height, channels}, objects);
    }
    if (!usable) return nb::none();
    objects.require_records();
    if (objects.count() > most_objects) return nb::int_(objects.count());
    const NumpyBoxes found(objects.count(), false);
    const bool sound = take_boxes(objects.begin, objects.count(),
                                  sizeof(NvDsInferInstanceMaskInfo), found.arrays());
    nb::list masks;
    MaskFaults faults;
    for (size_t i = 0; i < objects.count(); ++i) {
        masks.append(copy_mask(objects.record(i), most_pixels, most_pixels_together, faults));
    }
    return nb::make_tuple(
        found.boxes(), found.scores(), found.ids(), sound, masks,
        nb::make_tuple(faults.not_finite, faults.wrong_size, faults.largest, faults.total));
}

}  // namespace

void bind_custom_library_detector(nb::module_ &m) {
    nb::class_<DetectorParser, CustomFunction>(m, "DetectorParser",
                                               "A detector parser of a custom library.")
        .def(nb::init<std::shared_ptr<SharedObject>, const std::string &>(), "library"_a, "name"_a)
        .def("set_params", &DetectorParser::set_params, "num_classes"_a, "pre"_a, "post"_a)
        .def("call", &call_detector, "tensors"_a, "data_types"_a, "width"_a, "height"_a,
             "channels"_a, "words"_a, "with_angles"_a, "most"_a,
             "What decode_boxes gives, if the boxes are sound and no more than `most`; else (uint8 "
             "array of the boxes, capacity in bytes); None if the function said false. `words`: "
             "32-bit words of a box, 0 if they are not known.");

    nb::class_<InstanceParser, CustomFunction>(m, "InstanceParser",
                                               "An instance parser of a custom library.")
        .def(nb::init<std::shared_ptr<SharedObject>, const std::string &>(), "library"_a, "name"_a)
        .def("set_params", &InstanceParser::set_params, "num_classes"_a, "pre"_a, "post"_a)
        .def("call", &call_instances, "tensors"_a, "data_types"_a, "width"_a, "height"_a,
             "channels"_a, "most_objects"_a, "most_pixels"_a, "most_pixels_together"_a,
             "(boxes, scores, class ids, whether all is finite and in range, list of masks or "
             "None, (masks not finite, masks of wrong size, pixels of the largest, of all)); a "
             "number of objects above the limit; None if the function said false.");

    m.def("decode_boxes", &decode_boxes, "data"_a, "words"_a, "with_angles"_a,
          "((N, 4) boxes, scores, class ids, angles or None, whether all is finite and in range).");
}
