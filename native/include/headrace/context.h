// Execution contexts: shapes, addresses and runs of an engine.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_CONTEXT_H
#define HEADRACE_TRT_CONTEXT_H

#include "engine.h"

namespace nvinfer1 {

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
    void *getOutputTensorAddress(const char *name) const {
        return const_cast<void *>(getTensorAddress(name));
    }
    const void *getTensorAddress(const char *name) const {
        return reinterpret_cast<const void *>(
            static_cast<intptr_t>(headrace::call<int64_t>(this, "get_tensor_address", {name})));
    }
    HEADRACE_CALL(Dims, getTensorStrides(const char *name) const, "get_tensor_strides", name)
    HEADRACE_CALL(int64_t, getMaxOutputSize(const char *name) const, "get_max_output_size", name)
    // How many inputs lack a shape or values; the names of the first of them are written.
    int32_t inferShapes(int32_t size = 0, const char **names = nullptr) {
        const int32_t count =
            headrace::call<int32_t>(nullptr, "count_missing_shapes", {headrace::Value(this)});
        for (int32_t i = 0; names && i < size && i < count; ++i)
            names[i] = headrace::call<const char *>(nullptr, "missing_shape_at",
                                                    {headrace::Value(this), i});
        return count;
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
    void setProfiler(IProfiler *profiler) { headrace::setCallback(this, "profiler", profiler); }
    IProfiler *getProfiler() const { return headrace::getCallback<IProfiler>(this, "profiler"); }
    bool reportToProfiler() const { return headrace::call<bool>(this, "report_to_profiler"); }
    HEADRACE_PROPERTY(bool, getEnqueueEmitsProfile, setEnqueueEmitsProfile, "enqueue_emits_profile")
    HEADRACE_PROPERTY(bool, getDebugSync, setDebugSync, "debug_sync")
    // A CPU needs no device memory.
    void setDeviceMemory(void *memory) { setDeviceMemoryV2(memory, 0); }
    HEADRACE_CALL(void, setDeviceMemoryV2(void *memory, int64_t size), "set_device_memory",
                  address(memory), size)
    size_t updateDeviceMemorySizeForShapes() {
        return headrace::call<size_t>(this, "update_device_memory_size_for_shapes");
    }
    HEADRACE_PROPERTY(size_t, getPersistentCacheLimit, setPersistentCacheLimit,
                      "persistent_cache_limit")
    bool setNvtxVerbosity(ProfilingVerbosity verbosity) {
        return headrace::set(this, "nvtx_verbosity", verbosity);
    }
    HEADRACE_GET(ProfilingVerbosity, getNvtxVerbosity, "nvtx_verbosity")
    bool setTemporaryStorageAllocator(IGpuAllocator *allocator) {
        headrace::setCallback(this, "temporary_allocator", allocator);
        return true;
    }
    IGpuAllocator *getTemporaryStorageAllocator() const {
        return headrace::getCallback<IGpuAllocator>(this, "temporary_allocator");
    }
    void setAuxStreams(cudaStream_t *, int32_t) {}
    HEADRACE_RECORDER
    HEADRACE_CALL(bool, setInputConsumedEvent(cudaEvent_t event), "set_input_consumed_event",
                  address(event))
    cudaEvent_t getInputConsumedEvent() const {
        return reinterpret_cast<cudaEvent_t>(
            static_cast<intptr_t>(headrace::call<int64_t>(this, "get_input_consumed_event")));
    }
    IRuntimeConfig *getRuntimeConfig() const {
        return headrace::call<IRuntimeConfig *>(this, "get_runtime_config");
    }
    bool setDebugListener(IDebugListener *listener) {
        bool done = false;
        headrace::withCallback(listener, [&](const headrace::Value &value) {
            done = headrace::call<bool>(this, "set_debug_listener", {value});
        });
        return done;
    }
    IDebugListener *getDebugListener() {
        return headrace::callbackFrom<IDebugListener>(
            headrace::callValue(this, "get_debug_listener", {}));
    }
    HEADRACE_CALL(bool, setTensorDebugState(const char *name, bool on), "set_tensor_debug_state",
                  name, on)
    HEADRACE_CALL(bool, setAllTensorsDebugState(bool on), "set_all_tensors_debug_state", on)
    HEADRACE_CALL(bool, getDebugState(const char *name) const, "get_debug_state", name)
    bool setUnfusedTensorsDebugState(bool on) {
        return headrace::set(this, "unfused_tensors_debug_state", on);
    }
    HEADRACE_GET(bool, getUnfusedTensorsDebugState, "unfused_tensors_debug_state")
    HEADRACE_REFUSED(bool, setCommunicator(void *), "IExecutionContext::setCommunicator", "10.16")
    // Values of inputs that decide shapes, by the number of a binding: up to 9.
    bool setInputShapeBinding(int32_t index, const int32_t *values) {
        return headrace::call<bool>(nullptr, "set_shape_binding",
                                    {headrace::Value(this), index, address(values)});
    }
    bool getShapeBinding(int32_t index, int32_t *values) const {
        return headrace::call<bool>(nullptr, "get_shape_binding",
                                    {headrace::Value(this), index, address(values)});
    }
    HEADRACE_CALL(Dims, getStrides(int32_t index) const, "get_strides", index)
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

inline IExecutionContext *ICudaEngine::createExecutionContext(
    ExecutionContextAllocationStrategy strategy) {
    return headrace::call<IExecutionContext *>(this, "create_execution_context", {strategy});
}

inline IExecutionContext *ICudaEngine::createExecutionContext(IRuntimeConfig *config) {
    return headrace::call<IExecutionContext *>(nullptr, "context_with_config",
                                               {headrace::Value(this), config});
}

inline bool IEngineInspector::setExecutionContext(const IExecutionContext *context) {
    return headrace::set(this, "execution_context", context);
}

inline const IExecutionContext *IEngineInspector::getExecutionContext() const {
    return headrace::get<IExecutionContext *>(this, "execution_context");
}

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_CONTEXT_H
