// Engines: kept as bytes, loaded, asked about themselves, run.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_RUNTIME_H
#define HEADRACE_TRT_RUNTIME_H

#include <cstdlib>
#include <cstring>

#include "network.h"

namespace nvinfer1 {

class IExecutionContext;
class IEngineInspector;

enum class LayerInformationFormat : int32_t { kONELINE = 0, kJSON = 1 };
enum class OptProfileSelector : int32_t { kMIN = 0, kOPT = 1, kMAX = 2 };
template <>
constexpr int32_t EnumMax<OptProfileSelector>() noexcept {
    return 3;
}
enum class TempfileControlFlag : int32_t { kALLOW_IN_MEMORY_FILES = 0, kALLOW_TEMPORARY_FILES = 1 };
using TempfileControlFlags = uint32_t;
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

namespace headrace {
inline namespace HEADRACE_GENERATION {
HEADRACE_ENUM(OptProfileSelector);
HEADRACE_ENUM(ProfilingVerbosity);
HEADRACE_ENUM(LayerInformationFormat);
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
    bool setExecutionContext(const IExecutionContext *) { return true; }
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
    IExecutionContext *createExecutionContext(ExecutionContextAllocationStrategy) {
        return createExecutionContext();
    }
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
    size_t getDeviceMemorySize() const { return 0; }
    int64_t getDeviceMemorySizeV2() const { return 0; }
    TensorFormat getTensorFormat(const char *) const { return TensorFormat::kLINEAR; }
    TensorFormat getBindingFormat(int32_t) const { return TensorFormat::kLINEAR; }
    int32_t getBindingVectorizedDim(int32_t) const { return -1; }
    int32_t getBindingComponentsPerElement(int32_t) const { return -1; }
    HEADRACE_CALL(const char *, getTensorFormatDesc(const char *name) const,
                  "get_tensor_format_desc", name)
    HEADRACE_CALL(int32_t, getTensorBytesPerComponent(const char *name) const,
                  "get_tensor_bytes_per_component", name)
    int32_t getTensorVectorizedDim(const char *) const { return -1; }
    int32_t getTensorComponentsPerElement(const char *) const { return -1; }
    HEADRACE_CALL(bool, isShapeInferenceIO(const char *name) const, "is_shape_inference_io", name)
    void setErrorRecorder(IErrorRecorder *) {}
    IErrorRecorder *getErrorRecorder() const { return nullptr; }

private:
    ICudaEngine() = delete;
};

class IExecutionContext : public headrace::Object {
public:
    ~IExecutionContext() { forgetAllocators(); }
    void destroy() { delete this; }
    // Streams have no meaning here; 0 is the first profile.
    HEADRACE_CALL(bool, setOptimizationProfileAsync(int32_t profile, cudaStream_t),
                  "set_optimization_profile_async", profile, 0)
    bool setOptimizationProfile(int32_t profile) {
        return setOptimizationProfileAsync(profile, nullptr);
    }
    HEADRACE_GET(int32_t, getOptimizationProfile, "active_optimization_profile")
    HEADRACE_GET(bool, allInputDimensionsSpecified, "all_binding_shapes_specified")
    HEADRACE_GET(bool, allInputShapesSpecified, "all_shape_inputs_specified")
    bool setOutputTensorAddress(const char *name, void *data) {
        return setTensorAddress(name, data);
    }
    const void *getTensorAddress(const char *name) const {
        return reinterpret_cast<const void *>(
            static_cast<intptr_t>(headrace::call<int64_t>(this, "get_tensor_address", {name})));
    }
    HEADRACE_CALL(Dims, getTensorStrides(const char *name) const, "get_tensor_strides", name)
    HEADRACE_CALL(int64_t, getMaxOutputSize(const char *name) const, "get_max_output_size", name)
    int32_t inferShapes(int32_t = 0, const char ** = nullptr) {
        return headrace::call<int32_t>(nullptr, "count_missing_shapes", {headrace::Value(this)});
    }
    bool setOutputAllocator(const char *name, IOutputAllocator *allocator) {
        const char *kept = headrace::call<const char *>(
            nullptr, "hold_output", {headrace::Value(this), name, allocator != nullptr});
        if (!kept) return false;
        for (headrace::OutputAllocators *one = allocators(); one; one = one->next)
            if (one->name == kept) return one->allocator = allocator, true;
        const headrace_host *h = headrace::host();
        h->set_peer(headraceObject(),
                    new headrace::OutputAllocators{kept, allocator, nullptr, allocators()});
        return true;
    }
    IOutputAllocator *getOutputAllocator(const char *name) const {
        for (headrace::OutputAllocators *one = allocators(); one; one = one->next)
            if (std::strcmp(one->name, name) == 0) return one->allocator;
        return nullptr;
    }
    HEADRACE_PROPERTY(const char *, getName, setName, "name")
    void setProfiler(IProfiler *) {}
    IProfiler *getProfiler() const { return nullptr; }
    void setDebugSync(bool) {}
    bool getDebugSync() const { return false; }
    void setDeviceMemory(void *) {}
    void setErrorRecorder(IErrorRecorder *) {}
    IErrorRecorder *getErrorRecorder() const { return nullptr; }
    bool setInputConsumedEvent(cudaEvent_t) { return true; }
    HEADRACE_CALL(bool, setInputShape(const char *name, const Dims &dims), "set_input_shape", name,
                  dims)
    HEADRACE_CALL(bool, setBindingDimensions(int32_t index, const Dims &dims), "set_binding_shape",
                  index, dims)
    HEADRACE_CALL(Dims, getTensorShape(const char *name) const, "get_tensor_shape", name)
    HEADRACE_CALL(Dims, getBindingDimensions(int32_t index) const, "get_binding_shape", index)
    HEADRACE_CALL(bool, setTensorAddress(const char *name, void *data), "set_tensor_address", name,
                  address(data))
    HEADRACE_CALL(bool, setInputTensorAddress(const char *name, const void *data),
                  "set_tensor_address", name, address(data))
    // Work here is done when the call returns, whatever the stream.
    bool enqueueV3(cudaStream_t stream) {
        return headrace::call<bool>(this, "execute_async_v3", {0}) && handOver(stream);
    }
    bool executeV2(void *const *bindings) { return run(bindings); }
    bool enqueueV2(void *const *bindings, cudaStream_t, cudaEvent_t *) { return run(bindings); }
    // Implicit batches, up to 9.
    bool execute(int32_t batch, void *const *bindings) { return run(bindings, batch); }
    bool enqueue(int32_t batch, void *const *bindings, cudaStream_t, cudaEvent_t *) {
        return run(bindings, batch);
    }
    const ICudaEngine &getEngine() const { return *headrace::get<ICudaEngine *>(this, "engine"); }

private:
    IExecutionContext() = delete;
    static long long address(const void *data) {
        return static_cast<long long>(reinterpret_cast<intptr_t>(data));
    }
    headrace::OutputAllocators *allocators() const {
        const headrace_host *h = headrace::host();
        return h ? static_cast<headrace::OutputAllocators *>(h->peer(headraceObject())) : nullptr;
    }
    void forgetAllocators() {
        while (headrace::OutputAllocators *one = allocators()) {
            headrace::host()->set_peer(headraceObject(), one->next);
            delete one;
        }
    }
    // The outputs that allocators give memory for.
    bool handOver(cudaStream_t stream) {
        bool done = true;
        for (headrace::OutputAllocators *one = allocators(); one; one = one->next) {
            if (!one->allocator) continue;
            const int64_t size =
                headrace::call<int64_t>(nullptr, "held_size", {headrace::Value(this), one->name});
            one->memory = one->allocator->reallocateOutputAsync(
                one->name, one->memory, static_cast<uint64_t>(size), 256, stream);
            one->allocator->notifyShape(
                one->name,
                headrace::call<Dims>(nullptr, "held_shape", {headrace::Value(this), one->name}));
            if (size > 0)
                done = headrace::call<bool>(
                           nullptr, "copy_held",
                           {headrace::Value(this), one->name, address(one->memory)}) &&
                       done;
        }
        return done;
    }
    // batch 0: the shapes say it.
    bool run(void *const *bindings, int32_t batch = 0) {
        const int32_t count = getEngine().getNbBindings();
        headrace::Items<int64_t> addresses(count);
        for (int32_t i = 0; i < count; ++i) addresses[i] = address(bindings[i]);
        const headrace::Value given = headrace::Value::ints(addresses.data(), count);
        return batch ? headrace::call<bool>(this, "execute", {batch, given})
                     : headrace::call<bool>(this, "execute_v2", {given});
    }
};

inline IExecutionContext *ICudaEngine::createExecutionContext() {
    return headrace::call<IExecutionContext *>(this, "create_execution_context");
}

inline IExecutionContext *ICudaEngine::createExecutionContextWithoutDeviceMemory() {
    return createExecutionContext();
}

// Other weights for an engine that was built with BuilderFlag::kREFIT.
class IRefitter : public headrace::Object {
public:
    void destroy() { delete this; }
    HEADRACE_CALL(bool, setWeights(const char *layer, WeightsRole role, Weights weights),
                  "set_weights", layer, role, weights)
    HEADRACE_CALL(bool, setNamedWeights(const char *name, Weights weights), "set_named_weights",
                  name, weights)
    bool refitCudaEngine() { return headrace::call<bool>(this, "refit_cuda_engine"); }
    bool refitCudaEngineAsync(cudaStream_t) { return refitCudaEngine(); }
    // Weights that are not given stay as they are.
    int32_t getMissing(int32_t, const char **, WeightsRole *) { return 0; }
    int32_t getMissingWeights(int32_t, const char **) { return 0; }
    int32_t getAll(int32_t size, const char **layers, WeightsRole *roles) {
        const int32_t count =
            headrace::call<int32_t>(nullptr, "count_weights", {headrace::Value(this), true});
        for (int32_t i = 0; i < size && i < count; ++i) {
            if (layers)
                layers[i] = headrace::call<const char *>(nullptr, "weights_at",
                                                         {headrace::Value(this), true, i});
            if (roles)
                roles[i] =
                    headrace::call<WeightsRole>(nullptr, "role_at", {headrace::Value(this), i});
        }
        return count;
    }
    int32_t getAllWeights(int32_t size, const char **names) {
        const int32_t count =
            headrace::call<int32_t>(nullptr, "count_weights", {headrace::Value(this), false});
        for (int32_t i = 0; names && i < size && i < count; ++i)
            names[i] = headrace::call<const char *>(nullptr, "weights_at",
                                                    {headrace::Value(this), false, i});
        return count;
    }
    void setErrorRecorder(IErrorRecorder *) {}
    IErrorRecorder *getErrorRecorder() const { return nullptr; }
    bool setMaxThreads(int32_t) { return true; }

private:
    IRefitter() = delete;
};

class IRuntime : public headrace::Object {
public:
    void destroy() { delete this; }
    HEADRACE_CALL(ICudaEngine *, deserializeCudaEngine(const void *blob, size_t size),
                  "deserialize_cuda_engine", headrace::Value::bytes(blob, size))
    ICudaEngine *deserializeCudaEngine(IStreamReader &reader) {
        return readAll([&](void *to, int64_t most) { return reader.read(to, most); });
    }
    ICudaEngine *deserializeCudaEngine(IStreamReaderV2 &reader) {
        return readAll([&](void *to, int64_t most) { return reader.read(to, most, nullptr); });
    }
    // Up to 7: the factory makes the layers that an engine stores by name and bytes alone.
    ICudaEngine *deserializeCudaEngine(const void *blob, size_t size, IPluginFactory *factory) {
        if (!factory) return deserializeCudaEngine(blob, size);
        const headrace_factory_calls calls = factory->headraceRuntimeCalls();
        return headrace::call<ICudaEngine *>(
            nullptr, "deserialize_with_factory",
            {headrace::Value(this), headrace::Value::bytes(blob, size),
             headrace::Value::foreign(HEADRACE_FACTORY, factory, &calls)});
    }
    ILogger *getLogger() const { return headrace::getLogger(this); }
    IPluginRegistry &getPluginRegistry() { return *headraceGetPluginRegistry(); }
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
    template <typename Read>
    ICudaEngine *readAll(Read read) {
        constexpr int64_t step = 1 << 20;
        char *bytes = nullptr;
        int64_t size = 0, got = 0;
        do {
            char *more = static_cast<char *>(std::realloc(bytes, static_cast<size_t>(size + step)));
            if (!more) break;
            bytes = more;
            got = read(bytes + size, step);
            size += got > 0 ? got : 0;
        } while (got > 0);
        ICudaEngine *engine = deserializeCudaEngine(bytes, static_cast<size_t>(size));
        std::free(bytes);
        return engine;
    }
};

inline IRuntime *createInferRuntime(ILogger &logger) {
    const headrace::LoggerValue given(&logger);
    return headrace::call<IRuntime *>(nullptr, "create_infer_runtime", {given.value()});
}

inline IRefitter *createInferRefitter(ICudaEngine &engine, ILogger &logger) {
    const headrace::LoggerValue given(&logger);
    return headrace::call<IRefitter *>(nullptr, "create_infer_refitter",
                                       {headrace::Value(&engine), given.value()});
}

}  // namespace nvinfer1

static inline int32_t getInferLibVersion() { return NV_TENSORRT_VERSION; }

#endif  // HEADRACE_TRT_RUNTIME_H
