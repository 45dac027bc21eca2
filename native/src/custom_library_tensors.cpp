#include "custom_library_tensors.h"

namespace nb = nanobind;

namespace {

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

}  // namespace

BoundTensors::BoundTensors(CustomFunction &function, const nb::list &tensors,
                           const std::vector<int> &data_types) {
    if (tensors.size() != function.layer_count() || data_types.size() != function.layer_count())
        throw std::invalid_argument("set_layers was called for another number of tensors");
    held_.reserve(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
        held_.push_back(nb::cast<Tensor>(tensors[i], false));
        bind_layer(function.layer(i), held_.back(), data_types[i]);
    }
}
