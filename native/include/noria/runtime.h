// Engines: kept as bytes, loaded, asked about themselves, run.
//
// Part of noria, Apache-2.0. Valid C++11.
#ifndef NORIA_TRT_RUNTIME_H
#define NORIA_TRT_RUNTIME_H

#include "network.h"

namespace nvinfer1 {

class IExecutionContext;
class IEngineInspector;

enum class LayerInformationFormat : int32_t { kONELINE = 0, kJSON = 1 };
enum class OptProfileSelector : int32_t { kMIN = 0, kOPT = 1, kMAX = 2 };
enum class ProfilingVerbosity : int32_t {
    kLAYER_NAMES_ONLY = 0,
    kNONE = 1,
    kDETAILED = 2,
    kDEFAULT = kLAYER_NAMES_ONLY,
    kVERBOSE = kDETAILED
};
enum class ExecutionContextAllocationStrategy : int32_t {
    kSTATIC = 0,
    kON_PROFILE_CHANGE = 1,
    kUSER_MANAGED = 2
};

}  // namespace nvinfer1

namespace noria {
inline namespace NORIA_GENERATION {
NORIA_ENUM(OptProfileSelector);
NORIA_ENUM(ProfilingVerbosity);
NORIA_ENUM(LayerInformationFormat);
}  // namespace NORIA_GENERATION
}  // namespace noria

namespace nvinfer1 {

class IHostMemory : public noria::Object {
public:
    void destroy() { delete this; }
    void *data() const { return const_cast<void *>(bytes().data); }
    size_t size() const { return static_cast<size_t>(bytes().number); }
    DataType type() const { return DataType::kINT8; }

private:
    IHostMemory() = delete;
    noria_value bytes() const { return noria::callValue(this, "__bytes__", {}); }
};

class IEngineInspector : public noria::Object {
public:
    void destroy() { delete this; }
    bool setExecutionContext(const IExecutionContext *) { return true; }
    const char *getLayerInformation(int32_t index, LayerInformationFormat format) const {
        return noria::call<const char *>(this, "get_layer_information", {index, format});
    }
    const char *getEngineInformation(LayerInformationFormat format) const {
        return noria::call<const char *>(this, "get_engine_information", {format});
    }

private:
    IEngineInspector() = delete;
};

class ICudaEngine : public noria::Object {
public:
    void destroy() { delete this; }
    NORIA_GET(int32_t, getNbIOTensors, "num_io_tensors")
    const char *getIOTensorName(int32_t index) const {
        return noria::call<const char *>(this, "get_tensor_name", {index});
    }
    TensorIOMode getTensorIOMode(const char *name) const {
        return noria::call<TensorIOMode>(this, "get_tensor_mode", {name});
    }
    Dims getTensorShape(const char *name) const {
        return noria::call<Dims>(this, "get_tensor_shape", {name});
    }
    DataType getTensorDataType(const char *name) const {
        return noria::call<DataType>(this, "get_tensor_dtype", {name});
    }
    NORIA_GET(int32_t, getNbBindings, "num_bindings")
    int32_t getBindingIndex(const char *name) const {
        return noria::call<int32_t>(this, "get_binding_index", {name});
    }
    const char *getBindingName(int32_t index) const {
        return noria::call<const char *>(this, "get_binding_name", {index});
    }
    bool bindingIsInput(int32_t index) const {
        return noria::call<bool>(this, "binding_is_input", {index});
    }
    Dims getBindingDimensions(int32_t index) const {
        return noria::call<Dims>(this, "get_binding_shape", {index});
    }
    DataType getBindingDataType(int32_t index) const {
        return noria::call<DataType>(this, "get_binding_dtype", {index});
    }
    NORIA_GET(int32_t, getMaxBatchSize, "max_batch_size")
    NORIA_GET(int32_t, getNbLayers, "num_layers")
    NORIA_GET(int32_t, getNbOptimizationProfiles, "num_optimization_profiles")
    NORIA_GET(bool, hasImplicitBatchDimension, "has_implicit_batch_dimension")
    NORIA_GET(const char *, getName, "name")
    IHostMemory *serialize() const { return noria::call<IHostMemory *>(this, "serialize"); }
    IEngineInspector *createEngineInspector() const {
        return noria::call<IEngineInspector *>(this, "create_engine_inspector");
    }
    IExecutionContext *createExecutionContext();

private:
    ICudaEngine() = delete;
};

class IExecutionContext : public noria::Object {
public:
    void destroy() { delete this; }
    bool setInputShape(const char *name, const Dims &dims) {
        return noria::call<bool>(this, "set_input_shape", {name, dims});
    }
    bool setBindingDimensions(int32_t index, const Dims &dims) {
        return noria::call<bool>(this, "set_binding_shape", {index, dims});
    }
    Dims getTensorShape(const char *name) const {
        return noria::call<Dims>(this, "get_tensor_shape", {name});
    }
    Dims getBindingDimensions(int32_t index) const {
        return noria::call<Dims>(this, "get_binding_shape", {index});
    }
    bool setTensorAddress(const char *name, void *data) {
        return noria::call<bool>(this, "set_tensor_address", {name, address(data)});
    }
    bool setInputTensorAddress(const char *name, const void *data) {
        return noria::call<bool>(this, "set_tensor_address", {name, address(data)});
    }
    // Work here is done when the call returns, whatever the stream.
    bool enqueueV3(cudaStream_t) { return noria::call<bool>(this, "execute_async_v3", {0}); }
    bool executeV2(void *const *bindings) { return run(bindings); }
    bool enqueueV2(void *const *bindings, cudaStream_t, cudaEvent_t *) { return run(bindings); }
    const ICudaEngine &getEngine() const {
        return *noria::get<ICudaEngine *>(this, "engine");
    }

private:
    IExecutionContext() = delete;
    static long long address(const void *data) { return static_cast<long long>(
        reinterpret_cast<intptr_t>(data)); }
    bool run(void *const *bindings) {
        const int32_t count = getEngine().getNbBindings();
        noria::Items<int64_t> addresses(count);
        for (int32_t i = 0; i < count; ++i) addresses[i] = address(bindings[i]);
        return noria::call<bool>(this, "execute_v2",
                                 {noria::Value::ints(addresses.data(), count)});
    }
};

inline IExecutionContext *ICudaEngine::createExecutionContext() {
    return noria::call<IExecutionContext *>(this, "create_execution_context");
}

class IRuntime : public noria::Object {
public:
    void destroy() { delete this; }
    ICudaEngine *deserializeCudaEngine(const void *blob, size_t size) {
        return noria::call<ICudaEngine *>(this, "deserialize_cuda_engine",
                                          {noria::Value::bytes(blob, size)});
    }
    // Up to 7: the factory makes the layers that an engine stores by name and bytes alone.
    ICudaEngine *deserializeCudaEngine(const void *blob, size_t size, IPluginFactory *factory) {
        if (!factory) return deserializeCudaEngine(blob, size);
        const noria_factory_calls calls = factory->noriaRuntimeCalls();
        return noria::call<ICudaEngine *>(
            nullptr, "deserialize_with_factory",
            {noria::Value(this), noria::Value::bytes(blob, size),
             noria::Value::foreign(NORIA_FACTORY, factory, &calls)});
    }
    ILogger *getLogger() const { return noria::getLogger(this); }
    IPluginRegistry &getPluginRegistry() { return *noriaGetPluginRegistry(); }
    void setGpuAllocator(IGpuAllocator *) {}
    void setErrorRecorder(IErrorRecorder *) {}
    IErrorRecorder *getErrorRecorder() const { return nullptr; }
    void setDLACore(int32_t) {}
    int32_t getDLACore() const { return -1; }
    int32_t getNbDLACores() const { return 0; }
    bool setMaxThreads(int32_t) { return true; }
    int32_t getMaxThreads() const { return 1; }

private:
    IRuntime() = delete;
};

inline IRuntime *createInferRuntime(ILogger &logger) {
    const noria::LoggerValue given(&logger);
    return noria::call<IRuntime *>(nullptr, "create_infer_runtime", {given.value()});
}

}  // namespace nvinfer1

static inline int32_t getInferLibVersion() { return NV_TENSORRT_VERSION; }

#endif  // NORIA_TRT_RUNTIME_H
