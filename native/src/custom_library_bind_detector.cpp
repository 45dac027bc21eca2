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

#include "custom_library_detector.h"
#include "custom_library_tensors.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Bytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;

void free_storage(void *storage) noexcept { ::operator delete(storage); }

// (bytes of the returned boxes, bytes of their storage), or None if the function returned false.
nb::object call_detector(DetectorParser &parser, const nb::list &tensors,
                         const std::vector<int> &data_types, unsigned int width,
                         unsigned int height, unsigned int channels) {
    BoundTensors bound(parser, tensors, data_types);
    std::unique_ptr<DetectorResult> result = parser.take_kept();
    if (!result) {
        result = std::make_unique<DetectorResult>();
        nb::gil_scoped_release unlocked;
        result->usable = parser.call(NvDsInferNetworkInfo{width, height, channels}, result->boxes);
    }
    if (result->error) std::rethrow_exception(result->error);
    if (!result->usable) return nb::none();
    const size_t size = result->boxes.size(), capacity = result->boxes.capacity();
    void *storage = result->boxes.release();
    nb::capsule owner(storage ? storage : ::operator new(1), free_storage);
    Bytes bytes(owner.data(), {size}, owner);
    return nb::make_tuple(bytes, capacity);
}

template <typename T, typename... Shape>
nb::object new_array(std::unique_ptr<T[]> values, Shape... shape) {
    T *data = values.release();
    nb::capsule owner(data, [](void *p) noexcept { delete[] static_cast<T *>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(data, {static_cast<size_t>(shape)...}, owner));
}

// Arrays of their own for boxes.
struct Boxes {
    size_t count;
    std::unique_ptr<float[]> boxes, scores;
    std::unique_ptr<int32_t[]> ids;
    bool sound = true;

    explicit Boxes(size_t count)
        : count(count), boxes(new float[4 * count]), scores(new float[count]),
          ids(new int32_t[count]) {}

    BoxArrays arrays() { return {boxes.get(), scores.get(), ids.get(), nullptr}; }
};

// Boxes of `words` 32-bit words each -> ((N, 4) boxes, scores, class ids, angles or None, sound).
nb::tuple decode_boxes(const Bytes &bytes, size_t words, bool with_angles) {
    Boxes found(bytes.shape(0) / (4 * words));
    with_angles = with_angles && words == 7;
    std::unique_ptr<float[]> angles(with_angles ? new float[found.count] : nullptr);
    BoxArrays arrays = found.arrays();
    arrays.angles = angles.get();
    found.sound = take_boxes(bytes.data(), found.count, 4 * words, arrays);
    nb::object tilt = nb::none();
    if (with_angles) tilt = new_array(std::move(angles), found.count);
    return nb::make_tuple(new_array(std::move(found.boxes), found.count, 4),
                          new_array(std::move(found.scores), found.count),
                          new_array(std::move(found.ids), found.count), tilt, found.sound);
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
    return new_array(std::move(copy), record.mask_height, record.mask_width);
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
        nb::gil_scoped_release unlocked;
        usable = parser.call(NvDsInferNetworkInfo{width, height, channels}, objects);
    }
    if (!usable) return nb::none();
    objects.require_records();
    if (objects.count() > most_objects) return nb::int_(objects.count());
    Boxes found(objects.count());
    found.sound = take_boxes(objects.begin, found.count, sizeof(NvDsInferInstanceMaskInfo),
                             found.arrays());
    nb::list masks;
    MaskFaults faults;
    for (size_t i = 0; i < found.count; ++i) {
        masks.append(copy_mask(objects.record(i), most_pixels, most_pixels_together, faults));
    }
    return nb::make_tuple(
        new_array(std::move(found.boxes), found.count, 4),
        new_array(std::move(found.scores), found.count),
        new_array(std::move(found.ids), found.count), found.sound, masks,
        nb::make_tuple(faults.not_finite, faults.wrong_size, faults.largest, faults.total));
}

}  // namespace

void bind_custom_library_detector(nb::module_ &m) {
    nb::class_<DetectorParser, CustomFunction>(m, "DetectorParser",
                                               "A detector parser of a custom library.")
        .def(nb::init<std::shared_ptr<SharedObject>, const std::string &>(), "library"_a, "name"_a)
        .def("set_params", &DetectorParser::set_params, "num_classes"_a, "pre"_a, "post"_a)
        .def("call", &call_detector, "tensors"_a, "data_types"_a, "width"_a, "height"_a,
             "channels"_a,
             "(uint8 array of the boxes, capacity in bytes), or None if the function said false.");

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
