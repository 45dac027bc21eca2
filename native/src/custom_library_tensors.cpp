#include "custom_library_tensors.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <stdexcept>

namespace nb = nanobind;

namespace {

constexpr int no_type = -1;
constexpr int as_tensor = PyBUF_WRITABLE | PyBUF_FORMAT;

// NvDsInferDataType of the elements, no_type if it has none for them.
int data_type_of(const Py_buffer &buffer) {
    const char *format = buffer.format;
    if (!format || !format[0] || format[1]) return no_type;  // also another byte order
    switch (format[0]) {
    case 'f': return FLOAT;
    case 'e': return HALF;
    case 'b': return INT8;
    case 'i': return INT32;
    case 'l':
    case 'q': return buffer.itemsize == 8 ? INT64 : no_type;
    case 'B':
    case '?': return UINT8;
    default: return no_type;
    }
}

void bind_layer(NvDsInferLayerInfo &layer, const Py_buffer &buffer, int data_type) {
    NvDsInferDims &dims = layer.inferDims;
    dims = NvDsInferDims{};
    dims.numElements = static_cast<unsigned int>(buffer.len / buffer.itemsize);
    dims.numDims = static_cast<unsigned int>(buffer.ndim);
    std::copy_n(buffer.shape, buffer.ndim, dims.d);
    if (dims.numDims == 0) {  // a tensor that is only batch
        dims.numDims = 1;
        dims.d[0] = 1;
    }
    layer.dataType = static_cast<NvDsInferDataType>(data_type);
    layer.buffer = buffer.buf;
}

}  // namespace

BoundTensors::BoundTensors(CustomFunction &function, const nb::list &tensors,
                           const std::vector<int> &data_types)
    : held_(new ArrayView[tensors.size()]) {
    if (tensors.size() != function.layer_count() || data_types.size() != function.layer_count())
        throw std::invalid_argument("set_layers was called for another number of tensors");
    for (size_t i = 0; i < tensors.size(); ++i) {
        if (!held_[i].open(tensors[i], as_tensor)) throw nb::python_error();
        // Subclasses of arrays can say anything of themselves.
        if (data_type_of(*held_[i]) != data_types[i] || held_[i]->ndim > NVDSINFER_MAX_DIMS)
            throw std::invalid_argument("an array is not what it says");
        bind_layer(function.layer(i), *held_[i], data_types[i]);
    }
}
