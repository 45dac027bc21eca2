// Tensors, layers and what all layers have in common.
//
// Part of noria, Apache-2.0. Valid C++11.
#ifndef NORIA_TRT_TENSOR_H
#define NORIA_TRT_TENSOR_H

#include "layer_enums.h"

// A property that the host keeps under a name of its own.
#define NORIA_GET(type, getter, name) \
    type getter() const { return noria::get<type>(this, name); }
#define NORIA_SET(type, setter, name) \
    void setter(type value) { noria::set(this, name, value); }
#define NORIA_PROPERTY(type, getter, setter, name) \
    NORIA_GET(type, getter, name)                  \
    NORIA_SET(type, setter, name)

namespace nvinfer1 {

class ITensor : public noria::Object {
public:
    void setName(const char *name) { noria::set(this, "name", name); }
    NORIA_GET(const char *, getName, "name")
    void setDimensions(const Dims &dims) { noria::set(this, "shape", dims); }
    NORIA_GET(Dims, getDimensions, "shape")
    NORIA_PROPERTY(DataType, getType, setType, "dtype")
    bool dynamicRangeIsSet() const { return noria::call<bool>(this, "_dynamic_range_is_set"); }
    bool setDynamicRange(float min, float max) {
        return noria::call<bool>(this, "set_dynamic_range", {min, max});
    }
    NORIA_GET(bool, isNetworkInput, "is_network_input")
    NORIA_GET(bool, isNetworkOutput, "is_network_output")
    NORIA_GET(bool, isShapeTensor, "is_shape_tensor")
    NORIA_GET(bool, isExecutionTensor, "is_execution_tensor")
    NORIA_PROPERTY(TensorLocation, getLocation, setLocation, "location")
    NORIA_PROPERTY(TensorFormats, getAllowedFormats, setAllowedFormats, "allowed_formats")
    void setBroadcastAcrossBatch(bool) {}
    bool getBroadcastAcrossBatch() const { return false; }
    void setDimensionName(int32_t index, const char *name) {
        noria::call<void>(this, "set_dimension_name", {index, name});
    }
    const char *getDimensionName(int32_t index) const {
        return noria::call<const char *>(this, "get_dimension_name", {index});
    }

private:
    ITensor() = delete;
};

class ILayer : public noria::Object {
public:
    NORIA_GET(LayerType, getType, "layer_type")
    void setName(const char *name) { noria::set(this, "name", name); }
    NORIA_GET(const char *, getName, "name")
    NORIA_GET(int32_t, getNbInputs, "num_inputs")
    NORIA_GET(int32_t, getNbOutputs, "num_outputs")
    ITensor *getInput(int32_t index) const {
        return noria::call<ITensor *>(this, "get_input", {index});
    }
    ITensor *getOutput(int32_t index) const {
        return noria::call<ITensor *>(this, "get_output", {index});
    }
    void setInput(int32_t index, ITensor &tensor) {
        noria::call<void>(this, "set_input", {index, tensor});
    }
    NORIA_PROPERTY(DataType, getPrecision, setPrecision, "precision")
    NORIA_GET(bool, precisionIsSet, "precision_is_set")
    void resetPrecision() { noria::call<void>(this, "reset_precision"); }
    void setOutputType(int32_t index, DataType type) {
        noria::call<void>(this, "set_output_type", {index, type});
    }
    DataType getOutputType(int32_t index) const {
        return noria::call<DataType>(this, "get_output_type", {index});
    }
    bool outputTypeIsSet(int32_t index) const {
        return noria::call<bool>(this, "output_type_is_set", {index});
    }
    void resetOutputType(int32_t index) { noria::call<void>(this, "reset_output_type", {index}); }
    void setMetadata(const char *text) { noria::set(this, "metadata", text); }
    NORIA_GET(const char *, getMetadata, "metadata")

protected:
    ILayer() = delete;
};

}  // namespace nvinfer1

#endif  // NORIA_TRT_TENSOR_H
