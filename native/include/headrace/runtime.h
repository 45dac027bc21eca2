// Engines from bytes, and other weights for them.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_RUNTIME_H
#define HEADRACE_TRT_RUNTIME_H

#include "context.h"

namespace nvinfer1 {

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
    // Dynamic ranges are not kept in engines: there are none to change.
    HEADRACE_CALL(bool, setDynamicRange(const char *name, float min, float max),
                  "set_dynamic_range", name, headrace::Value::reals(Ends{{min, max}}.both, 2))
    float getDynamicRangeMin(const char *name) const { return rangeEnd(name, 0); }
    float getDynamicRangeMax(const char *name) const { return rangeEnd(name, 1); }
    int32_t getTensorsWithDynamicRange(int32_t, const char **) const { return 0; }
    HEADRACE_CALL(bool, setNamedWeights(const char *name, Weights weights, TensorLocation location),
                  "set_named_weights", name, weights, location)
    bool setNamedWeightsWithLocation(const char *name, Weights weights, TensorLocation location) {
        return setNamedWeights(name, weights, location);
    }
    HEADRACE_CALL(TensorLocation, getWeightsLocation(const char *name) const,
                  "get_weights_location", name)
    HEADRACE_CALL(bool, unsetNamedWeights(const char *name), "unset_named_weights", name)
    Weights getNamedWeights(const char *name) const { return weightsBy("named_weights", name); }
    Weights getWeightsPrototype(const char *name) const {
        return weightsBy("weights_prototype", name);
    }
    HEADRACE_PROPERTY(bool, getWeightsValidation, setWeightsValidation, "weights_validation")
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
    HEADRACE_RECORDER
    ILogger *getLogger() const { return headrace::getLogger(this); }
    bool setMaxThreads(int32_t threads) { return headrace::set(this, "max_threads", threads); }
    HEADRACE_GET(int32_t, getMaxThreads, "max_threads")

private:
    IRefitter() = delete;
    struct Ends {
        float both[2];
    };
    float rangeEnd(const char *name, int32_t which) const {
        return headrace::call<float>(nullptr, "refitter_range_end",
                                     {headrace::Value(this), name, which});
    }
    Weights weightsBy(const char *function, const char *name) const {
        return headrace::weightsFrom(
            headrace::callValue(nullptr, function, {headrace::Value(this), name}));
    }
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
    IPluginRegistry &getPluginRegistry() {
        return *headrace::call<IPluginRegistry *>(this, "get_plugin_registry");
    }
    HEADRACE_CALL(void, setPluginRegistryParent(IPluginRegistry *parent),
                  "set_plugin_registry_parent", parent)
    void setGpuAllocator(IGpuAllocator *allocator) {
        headrace::setCallback(this, "gpu_allocator", allocator);
    }
    HEADRACE_RECORDER
    HEADRACE_PROPERTY(int32_t, getDLACore, setDLACore, "DLA_core")
    HEADRACE_GET(int32_t, getNbDLACores, "num_DLA_cores")
    bool setMaxThreads(int32_t threads) { return headrace::set(this, "max_threads", threads); }
    HEADRACE_GET(int32_t, getMaxThreads, "max_threads")
    HEADRACE_PROPERTY(const char *, getTemporaryDirectory, setTemporaryDirectory,
                      "temporary_directory")
    HEADRACE_PROPERTY(TempfileControlFlags, getTempfileControlFlags, setTempfileControlFlags,
                      "tempfile_control_flags")
    HEADRACE_PROPERTY(bool, getEngineHostCodeAllowed, setEngineHostCodeAllowed,
                      "engine_host_code_allowed")
    HEADRACE_CALL(IRuntime *, loadRuntime(const char *path), "load_runtime", path)

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

inline IRefitter *ICudaEngine::createRefitter(ILogger &logger) {
    return createInferRefitter(*this, logger);
}

}  // namespace nvinfer1

static inline int32_t getInferLibVersion() { return NV_TENSORRT_VERSION; }

#endif  // HEADRACE_TRT_RUNTIME_H
