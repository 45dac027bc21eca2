// Python face of the custom-library host.
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cxxabi.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "custom_library_detector.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Tensor = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;

void free_storage(void *storage) noexcept { ::operator delete(storage); }

// Fills shape and buffer of one layer; the caller keeps `tensor` alive during the call.
void bind_layer(NvDsInferLayerInfo &layer, const Tensor &tensor, int data_type) {
    NvDsInferDims &dims = layer.inferDims;
    dims = NvDsInferDims{};
    dims.numElements = static_cast<unsigned int>(tensor.size());
    dims.numDims = static_cast<unsigned int>(tensor.ndim());
    for (size_t axis = 0; axis < tensor.ndim(); ++axis)
        dims.d[axis] = static_cast<unsigned int>(tensor.shape(axis));
    if (dims.numDims == 0) {  // a tensor that is only batch
        dims.numDims = 1;
        dims.d[0] = 1;
    }
    layer.dataType = static_cast<NvDsInferDataType>(data_type);
    layer.buffer = const_cast<void *>(tensor.data());
}

// (bytes of the returned boxes, bytes of their storage), or None if the function returned false.
nb::object call_detector(DetectorParser &parser, nb::list tensors,
                         const std::vector<int> &data_types, unsigned int width,
                         unsigned int height, unsigned int channels) {
    if (tensors.size() != parser.layer_count() || data_types.size() != parser.layer_count())
        throw std::invalid_argument("set_layers was called for another number of tensors");
    std::vector<Tensor> held;
    held.reserve(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
        held.push_back(nb::cast<Tensor>(tensors[i], false));
        bind_layer(parser.layer(i), held.back(), data_types[i]);
    }
    ByteVector boxes;
    bool usable;
    {
        nb::gil_scoped_release unlocked;
        usable = parser.call(NvDsInferNetworkInfo{width, height, channels}, boxes);
    }
    if (!usable) return nb::none();
    const size_t size = boxes.size(), capacity = boxes.capacity();
    void *storage = boxes.release();
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

// Boxes of `words` 32-bit words each -> ((N, 4) boxes, scores, class ids, angles or None, sound):
// sound if every number is finite and no class id exceeds the signed range.
nb::tuple decode_boxes(const Bytes &bytes, size_t words, bool with_angles) {
    const size_t count = bytes.shape(0) / (4 * words);
    with_angles = with_angles && words == 7;
    std::unique_ptr<float[]> boxes(new float[4 * count]), scores(new float[count]);
    std::unique_ptr<float[]> angles(with_angles ? new float[count] : nullptr);
    std::unique_ptr<int32_t[]> ids(new int32_t[count]);
    const uint8_t *from = bytes.data();
    bool sound = true;
    for (size_t i = 0; i < count; ++i, from += 4 * words) {
        std::memcpy(&ids[i], from, 4);
        std::memcpy(&boxes[4 * i], from + 4, 16);
        std::memcpy(&scores[i], from + 20, 4);
        for (size_t k = 4 * i; k < 4 * i + 4; ++k) sound &= std::isfinite(boxes[k]);
        sound &= std::isfinite(scores[i]) && ids[i] >= 0;
        if (with_angles) {
            std::memcpy(&angles[i], from + 24, 4);
            sound &= std::isfinite(angles[i]);
        }
    }
    nb::object tilt = nb::none();
    if (with_angles) tilt = new_array(std::move(angles), count);
    return nb::make_tuple(new_array(std::move(boxes), count, 4), new_array(std::move(scores), count),
                          new_array(std::move(ids), count), tilt, sound);
}

std::string demangle(const std::string &name) {
    int status = 0;
    std::unique_ptr<char, void (*)(void *)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
    return text ? text.get() : name;
}

}  // namespace

void bind_custom_library(nb::module_ &m) {
    nb::exception<CustomCodeError>(m, "CustomCodeError");

    nb::class_<SharedObject>(m, "SharedObject", "A shared object opened with RTLD_NOW | RTLD_LOCAL.")
        .def(nb::init<const std::string &>(), "path"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("has", [](const SharedObject &self, const std::string &name) {
            return self.symbol(name) != nullptr;
        });

    nb::class_<DetectorParser>(m, "DetectorParser", "A detector parser of a custom library.")
        .def(nb::init<std::shared_ptr<SharedObject>, const std::string &>(), "library"_a, "name"_a)
        .def("set_params", &DetectorParser::set_params, "num_classes"_a, "pre"_a, "post"_a)
        .def("set_layers", &DetectorParser::set_layers, "names"_a, "bindings"_a)
        .def("call", &call_detector, "tensors"_a, "data_types"_a, "width"_a, "height"_a,
             "channels"_a,
             "(uint8 array of the boxes, capacity in bytes), or None if the function said false.");

    m.def("decode_boxes", &decode_boxes, "data"_a, "words"_a, "with_angles"_a,
          "((N, 4) boxes, scores, class ids, angles or None, whether all is finite and in range).");

    m.def("demangle", &demangle, "name"_a, "The C++ name behind a linker symbol.");
}
