// Tensors, layers and what all layers have in common.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_TENSOR_H
#define HEADRACE_TRT_TENSOR_H

#include "callbacks.h"

namespace headrace {
inline namespace HEADRACE_GENERATION {

// Weights that the host holds: their type, how many, and where.
inline nvinfer1::Weights weightsFrom(const headrace_value &value) {
    nvinfer1::Weights weights = {nvinfer1::DataType::kFLOAT, nullptr, 0};
    if (value.kind != HEADRACE_DIMS || value.dims.count != 3) return weights;
    weights.type = static_cast<nvinfer1::DataType>(value.dims.axes[0]);
    weights.count = value.dims.axes[1];
    weights.values = reinterpret_cast<const void *>(static_cast<intptr_t>(value.dims.axes[2]));
    return weights;
}

// Numbers that the host holds until the same question is asked again; `count` may be null.
template <typename T, typename Count>
const T *numbersFrom(const headrace_value &value, Count *count) {
    const bool there = value.kind == HEADRACE_DIMS && value.dims.count == 2;
    if (count) *count = static_cast<Count>(there ? value.dims.axes[0] : 0);
    return there ? reinterpret_cast<const T *>(static_cast<intptr_t>(value.dims.axes[1])) : nullptr;
}

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

#define HEADRACE_WEIGHTS(getter, setter, name)                                             \
    HEADRACE_SET(Weights, setter, name)                                                    \
    Weights getter() const {                                                               \
        return headrace::weightsFrom(                                                      \
            headrace::callValue(nullptr, "layer_weights", {headrace::Value(this), name})); \
    }

namespace nvinfer1 {

class ITensor : public headrace::Object {
public:
    HEADRACE_PROPERTY(const char *, getName, setName, "name")
    void setDimensions(const Dims &dims) { headrace::set(this, "shape", dims); }
    HEADRACE_GET(Dims, getDimensions, "shape")
    HEADRACE_PROPERTY(DataType, getType, setType, "dtype")
    bool dynamicRangeIsSet() const { return headrace::call<bool>(this, "_dynamic_range_is_set"); }
    HEADRACE_CALL(bool, setDynamicRange(float min, float max), "set_dynamic_range", min, max)
    HEADRACE_GET(bool, isNetworkInput, "is_network_input")
    HEADRACE_GET(bool, isNetworkOutput, "is_network_output")
    HEADRACE_GET(bool, isShapeTensor, "is_shape_tensor")
    HEADRACE_GET(bool, isExecutionTensor, "is_execution_tensor")
    HEADRACE_PROPERTY(TensorLocation, getLocation, setLocation, "location")
    HEADRACE_PROPERTY(TensorFormats, getAllowedFormats, setAllowedFormats, "allowed_formats")
    void resetDynamicRange() { headrace::call<void>(this, "reset_dynamic_range"); }
    float getDynamicRangeMin() const { return rangeEnd(0); }
    float getDynamicRangeMax() const { return rangeEnd(1); }
    float getDynamicRange() const { return rangeEnd(1); }
    HEADRACE_PROPERTY(bool, getBroadcastAcrossBatch, setBroadcastAcrossBatch,
                      "broadcast_across_batch")
    HEADRACE_CALL(void, setDimensionName(int32_t index, const char *name), "set_dimension_name",
                  index, name)
    HEADRACE_CALL(const char *, getDimensionName(int32_t index) const, "get_dimension_name", index)

private:
    ITensor() = delete;
    float rangeEnd(int32_t which) const {
        return headrace::call<float>(nullptr, "range_end", {headrace::Value(this), which});
    }
};

class ILayer : public headrace::Object {
public:
    HEADRACE_GET(LayerType, getType, "layer_type")
    HEADRACE_PROPERTY(const char *, getName, setName, "name")
    HEADRACE_GET(int32_t, getNbInputs, "num_inputs")
    HEADRACE_GET(int32_t, getNbOutputs, "num_outputs")
    HEADRACE_CALL(ITensor *, getInput(int32_t index) const, "get_input", index)
    HEADRACE_CALL(ITensor *, getOutput(int32_t index) const, "get_output", index)
    HEADRACE_CALL(void, setInput(int32_t index, ITensor &tensor), "set_input", index, tensor)
    HEADRACE_PROPERTY(DataType, getPrecision, setPrecision, "precision")
    HEADRACE_GET(bool, precisionIsSet, "precision_is_set")
    void resetPrecision() { headrace::call<void>(this, "reset_precision"); }
    HEADRACE_CALL(void, setOutputType(int32_t index, DataType type), "set_output_type", index, type)
    HEADRACE_CALL(DataType, getOutputType(int32_t index) const, "get_output_type", index)
    HEADRACE_CALL(bool, outputTypeIsSet(int32_t index) const, "output_type_is_set", index)
    HEADRACE_CALL(void, resetOutputType(int32_t index), "reset_output_type", index)
    HEADRACE_PROPERTY(const char *, getMetadata, setMetadata, "metadata")
    HEADRACE_REFUSED(bool, setNbRanks(int32_t), "ILayer::setNbRanks", "10.16")
    HEADRACE_REFUSED(int32_t, getNbRanks() const, "ILayer::getNbRanks", "10.16")

protected:
    ILayer() = delete;
};

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_TENSOR_H
