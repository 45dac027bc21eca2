// Python face of the custom-library host: one call for each kind of function.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/readable.h"
#include "custom/library.h"
#include "custom/results.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::custom {
namespace {

using Size = std::array<unsigned int, 3>;
NvDsInferNetworkInfo info(const Size &size) { return {size[0], size[1], size[2]}; }

// Calls a detector or instance parser: they differ in the elements of the vector.
bool call_parser(CustomFunction &function, const nb::list &tensors, const Size &size,
                 ByteVector &objects) {
    using Function = bool (*)(const std::vector<NvDsInferLayerInfo> &, const NvDsInferNetworkInfo &,
                              const NvDsInferParseDetectionParams &, ByteVector &);
    const core::ArrayViews views = function.bind(tensors);
    return function.invoke(Function{}, function.layers(), info(size), function.params(), objects);
}

using Bytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;

// (bytes of the boxes, bytes of their storage)
nb::tuple raw_boxes(ByteVector &boxes) {
    const size_t size = boxes.size(), capacity = boxes.capacity();
    void *storage = std::exchange(boxes.begin, nullptr);
    nb::capsule owner(storage ? storage : ::operator new(1),
                      [](void *memory) noexcept { ::operator delete(memory); });
    return nb::make_tuple(Bytes(owner.data(), {size}, owner), capacity);
}

nb::tuple decode_boxes(const Bytes &bytes, size_t words, bool with_angles) {
    return take_boxes(bytes.data(), bytes.shape(0) / (4 * words), 4 * words, with_angles);
}

nb::object call_detector(CustomFunction &function, const nb::list &tensors, const Size &size,
                         size_t words, bool with_angles, size_t most) {
    ByteVector boxes;
    if (!call_parser(function, tensors, size, boxes)) return nb::none();
    const size_t bytes = boxes.size(), count = words ? bytes / (4 * words) : 0;
    if (bytes == 4 * words * count && count <= most) {
        nb::tuple found = take_boxes(boxes.begin, count, 4 * words, with_angles);
        if (nb::cast<bool>(found[4])) return found;
    }
    return raw_boxes(boxes);
}

// How many masks could not be taken over, and how large they are. Sizes in pixels.
struct MaskFaults {
    size_t not_finite = 0, wrong_size = 0, largest = 0, total = 0;
};

nb::capsule owner_of(float *values) {
    return nb::capsule(values, [](void *p) noexcept { delete[] static_cast<float *>(p); });
}

// Parsers that have landmarks and no field for them leave them in the mask's: its width and height
// are those of the network then, or nothing. A copy (values,) of what may be such, else None.
nb::object copy_values(const NvDsInferInstanceMaskInfo &record, const Size &size, size_t most) {
    const auto [width, height, channels] = size;
    const bool sized = record.mask_width == width && record.mask_height == height;
    const size_t count = record.mask_size / sizeof(float);
    if (!(sized || (!record.mask_width && !record.mask_height)) ||
        record.mask_size % sizeof(float) || count > most)
        return nb::none();
    float *const values = new float[count];
    nb::capsule owner = owner_of(values);
    std::memcpy(values, record.mask, record.mask_size);
    return nb::cast(nb::ndarray<nb::numpy, float>(values, {count}, owner));
}

// A copy (height, width) of the mask of one record; values of unknown meaning if its size is no
// mask's; or None.
nb::object copy_mask(const NvDsInferInstanceMaskInfo &record, const Size &size, size_t most,
                     size_t most_together, size_t most_values, MaskFaults &faults) {
    const size_t pixels = size_t{record.mask_width} * record.mask_height;
    if (!record.mask || (pixels == 0 && record.mask_size == 0)) return nb::none();
    if (record.mask_size != pixels * sizeof(float)) {
        ++faults.wrong_size;
        return copy_values(record, size, most_values);
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
    nb::capsule owner = owner_of(values);
    return nb::cast(
        nb::ndarray<nb::numpy, float>(values, {record.mask_height, record.mask_width}, owner));
}

nb::object call_instances(CustomFunction &function, const nb::list &tensors, const Size &size,
                          size_t most_objects, size_t most_pixels, size_t most_pixels_together,
                          size_t most_values) {
    InstanceVector objects;
    if (!call_parser(function, tensors, size, objects)) return nb::none();
    if (!objects.are_records())
        throw CustomResultError("the parser returned " + std::to_string(objects.size()) +
                                " bytes that are no list of NvDsInferInstanceMaskInfo");
    if (objects.count() > most_objects) return nb::int_(objects.count());
    nb::tuple found =
        take_boxes(objects.begin, objects.count(), sizeof(NvDsInferInstanceMaskInfo), false);
    nb::list masks;
    MaskFaults faults;
    for (size_t i = 0; i < objects.count(); ++i)
        masks.append(copy_mask(objects.record(i), size, most_pixels, most_pixels_together,
                               most_values, faults));
    return nb::make_tuple(
        found, masks,
        nb::make_tuple(faults.not_finite, faults.wrong_size, faults.largest, faults.total));
}

// What C reads of a text: up to its first zero byte; bytes that are not UTF-8 become U+FFFD.
nb::object text_of(const char *text) {
    return nb::steal(
        PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace"));
}

nb::object call_classifier(CustomFunction &function, const nb::list &tensors, const Size &size,
                           float threshold, size_t most) {
    const core::ArrayViews views = function.bind(tensors);
    Attributes attributes;
    if (!function.invoke(NvDsInferClassiferParseCustomFunc{}, function.layers(), info(size),
                         threshold, attributes.list, attributes.text))
        return nb::none();
    if (attributes.list.size() > most) return nb::int_(attributes.list.size());
    nb::list found;
    for (const NvDsInferAttribute &attribute : attributes.list)
        found.append(nb::make_tuple(
            attribute.attributeIndex, attribute.attributeValue, attribute.attributeConfidence,
            attribute.attributeLabel ? text_of(attribute.attributeLabel) : nb::none()));
    return nb::make_tuple(found, text_of(attributes.text.c_str()));
}

using Map = nb::ndarray<int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::object call_segmentation(CustomFunction &function, const nb::list &tensors, const Size &size,
                             float threshold, unsigned int classes, const Map &map) {
    const core::ArrayViews views = function.bind(tensors);
    if (map.shape(0) != size[1] || map.shape(1) != size[0])
        throw std::invalid_argument("the map has not the size of the network input");
    int *const pixels = map.data();
    float *probabilities = nullptr;  // set to memory that has no owner here
    if (!function.invoke(NvDsInferSemSegmentationParseCustomFunc{}, function.layers(), info(size),
                         threshold, classes, pixels, probabilities))
        return nb::none();
    return nb::int_(reinterpret_cast<uintptr_t>(probabilities));
}

bool call_initializer(CustomFunction &function, const nb::list &tensors, const Size &size,
                      unsigned int max_batch) {
    const core::ArrayViews views = function.bind(tensors);
    return function.invoke(decltype(&NvDsInferInitializeInputLayers){}, function.layers(),
                           info(size), max_batch);
}

}  // namespace

void bind(nb::module_ &m) {
    nb::exception<CustomCodeError> code_error(m, "CustomCodeError");
    nb::exception<CustomResultError> result_error(m, "CustomResultError");

    nb::class_<SharedObject>(m, "SharedObject",
                             "A shared object opened with RTLD_NOW | RTLD_LOCAL.")
        .def(nb::init<const std::string &>(), "path"_a, nb::call_guard<core::Unlocked>())
        .def_prop_ro("handle", &SharedObject::handle)
        .def("has", [](const SharedObject &self, const std::string &name) {
            return self.symbol(name) != nullptr;
        });

    nb::class_<CustomFunction>(
        m, "CustomFunction",
        "A function of a custom library. Calls are given tensors, and width, "
        "height and channels of the network; None: the function said false.")
        .def(nb::init<std::shared_ptr<SharedObject>, const std::string &>(), "library"_a, "name"_a)
        .def("set_layers", &CustomFunction::set_layers, "names"_a, "bindings"_a, "inputs"_a = false)
        .def("set_params", &CustomFunction::set_params, "num_classes"_a, "pre"_a, "post"_a)
        .def(
            "call_detector", &call_detector, "tensors"_a, "size"_a, "words"_a, "with_angles"_a,
            "most"_a,
            "What decode_boxes gives, if the boxes are sound and no more than `most`; else (uint8 "
            "array of the boxes, capacity in bytes). `words`: 32-bit words of a box, 0 if they are "
            "not known.")
        .def("call_instances", &call_instances, "tensors"_a, "size"_a, "most_objects"_a,
             "most_pixels"_a, "most_pixels_together"_a, "most_values"_a,
             "(what decode_boxes gives, list of masks, of values (n,) that are no mask by their "
             "number, or None, (masks not finite, masks of wrong size, pixels of the largest, of "
             "all)); a number of objects above the limit.")
        .def(
            "call_classifier", &call_classifier, "tensors"_a, "size"_a, "threshold"_a, "most"_a,
            "([(attribute, value, confidence, label or None)], text); a number of attributes above "
            "the limit.")
        .def("call_segmentation", &call_segmentation, "tensors"_a, "size"_a, "threshold"_a,
             "classes"_a, "map"_a,
             "Fills map, which has the size of the network input. The address of the "
             "probabilities, 0 for none.")
        .def("call_initializer", &call_initializer, "tensors"_a, "size"_a, "max_batch"_a,
             "What the function said. The tensors are the first entries of batches to fill.");

    m.def("decode_boxes", &decode_boxes, "data"_a, "words"_a, "with_angles"_a,
          "((N, 4) boxes, scores, class ids, angles or None, whether all is finite and in range).");
    m.def(
        "demangle", [](const std::string &name) { return core::readable(name.c_str()); }, "name"_a,
        "The C++ name behind a linker symbol.");
}

}  // namespace headrace::custom
