#include "custom/library.h"

#include "custom/results.h"

#include <algorithm>

namespace nb = nanobind;

namespace headrace::custom {
namespace {

NvDsInferDataType data_type_of(const Py_buffer &buffer) {
    const char *format = buffer.format;
    switch (format && format[0] && !format[1] ? format[0] : 0) {  // longer: also another byte order
    case 'f': return FLOAT;
    case 'e': return HALF;
    case 'b': return INT8;
    case 'i': return INT32;
    case 'B':
    case '?': return UINT8;
    case 'l':
    case 'q':
        if (buffer.itemsize == 8) return INT64;
        [[fallthrough]];
    default: throw std::invalid_argument("an array of a type that C++ has no name for");
    }
}

void bind_layer(NvDsInferLayerInfo &layer, const Py_buffer &buffer) {
    if (buffer.ndim > NVDSINFER_MAX_DIMS) throw std::invalid_argument("an array of too many axes");
    NvDsInferDims &dims = layer.inferDims;
    dims = NvDsInferDims{};
    dims.numElements = static_cast<unsigned int>(buffer.len / buffer.itemsize);
    dims.numDims = static_cast<unsigned int>(buffer.ndim);
    std::copy_n(buffer.shape, buffer.ndim, dims.d);
    if (dims.numDims == 0) {  // a tensor that is only batch
        dims.numDims = 1;
        dims.d[0] = 1;
    }
    layer.dataType = data_type_of(buffer);
    layer.buffer = buffer.buf;
}

}  // namespace

CustomFunction::CustomFunction(std::shared_ptr<SharedObject> library, const std::string &name)
    : library_(std::move(library)), function_(library_->symbol(name)) {
    if (!function_) throw std::runtime_error("no exported symbol " + name);
}

void CustomFunction::set_layers(const std::vector<std::string> &names,
                                const std::vector<int> &bindings, bool inputs) {
    layers_.assign(names.size(), NvDsInferLayerInfo{});
    for (size_t i = 0; i < names.size(); ++i) {
        layers_[i].layerName = names_.insert(names[i]).first->c_str();
        layers_[i].bindingIndex = bindings[i];
        layers_[i].isInput = inputs;
    }
}

void CustomFunction::set_params(unsigned int num_classes, const std::vector<float> &pre,
                                const std::vector<float> &post) {
    params_.numClassesConfigured = num_classes;
    fill_with_guard(params_.perClassPreclusterThreshold, pre);
    fill_with_guard(params_.perClassPostclusterThreshold, post);
}

core::ArrayViews CustomFunction::bind(const nb::list &tensors) {
    if (tensors.size() != layers_.size())
        throw std::invalid_argument("set_layers was called for another number of tensors");
    core::ArrayViews views(new core::ArrayView[layers_.size()]);
    for (size_t i = 0; i < layers_.size(); ++i) {
        if (!views[i].open(tensors[i], PyBUF_WRITABLE | PyBUF_FORMAT)) throw nb::python_error();
        bind_layer(layers_[i], *views[i]);
    }
    return views;
}

}  // namespace headrace::custom
