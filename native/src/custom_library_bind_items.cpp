// Python face of classifier and segmentation parsers.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>

#include "custom_library_items.h"
#include "custom_library_tensors.h"
#include "unlocked.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// What C reads of a text: up to its first zero byte; bytes that are not UTF-8 become U+FFFD.
nb::object text_of(const char *text) {
    return nb::steal(
        PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace"));
}

// ([(attribute, value, confidence, label or None)], text); a number of attributes above the limit;
// None if the function returned false.
nb::object call_classifier(ClassifierParser &parser, const nb::list &tensors,
                           const std::vector<int> &data_types, unsigned int width,
                           unsigned int height, unsigned int channels, float threshold,
                           size_t most_attributes) {
    BoundTensors bound(parser, tensors, data_types);
    Attributes attributes;
    bool usable;
    {
        Unlocked unlocked;
        usable = parser.call(NvDsInferNetworkInfo{width, height, channels}, threshold, attributes);
    }
    if (!usable) return nb::none();
    if (attributes.list.size() > most_attributes) return nb::int_(attributes.list.size());
    nb::list found;
    for (const NvDsInferAttribute &attribute : attributes.list)
        found.append(nb::make_tuple(
            attribute.attributeIndex, attribute.attributeValue, attribute.attributeConfidence,
            attribute.attributeLabel ? text_of(attribute.attributeLabel) : nb::none()));
    return nb::make_tuple(found, text_of(attributes.text.c_str()));
}

using Map = nb::ndarray<int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The address of the probabilities, 0 for none, or None if the function returned false.
nb::object call_segmentation(SegmentationParser &parser, const nb::list &tensors,
                             const std::vector<int> &data_types, unsigned int channels,
                             float threshold, unsigned int classes, const Map &map) {
    BoundTensors bound(parser, tensors, data_types);
    float *probabilities = nullptr;
    bool usable;
    {
        Unlocked unlocked;
        const NvDsInferNetworkInfo network{static_cast<unsigned int>(map.shape(1)),
                                           static_cast<unsigned int>(map.shape(0)), channels};
        usable = parser.call(network, threshold, classes, map.data(), probabilities);
    }
    if (!usable) return nb::none();
    return nb::int_(reinterpret_cast<uintptr_t>(probabilities));
}

}  // namespace

void bind_custom_library_items(nb::module_ &m) {
    nb::class_<ClassifierParser, CustomFunction>(m, "ClassifierParser",
                                                 "A classifier parser of a custom library.")
        .def(nb::init<std::shared_ptr<SharedObject>, const std::string &>(), "library"_a, "name"_a)
        .def("call", &call_classifier, "tensors"_a, "data_types"_a, "width"_a, "height"_a,
             "channels"_a, "threshold"_a, "most_attributes"_a,
             "([(attribute, value, confidence, label or None)], text); a number of attributes "
             "above the limit; None if the function said false.");

    nb::class_<SegmentationParser, CustomFunction>(m, "SegmentationParser",
                                                   "A segmentation parser of a custom library.")
        .def(nb::init<std::shared_ptr<SharedObject>, const std::string &>(), "library"_a, "name"_a)
        .def("call", &call_segmentation, "tensors"_a, "data_types"_a, "channels"_a, "threshold"_a,
             "classes"_a, "map"_a,
             "Fills map, which has the size of the network input. The address of the "
             "probabilities, 0 for none; None if the function said false.");
}
