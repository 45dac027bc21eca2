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
#include "custom_library_detector_calls.h"
#include "custom_library_tensors.h"
#include "unlocked.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Bytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;

void free_storage(void *storage) noexcept { ::operator delete(storage); }

// (bytes of the boxes, bytes of their storage), or None if the function returned false.
nb::object raw_boxes(DetectorResult &result) {
    if (result.error) std::rethrow_exception(result.error);
    if (!result.usable) return nb::none();
    const size_t size = result.boxes.size(), capacity = result.boxes.capacity();
    void *storage = result.boxes.release();
    nb::capsule owner(storage ? storage : ::operator new(1), free_storage);
    Bytes bytes(owner.data(), {size}, owner);
    return nb::make_tuple(bytes, capacity);
}

nb::object call_detector(DetectorParser &parser, const nb::list &tensors,
                         const std::vector<int> &data_types, unsigned int width,
                         unsigned int height, unsigned int channels) {
    BoundTensors bound(parser, tensors, data_types);
    return raw_boxes(*detector_result(parser, {width, height, channels}));
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

// The same in one go: False if the layers cannot be passed as they are, what decode_boxes gives if
// there is nothing to say of the boxes, else what call() gives. `kept`: of the result that is kept. `words`: 32-bit words of a box, 0
// while they are not known: then only that there are no boxes is clear.
nb::object parse_detector(DetectorParser &parser, const nb::dict &layers, unsigned int width,
                          unsigned int height, unsigned int channels, size_t words,
                          bool with_angles, size_t most, bool kept) {
    std::unique_ptr<DetectorResult> result;
    if (kept) result = parser.take_kept();
    if (!result) {
        BoundTensors bound(parser, layers);
        if (!bound.complete()) return nb::bool_(false);
        result = detector_result(parser, {width, height, channels});
    }
    const size_t bytes = result->boxes.size();
    const size_t count = words ? bytes / (4 * words) : 0;
    if (result->usable && !result->error && bytes == 4 * words * count && count <= most) {
        nb::tuple found = decode_records(result->boxes.begin, count, words, with_angles);
        if (nb::cast<bool>(found[4])) return found;
    }
    return raw_boxes(*result);
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
             "channels"_a,
             "(uint8 array of the boxes, capacity in bytes), or None if the function said false.")
        .def("parse", &parse_detector, "layers"_a, "width"_a, "height"_a, "channels"_a, "words"_a,
             "with_angles"_a, "most"_a, "kept"_a = false,
             "What decode_boxes gives, if the boxes are sound and no more than `most`; else what "
             "call() gives; or False if the layers (a dict) cannot be passed as they are. `kept`: of "
             "the result that DetectorCalls kept.");

    nb::class_<DetectorCalls, QuickCalls>(
        m, "DetectorCalls",
        "Detections of calls of a detector parser like its last one: if the lock was not entered "
        "since, and the boxes are sound and no more than `most`. Else further(layers, network, params) is "
        "called, or finish(layers, network, params) for a result that is kept.")
        .def(nb::init<DetectorParser &, CallLock &>(), "parser"_a, "lock"_a, nb::keep_alive<1, 2>(),
             nb::keep_alive<1, 3>())
        .def(
            "learn",
            [](DetectorCalls &calls, nb::object network, nb::object params, const nb::dict &layers,
               unsigned int width, unsigned int height, unsigned int channels, size_t words,
               bool with_angles, size_t most) {
                calls.learn(std::move(network), std::move(params), layers,
                            {width, height, channels}, words, with_angles, most);
            },
            "network"_a, "params"_a, "layers"_a, "width"_a, "height"_a, "channels"_a, "words"_a,
            "with_angles"_a, "most"_a, "What calls with these are given; the lock is held.");

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
