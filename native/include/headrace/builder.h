// From a network to an engine.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_BUILDER_H
#define HEADRACE_TRT_BUILDER_H

#include "calibrators.h"
#include "runtime.h"

namespace nvinfer1 {

using BuilderFlags = uint32_t;
using QuantizationFlags = uint32_t;
using TacticSources = uint32_t;

// Numbers are these headers' own; the host is told names.
enum class BuilderFlag : int32_t {
    kFP16 = 0,
    kINT8 = 1,
    kDEBUG = 2,
    kGPU_FALLBACK = 3,
    kSTRICT_TYPES = 4,
    kREFIT = 5,
    kDISABLE_TIMING_CACHE = 6,
    kTF32 = 7,
    kSPARSE_WEIGHTS = 8,
    kSAFETY_SCOPE = 9,
    kOBEY_PRECISION_CONSTRAINTS = 10,
    kPREFER_PRECISION_CONSTRAINTS = 11,
    kDIRECT_IO = 12,
    kREJECT_EMPTY_ALGORITHMS = 13,
    kENABLE_TACTIC_HEURISTIC = 14,
    kVERSION_COMPATIBLE = 15,
    kEXCLUDE_LEAN_RUNTIME = 16,
    kFP8 = 17,
    kERROR_ON_TIMING_CACHE_MISS = 18,
    kBF16 = 19,
    kDISABLE_COMPILATION_CACHE = 20,
    kSTRIP_PLAN = 21,
    kREFIT_IDENTICAL = 22,
    kWEIGHT_STREAMING = 23,
    kINT4 = 24
};

enum class MemoryPoolType : int32_t {
    kWORKSPACE = 0,
    kDLA_MANAGED_SRAM = 1,
    kDLA_LOCAL_DRAM = 2,
    kDLA_GLOBAL_DRAM = 3,
    kTACTIC_DRAM = 4,
    kTACTIC_SHARED_MEMORY = 5
};
enum class DeviceType : int32_t { kGPU = 0, kDLA = 1 };
enum class QuantizationFlag : int32_t { kCALIBRATE_BEFORE_FUSION = 0 };
enum class TacticSource : int32_t {
    kCUBLAS = 0,
    kCUBLAS_LT = 1,
    kCUDNN = 2,
    kEDGE_MASK_CONVOLUTIONS = 3,
    kJIT_CONVOLUTIONS = 4
};
enum class PreviewFeature : int32_t {
    kFASTER_DYNAMIC_SHAPES_0805 = 0,
    kDISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805 = 1,
    kPROFILE_SHARING_0806 = 2,
    kALIASED_PLUGIN_IO_10_03 = 3
};
enum class HardwareCompatibilityLevel : int32_t { kNONE = 0, kAMPERE_PLUS = 1 };
enum class RuntimePlatform : int32_t { kSAME_AS_BUILD = 0, kWINDOWS_AMD64 = 1 };
enum class TilingOptimizationLevel : int32_t { kNONE = 0, kFAST = 1, kMODERATE = 2, kFULL = 3 };

}  // namespace nvinfer1

namespace headrace {
inline namespace HEADRACE_GENERATION {
HEADRACE_ENUM(MemoryPoolType);
HEADRACE_ENUM(DeviceType);
HEADRACE_ENUM(HardwareCompatibilityLevel);
HEADRACE_ENUM(RuntimePlatform);
HEADRACE_ENUM(TilingOptimizationLevel);

// A member by its name: its number differs between generations.
static inline Value namedFlag(nvinfer1::BuilderFlag flag) {
    static const char *const names[] = {"FP16",
                                        "INT8",
                                        "DEBUG",
                                        "GPU_FALLBACK",
                                        "STRICT_TYPES",
                                        "REFIT",
                                        "DISABLE_TIMING_CACHE",
                                        "TF32",
                                        "SPARSE_WEIGHTS",
                                        "SAFETY_SCOPE",
                                        "OBEY_PRECISION_CONSTRAINTS",
                                        "PREFER_PRECISION_CONSTRAINTS",
                                        "DIRECT_IO",
                                        "REJECT_EMPTY_ALGORITHMS",
                                        "ENABLE_TACTIC_HEURISTIC",
                                        "VERSION_COMPATIBLE",
                                        "EXCLUDE_LEAN_RUNTIME",
                                        "FP8",
                                        "ERROR_ON_TIMING_CACHE_MISS",
                                        "BF16",
                                        "DISABLE_COMPILATION_CACHE",
                                        "STRIP_PLAN",
                                        "REFIT_IDENTICAL",
                                        "WEIGHT_STREAMING",
                                        "INT4"};
    const size_t index = static_cast<size_t>(flag);
    Value v;
    v.kind = HEADRACE_ENUM, v.number = static_cast<int64_t>(flag), v.extra = "BuilderFlag";
    v.data = index < sizeof(names) / sizeof(*names) ? names[index] : nullptr;
    return v;
}
}  // namespace HEADRACE_GENERATION
}  // namespace headrace

namespace nvinfer1 {

class IOptimizationProfile : public headrace::Object {
public:
    bool setDimensions(const char *name, OptProfileSelector select, const Dims &dims) {
        return headrace::call<bool>(
            nullptr, "profile_set_dimensions",
            {headrace::Value(this), name, static_cast<int32_t>(select), dims});
    }
    Dims getDimensions(const char *name, OptProfileSelector select) const {
        return headrace::call<Dims>(nullptr, "profile_get_dimensions",
                                    {headrace::Value(this), name, static_cast<int32_t>(select)});
    }
    bool setShapeValues(const char *name, OptProfileSelector select, const int32_t *values,
                        int32_t count) {
        headrace::Items<int64_t> wide(count);
        for (int32_t i = 0; i < count; ++i) wide[i] = values[i];
        return headrace::call<bool>(nullptr, "profile_set_values",
                                    {headrace::Value(this), name, static_cast<int32_t>(select),
                                     headrace::Value::ints(wide.data(), count)});
    }
    bool setExtraMemoryTarget(float) { return true; }
    bool isValid() const { return true; }

private:
    IOptimizationProfile() = delete;
};

// Carries the bytes that it was given, so that programs that save and load it work.
class ITimingCache : public headrace::Object {
public:
    void destroy() { delete this; }
    IHostMemory *serialize() const { return headrace::call<IHostMemory *>(this, "serialize"); }
    HEADRACE_CALL(bool, combine(const ITimingCache &other, bool ignoreMismatch), "combine", other,
                  ignoreMismatch)
    bool reset() { return headrace::call<bool>(this, "reset"); }

private:
    ITimingCache() = delete;
};

// What a selector is shown. There is none of them: no selector is asked.
class IAlgorithmIOInfo {
public:
    virtual TensorFormat getTensorFormat() const = 0;
    virtual DataType getDataType() const = 0;
    virtual Dims getStrides() const = 0;
    virtual int64_t getVectorizedDim() const = 0;
    virtual int64_t getComponentsPerElement() const = 0;

protected:
    virtual ~IAlgorithmIOInfo() = default;
};

class IAlgorithmVariant {
public:
    virtual int64_t getImplementation() const = 0;
    virtual int64_t getTactic() const = 0;

protected:
    virtual ~IAlgorithmVariant() = default;
};

class IAlgorithmContext {
public:
    virtual const char *getName() const = 0;
    virtual Dims getDimensions(int32_t index, OptProfileSelector select) const = 0;
    virtual int32_t getNbInputs() const = 0;
    virtual int32_t getNbOutputs() const = 0;

protected:
    virtual ~IAlgorithmContext() = default;
};

class IAlgorithm {
public:
    virtual const IAlgorithmIOInfo &getAlgorithmIOInfo(int32_t index) const = 0;
    virtual const IAlgorithmIOInfo *getAlgorithmIOInfoByIndex(int32_t index) const = 0;
    virtual const IAlgorithmVariant &getAlgorithmVariant() const = 0;
    virtual float getTimingMSec() const = 0;
    virtual size_t getWorkspaceSize() const = 0;

protected:
    virtual ~IAlgorithm() = default;
};

// Refused by IBuilderConfig::setAlgorithmSelector: every layer has one algorithm here.
class IAlgorithmSelector {
public:
    virtual int32_t selectAlgorithms(const IAlgorithmContext &context,
                                     const IAlgorithm *const *choices, int32_t count,
                                     int32_t *selection) = 0;
    virtual void reportAlgorithms(const IAlgorithmContext *const *contexts,
                                  const IAlgorithm *const *choices, int32_t count) = 0;
    virtual ~IAlgorithmSelector() = default;
};

class IBuilderConfig : public headrace::Object {
public:
    void destroy() { delete this; }
    HEADRACE_CALL(void, setFlag(BuilderFlag flag), "set_flag", headrace::namedFlag(flag))
    HEADRACE_CALL(void, clearFlag(BuilderFlag flag), "clear_flag", headrace::namedFlag(flag))
    HEADRACE_CALL(bool, getFlag(BuilderFlag flag) const, "get_flag", headrace::namedFlag(flag))
    void setFlags(BuilderFlags flags) {
        for (int32_t i = 0; i <= static_cast<int32_t>(BuilderFlag::kINT4); ++i)
            (flags >> i) & 1U ? setFlag(static_cast<BuilderFlag>(i))
                              : clearFlag(static_cast<BuilderFlag>(i));
    }
    BuilderFlags getFlags() const {
        BuilderFlags flags = 0;
        for (int32_t i = 0; i <= static_cast<int32_t>(BuilderFlag::kINT4); ++i)
            if (getFlag(static_cast<BuilderFlag>(i))) flags |= 1U << i;
        return flags;
    }
    HEADRACE_CALL(void, setMemoryPoolLimit(MemoryPoolType pool, size_t size),
                  "set_memory_pool_limit", pool, size)
    HEADRACE_CALL(size_t, getMemoryPoolLimit(MemoryPoolType pool) const, "get_memory_pool_limit",
                  pool)
    HEADRACE_PROPERTY(size_t, getMaxWorkspaceSize, setMaxWorkspaceSize, "max_workspace_size")
    HEADRACE_CALL(int32_t, addOptimizationProfile(const IOptimizationProfile *profile),
                  "add_optimization_profile", profile)
    HEADRACE_GET(int32_t, getNbOptimizationProfiles, "num_optimization_profiles")
    void setCalibrationProfile(const IOptimizationProfile *) {}
    HEADRACE_PROPERTY(DeviceType, getDefaultDeviceType, setDefaultDeviceType, "default_device_type")
    HEADRACE_PROPERTY(int32_t, getDLACore, setDLACore, "DLA_core")
    HEADRACE_CALL(void, setDeviceType(const ILayer *layer, DeviceType type), "set_device_type",
                  layer, type)
    bool canRunOnDLA(const ILayer *) const { return false; }
    HEADRACE_PROPERTY(ProfilingVerbosity, getProfilingVerbosity, setProfilingVerbosity,
                      "profiling_verbosity")
    HEADRACE_PROPERTY(int32_t, getBuilderOptimizationLevel, setBuilderOptimizationLevel,
                      "builder_optimization_level")
    HEADRACE_PROPERTY(int32_t, getAvgTimingIterations, setAvgTimingIterations,
                      "avg_timing_iterations")
    HEADRACE_PROPERTY(int32_t, getMaxAuxStreams, setMaxAuxStreams, "max_aux_streams")
    void setMinTimingIterations(int32_t) {}
    bool setTacticSources(TacticSources) { return true; }
    TacticSources getTacticSources() const { return 0; }
    HEADRACE_PROPERTY(RuntimePlatform, getRuntimePlatform, setRuntimePlatform, "runtime_platform")
    bool setTilingOptimizationLevel(TilingOptimizationLevel level) {
        return headrace::set(this, "tiling_optimization_level", level);
    }
    HEADRACE_GET(TilingOptimizationLevel, getTilingOptimizationLevel, "tiling_optimization_level")
    void setPreviewFeature(PreviewFeature, bool) {}
    void setHardwareCompatibilityLevel(HardwareCompatibilityLevel) {}
    void setQuantizationFlag(QuantizationFlag) {}
    void setProfileStream(cudaStream_t) {}
    void setEngineCapability(EngineCapability) {}
    // Its scales are the original's way to INT8.
    void setInt8Calibrator(IInt8Calibrator *calibrator) {
        headrace::setCalibrator(this, calibrator);
    }
    HEADRACE_CALL(ITimingCache *, createTimingCache(const void *blob, size_t size) const,
                  "create_timing_cache", headrace::Value::bytes(blob, size))
    HEADRACE_CALL(bool, setTimingCache(const ITimingCache &cache, bool ignoreMismatch),
                  "set_timing_cache", cache, ignoreMismatch)
    const ITimingCache *getTimingCache() const {
        return headrace::call<ITimingCache *>(this, "get_timing_cache");
    }
    void setAlgorithmSelector(IAlgorithmSelector *selector) {
        if (selector) headrace::call<void>(nullptr, "refuse_selector", {headrace::Value(this)});
    }
    IAlgorithmSelector *getAlgorithmSelector() const { return nullptr; }
    void reset() { headrace::call<void>(this, "reset"); }

private:
    IBuilderConfig() = delete;
};

class IBuilder : public headrace::Object {
public:
    void destroy() { delete this; }
    INetworkDefinition *createNetworkV2(NetworkDefinitionCreationFlags flags) {
#if NV_TENSORRT_MAJOR >= 10
        flags |= 1U << static_cast<int32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
#endif
        return headrace::call<INetworkDefinition *>(nullptr, "create_network",
                                                    {headrace::Value(this), flags});
    }
    INetworkDefinition *createNetwork() {
        return headrace::call<INetworkDefinition *>(nullptr, "create_network",
                                                    {headrace::Value(this), 0});
    }
    IBuilderConfig *createBuilderConfig() {
        return headrace::call<IBuilderConfig *>(this, "create_builder_config");
    }
    IOptimizationProfile *createOptimizationProfile() {
        return headrace::call<IOptimizationProfile *>(this, "create_optimization_profile");
    }
    HEADRACE_CALL(IHostMemory *,
                  buildSerializedNetwork(INetworkDefinition &network, IBuilderConfig &config),
                  "build_serialized_network", network, config)
    ICudaEngine *buildEngineWithConfig(INetworkDefinition &network, IBuilderConfig &config) {
        return headrace::call<ICudaEngine *>(nullptr, "build_engine",
                                             {headrace::Value(this), network, config});
    }
    // Up to 7: a builder had settings of its own.
    ICudaEngine *buildCudaEngine(INetworkDefinition &network) {
        return headrace::call<ICudaEngine *>(nullptr, "build_engine",
                                             {headrace::Value(this), network});
    }
    HEADRACE_CALL(bool,
                  isNetworkSupported(const INetworkDefinition &network,
                                     const IBuilderConfig &config) const,
                  "is_network_supported", network, config)
    ILogger *getLogger() const { return headrace::getLogger(this); }
    IPluginRegistry &getPluginRegistry() { return *headraceGetPluginRegistry(); }
    HEADRACE_GET(bool, platformHasFastFp16, "platform_has_fast_fp16")
    HEADRACE_GET(bool, platformHasFastInt8, "platform_has_fast_int8")
    HEADRACE_GET(bool, platformHasTf32, "platform_has_tf32")
    HEADRACE_PROPERTY(int32_t, getMaxBatchSize, setMaxBatchSize, "max_batch_size")
    int32_t getNbDLACores() const { return 0; }
    int32_t getMaxDLABatchSize() const { return 0; }
    bool setMaxThreads(int32_t) { return true; }
    void setGpuAllocator(IGpuAllocator *) {}
    void setErrorRecorder(IErrorRecorder *) {}
    void setMaxWorkspaceSize(size_t size) {
        headrace::call<void>(nullptr, "builder_setting",
                             {headrace::Value(this), "max_workspace_size", size});
    }
    void setFp16Mode(bool on) { setMode("FP16", on); }
    void setHalf2Mode(bool on) { setMode("FP16", on); }
    void setInt8Mode(bool on) { setMode("INT8", on); }
    void setStrictTypeConstraints(bool on) { setMode("STRICT_TYPES", on); }
    void setDebugSync(bool) {}
    void setAverageFindIterations(int) {}
    void setMinFindIterations(int) {}
    void allowGPUFallback(bool) {}
    void setDefaultDeviceType(DeviceType) {}
    void setDLACore(int) {}
    void setInt8Calibrator(IInt8Calibrator *calibrator) {
        headrace::setCalibrator(this, calibrator);
    }
    void reset() { headrace::call<void>(this, "reset"); }

private:
    IBuilder() = delete;
    void setMode(const char *flag, bool on) {
        headrace::call<void>(nullptr, "builder_setting", {headrace::Value(this), flag, on});
    }
};

inline IBuilder &INetworkDefinition::getBuilder() const {
    return *headrace::get<IBuilder *>(this, "builder");
}

inline IBuilder *createInferBuilder(ILogger &logger) {
    const headrace::LoggerValue given(&logger);
    return headrace::call<IBuilder *>(nullptr, "create_infer_builder", {given.value()});
}

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_BUILDER_H
