// Tensors, layers and what all layers have in common.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_TENSOR_H
#define HEADRACE_TRT_TENSOR_H

#include "layer_enums.h"

// A property that the host keeps under a name of its own.
#define HEADRACE_GET(type, getter, name) \
    type getter() const { return headrace::get<type>(this, name); }
#define HEADRACE_SET(type, setter, name) \
    void setter(type value) { headrace::set(this, name, value); }
#define HEADRACE_PROPERTY(type, getter, setter, name) \
    HEADRACE_GET(type, getter, name)                  \
    HEADRACE_SET(type, setter, name)

namespace nvinfer1 {

class ITensor : public headrace::Object {
public:
    void setName(const char *name) { headrace::set(this, "name", name); }
    HEADRACE_GET(const char *, getName, "name")
    void setDimensions(const Dims &dims) { headrace::set(this, "shape", dims); }
    HEADRACE_GET(Dims, getDimensions, "shape")
    HEADRACE_PROPERTY(DataType, getType, setType, "dtype")
    bool dynamicRangeIsSet() const { return headrace::call<bool>(this, "_dynamic_range_is_set"); }
    bool setDynamicRange(float min, float max) {
        return headrace::call<bool>(this, "set_dynamic_range", {min, max});
    }
    HEADRACE_GET(bool, isNetworkInput, "is_network_input")
    HEADRACE_GET(bool, isNetworkOutput, "is_network_output")
    HEADRACE_GET(bool, isShapeTensor, "is_shape_tensor")
    HEADRACE_GET(bool, isExecutionTensor, "is_execution_tensor")
    HEADRACE_PROPERTY(TensorLocation, getLocation, setLocation, "location")
    HEADRACE_PROPERTY(TensorFormats, getAllowedFormats, setAllowedFormats, "allowed_formats")
    void setBroadcastAcrossBatch(bool) {}
    bool getBroadcastAcrossBatch() const { return false; }
    void setDimensionName(int32_t index, const char *name) {
        headrace::call<void>(this, "set_dimension_name", {index, name});
    }
    const char *getDimensionName(int32_t index) const {
        return headrace::call<const char *>(this, "get_dimension_name", {index});
    }

private:
    ITensor() = delete;
};

class ILayer : public headrace::Object {
public:
    HEADRACE_GET(LayerType, getType, "layer_type")
    void setName(const char *name) { headrace::set(this, "name", name); }
    HEADRACE_GET(const char *, getName, "name")
    HEADRACE_GET(int32_t, getNbInputs, "num_inputs")
    HEADRACE_GET(int32_t, getNbOutputs, "num_outputs")
    ITensor *getInput(int32_t index) const {
        return headrace::call<ITensor *>(this, "get_input", {index});
    }
    ITensor *getOutput(int32_t index) const {
        return headrace::call<ITensor *>(this, "get_output", {index});
    }
    void setInput(int32_t index, ITensor &tensor) {
        headrace::call<void>(this, "set_input", {index, tensor});
    }
    HEADRACE_PROPERTY(DataType, getPrecision, setPrecision, "precision")
    HEADRACE_GET(bool, precisionIsSet, "precision_is_set")
    void resetPrecision() { headrace::call<void>(this, "reset_precision"); }
    void setOutputType(int32_t index, DataType type) {
        headrace::call<void>(this, "set_output_type", {index, type});
    }
    DataType getOutputType(int32_t index) const {
        return headrace::call<DataType>(this, "get_output_type", {index});
    }
    bool outputTypeIsSet(int32_t index) const {
        return headrace::call<bool>(this, "output_type_is_set", {index});
    }
    void resetOutputType(int32_t index) {
        headrace::call<void>(this, "reset_output_type", {index});
    }
    void setMetadata(const char *text) { headrace::set(this, "metadata", text); }
    HEADRACE_GET(const char *, getMetadata, "metadata")

protected:
    ILayer() = delete;
};

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_TENSOR_H
