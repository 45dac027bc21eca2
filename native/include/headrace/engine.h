// Engines: kept as bytes, asked about themselves.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_ENGINE_H
#define HEADRACE_TRT_ENGINE_H

#include <cstdlib>
#include <cstring>

#include "network.h"
#include "settings.h"

namespace nvinfer1 {

class IExecutionContext;
class IEngineInspector;
class IRefitter;

enum class LayerInformationFormat : int32_t { kONELINE = 0, kJSON = 1 };
enum class OptProfileSelector : int32_t { kMIN = 0, kOPT = 1, kMAX = 2 };
template <>
constexpr int32_t EnumMax<OptProfileSelector>() noexcept {
    return 3;
}
enum class EngineStat : int32_t { kTOTAL_WEIGHTS_SIZE = 0, kSTRIPPED_WEIGHTS_SIZE = 1 };
enum class HardwareCompatibilityLevel : int32_t {
    kNONE = 0,
    kAMPERE_PLUS = 1,
    kSAME_COMPUTE_CAPABILITY = 2
};
using TacticSources = uint32_t;
enum class TempfileControlFlag : int32_t { kALLOW_IN_MEMORY_FILES = 0, kALLOW_TEMPORARY_FILES = 1 };
using TempfileControlFlags = uint32_t;
enum class ProfilingVerbosity : int32_t {
    kLAYER_NAMES_ONLY = 0,
    kNONE = 1,
    kDETAILED = 2,
    kDEFAULT = kLAYER_NAMES_ONLY,
    kVERBOSE = kDETAILED
};

}  // namespace nvinfer1

namespace headrace {
inline namespace HEADRACE_GENERATION {
HEADRACE_ENUM(OptProfileSelector);
HEADRACE_ENUM(ProfilingVerbosity);
HEADRACE_ENUM(LayerInformationFormat);
HEADRACE_ENUM(TempfileControlFlag);
HEADRACE_ENUM(EngineStat);
HEADRACE_ENUM(HardwareCompatibilityLevel);
}  // namespace HEADRACE_GENERATION
}  // namespace headrace

namespace nvinfer1 {

// Sources derive from it to hand over memory of their own.
class IHostMemory {
public:
    virtual void *data() const = 0;
    virtual size_t size() const = 0;
    virtual DataType type() const = 0;
    virtual void destroy() { delete this; }
    virtual ~IHostMemory() = default;
};

}  // namespace nvinfer1

namespace headrace {
inline namespace HEADRACE_GENERATION {

// Bytes of the host.
class HostBytes : public nvinfer1::IHostMemory {
public:
    explicit HostBytes(headrace_object *object) : object_(object) {}
    HostBytes(const HostBytes &) = delete;
    HostBytes &operator=(const HostBytes &) = delete;
    ~HostBytes() override {
        if (const headrace_host *h = host()) h->release(object_);
    }
    void *data() const override { return const_cast<void *>(bytes().data); }
    size_t size() const override { return static_cast<size_t>(bytes().number); }
    nvinfer1::DataType type() const override { return nvinfer1::DataType::kINT8; }

private:
    headrace_object *object_;
    headrace_value bytes() const {
        headrace_value result = {};
        if (const headrace_host *h = host()) h->call(object_, "__bytes__", nullptr, 0, &result);
        return result;
    }
};

template <>
struct As<nvinfer1::IHostMemory *> {
    static nvinfer1::IHostMemory *from(const headrace_value &v) {
        return v.kind == HEADRACE_OBJECT
                   ? new HostBytes(static_cast<headrace_object *>(const_cast<void *>(v.data)))
                   : nullptr;
    }
};

// The allocators of a context, beside its object.
struct OutputAllocators {
    const char *name;  // the host's copy
    nvinfer1::IOutputAllocator *allocator;
    void *memory;
    OutputAllocators *next;
};

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

namespace nvinfer1 {

class IEngineInspector : public headrace::Object {
public:
    void destroy() { delete this; }
    bool setExecutionContext(const IExecutionContext *context);
    const IExecutionContext *getExecutionContext() const;
    HEADRACE_RECORDER
    HEADRACE_CALL(const char *,
                  getLayerInformation(int32_t index, LayerInformationFormat format) const,
                  "get_layer_information", index, format)
    HEADRACE_CALL(const char *, getEngineInformation(LayerInformationFormat format) const,
                  "get_engine_information", format)

private:
    IEngineInspector() = delete;
};

class ICudaEngine : public headrace::Object {
public:
    void destroy() { delete this; }
    HEADRACE_GET(int32_t, getNbIOTensors, "num_io_tensors")
    HEADRACE_CALL(const char *, getIOTensorName(int32_t index) const, "get_tensor_name", index)
    HEADRACE_CALL(TensorIOMode, getTensorIOMode(const char *name) const, "get_tensor_mode", name)
    HEADRACE_CALL(Dims, getTensorShape(const char *name) const, "get_tensor_shape", name)
    HEADRACE_CALL(DataType, getTensorDataType(const char *name) const, "get_tensor_dtype", name)
    HEADRACE_GET(int32_t, getNbBindings, "num_bindings")
    HEADRACE_CALL(int32_t, getBindingIndex(const char *name) const, "get_binding_index", name)
    HEADRACE_CALL(const char *, getBindingName(int32_t index) const, "get_binding_name", index)
    HEADRACE_CALL(bool, bindingIsInput(int32_t index) const, "binding_is_input", index)
    HEADRACE_CALL(Dims, getBindingDimensions(int32_t index) const, "get_binding_shape", index)
    HEADRACE_CALL(DataType, getBindingDataType(int32_t index) const, "get_binding_dtype", index)
    HEADRACE_GET(int32_t, getMaxBatchSize, "max_batch_size")
    HEADRACE_GET(int32_t, getNbLayers, "num_layers")
    HEADRACE_GET(int32_t, getNbOptimizationProfiles, "num_optimization_profiles")
    HEADRACE_GET(bool, hasImplicitBatchDimension, "has_implicit_batch_dimension")
    HEADRACE_GET(const char *, getName, "name")
    IHostMemory *serialize() const { return headrace::call<IHostMemory *>(this, "serialize"); }
    IEngineInspector *createEngineInspector() const {
        return headrace::call<IEngineInspector *>(this, "create_engine_inspector");
    }
    IExecutionContext *createExecutionContext();
    IExecutionContext *createExecutionContext(ExecutionContextAllocationStrategy strategy);
    IExecutionContext *createExecutionContext(IRuntimeConfig *config);
    IExecutionContext *createExecutionContextWithRuntimeConfig(IRuntimeConfig *config) {
        return createExecutionContext(config);
    }
    IRuntimeConfig *createRuntimeConfig() {
        return headrace::call<IRuntimeConfig *>(this, "create_runtime_config");
    }
    ISerializationConfig *createSerializationConfig() {
        return headrace::call<ISerializationConfig *>(this, "create_serialization_config");
    }
    HEADRACE_CALL(IHostMemory *, serializeWithConfig(ISerializationConfig &config) const,
                  "serialize_with_config", config)
    IRefitter *createRefitter(ILogger &logger);
    IExecutionContext *createExecutionContextWithoutDeviceMemory();
    Dims getProfileShape(const char *name, int32_t profile, OptProfileSelector select) const {
        return headrace::call<Dims>(
            nullptr, "engine_profile_shape",
            {headrace::Value(this), name, profile, static_cast<int32_t>(select)});
    }
    Dims getProfileDimensions(int32_t binding, int32_t profile, OptProfileSelector select) const {
        return getProfileShape(getBindingName(binding), profile, select);
    }
    HEADRACE_GET(bool, isRefittable, "refittable")
    HEADRACE_GET(size_t, getDeviceMemorySize, "device_memory_size")
    HEADRACE_GET(int64_t, getDeviceMemorySizeV2, "device_memory_size_v2")
    HEADRACE_CALL(size_t, getDeviceMemorySizeForProfile(int32_t profile) const,
                  "get_device_memory_size_for_profile", profile)
    HEADRACE_CALL(int64_t, getDeviceMemorySizeForProfileV2(int32_t profile) const,
                  "get_device_memory_size_for_profile_v2", profile)
    size_t getWorkspaceSize() const { return getDeviceMemorySize(); }
    // Weights stay in the host's memory: a budget is kept and reported.
    HEADRACE_GET(int64_t, getStreamableWeightsSize, "streamable_weights_size")
    bool setWeightStreamingBudgetV2(int64_t bytes) {
        return bytes >= 0 &&
               headrace::set(this, "weight_streaming_budget_v2", headrace::Value(bytes));
    }
    HEADRACE_GET(int64_t, getWeightStreamingBudgetV2, "weight_streaming_budget_v2")
    bool setWeightStreamingBudget(int64_t bytes) {
        return bytes >= -1 &&
               headrace::set(this, "weight_streaming_budget", headrace::Value(bytes));
    }
    HEADRACE_GET(int64_t, getWeightStreamingBudget, "weight_streaming_budget")
    HEADRACE_GET(int64_t, getMinimumWeightStreamingBudget, "minimum_weight_streaming_budget")
    int64_t getWeightStreamingAutomaticBudget() const {
        return headrace::call<int64_t>(this, "get_weight_streaming_automatic_budget");
    }
    HEADRACE_GET(int64_t, getWeightStreamingScratchMemorySize,
                 "weight_streaming_scratch_memory_size")
    HEADRACE_CALL(int64_t, getEngineStat(EngineStat stat) const, "get_engine_stat", stat)
    HEADRACE_CALL(bool, isDebugTensor(const char *name) const, "is_debug_tensor", name)
    HEADRACE_CALL(const char *, getAliasedInputTensor(const char *name) const,
                  "get_aliased_input_tensor", name)
    HEADRACE_GET(EngineCapability, getEngineCapability, "engine_capability")
    HEADRACE_GET(HardwareCompatibilityLevel, getHardwareCompatibilityLevel,
                 "hardware_compatibility_level")
    HEADRACE_GET(ProfilingVerbosity, getProfilingVerbosity, "profiling_verbosity")
    HEADRACE_GET(TacticSources, getTacticSources, "tactic_sources")
    HEADRACE_GET(int32_t, getNbAuxStreams, "num_aux_streams")
    HEADRACE_CALL(TensorLocation, getTensorLocation(const char *name) const, "get_tensor_location",
                  name)
    HEADRACE_CALL(TensorFormat, getTensorFormat(const char *name, int32_t profile = 0) const,
                  "get_tensor_format", name, profile)
    HEADRACE_CALL(TensorFormat, getBindingFormat(int32_t index) const, "get_binding_format", index)
    HEADRACE_CALL(const char *, getBindingFormatDesc(int32_t index) const,
                  "get_binding_format_desc", index)
    HEADRACE_CALL(int32_t, getBindingBytesPerComponent(int32_t index) const,
                  "get_binding_bytes_per_component", index)
    HEADRACE_CALL(int32_t, getBindingVectorizedDim(int32_t index) const,
                  "get_binding_vectorized_dim", index)
    HEADRACE_CALL(int32_t, getBindingComponentsPerElement(int32_t index) const,
                  "get_binding_components_per_element", index)
    HEADRACE_CALL(TensorLocation, getLocation(int32_t index) const, "get_location", index)
    HEADRACE_CALL(bool, isShapeBinding(int32_t index) const, "is_shape_binding", index)
    HEADRACE_CALL(bool, isExecutionBinding(int32_t index) const, "is_execution_binding", index)
    // The values that an input may have which decides shapes; null without any.
    const int32_t *getProfileShapeValues(int32_t profile, int32_t binding,
                                         OptProfileSelector select) const {
        return getProfileTensorValues(getBindingName(binding), profile, select);
    }
    const int32_t *getProfileTensorValues(const char *name, int32_t profile,
                                          OptProfileSelector select) const {
        return headrace::numbersFrom<int32_t, int32_t>(
            headrace::callValue(
                nullptr, "engine_profile_values",
                {headrace::Value(this), name, profile, static_cast<int32_t>(select), 4}),
            nullptr);
    }
    const int64_t *getProfileTensorValuesV2(const char *name, int32_t profile,
                                            OptProfileSelector select) const {
        return headrace::numbersFrom<int64_t, int32_t>(
            headrace::callValue(
                nullptr, "engine_profile_values",
                {headrace::Value(this), name, profile, static_cast<int32_t>(select), 8}),
            nullptr);
    }
    HEADRACE_CALL(const char *, getTensorFormatDesc(const char *name, int32_t profile = 0) const,
                  "get_tensor_format_desc", name, profile)
    HEADRACE_CALL(int32_t, getTensorBytesPerComponent(const char *name, int32_t profile = 0) const,
                  "get_tensor_bytes_per_component", name, profile)
    HEADRACE_CALL(int32_t, getTensorVectorizedDim(const char *name, int32_t profile = 0) const,
                  "get_tensor_vectorized_dim", name, profile)
    HEADRACE_CALL(int32_t,
                  getTensorComponentsPerElement(const char *name, int32_t profile = 0) const,
                  "get_tensor_components_per_element", name, profile)
    HEADRACE_CALL(bool, isShapeInferenceIO(const char *name) const, "is_shape_inference_io", name)
    HEADRACE_RECORDER

private:
    ICudaEngine() = delete;
};

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_ENGINE_H
