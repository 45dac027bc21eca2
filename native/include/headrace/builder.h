// From a network to an engine.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_BUILDER_H
#define HEADRACE_TRT_BUILDER_H

#include "algorithms.h"
#include "calibrators.h"
#include "runtime.h"

namespace nvinfer1 {

using BuilderFlags = uint32_t;
using QuantizationFlags = uint32_t;

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
    kINT4 = 24,
    kREFIT_INDIVIDUAL = 25,
    kSTRICT_NANS = 26,
    kMONITOR_MEMORY = 27,
    kFP4 = 28,
    kEDITABLE_TIMING_CACHE = 29,
    kDISTRIBUTIVE_INDEPENDENCE = 30
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
    kALIASED_PLUGIN_IO_10_03 = 3,
    kRUNTIME_ACTIVATION_RESIZE_10_10 = 4,
    kMULTIDEVICE_RUNTIME_10_16 = 5
};
enum class RuntimePlatform : int32_t { kSAME_AS_BUILD = 0, kWINDOWS_AMD64 = 1 };
enum class TilingOptimizationLevel : int32_t { kNONE = 0, kFAST = 1, kMODERATE = 2, kFULL = 3 };

}  // namespace nvinfer1

namespace headrace {
inline namespace HEADRACE_GENERATION {
HEADRACE_ENUM(MemoryPoolType);
HEADRACE_ENUM(DeviceType);
HEADRACE_ENUM(QuantizationFlag);
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
                                        "INT4",
                                        "REFIT_INDIVIDUAL",
                                        "STRICT_NANS",
                                        "MONITOR_MEMORY",
                                        "FP4",
                                        "EDITABLE_TIMING_CACHE",
                                        "DISTRIBUTIVE_INDEPENDENCE"};
    const size_t index = static_cast<size_t>(flag);
    Value v;
    v.kind = HEADRACE_ENUM, v.number = static_cast<int64_t>(flag), v.extra = "BuilderFlag";
    v.data = index < sizeof(names) / sizeof(*names) ? names[index] : nullptr;
    return v;
}

static inline Value namedFeature(nvinfer1::PreviewFeature feature) {
    static const char *const names[] = {"FASTER_DYNAMIC_SHAPES_0805",
                                        "DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805",
                                        "PROFILE_SHARING_0806",
                                        "ALIASED_PLUGIN_IO_10_03",
                                        "RUNTIME_ACTIVATION_RESIZE_10_10",
                                        "MULTIDEVICE_RUNTIME_10_16"};
    const size_t index = static_cast<size_t>(feature);
    Value v;
    v.kind = HEADRACE_ENUM, v.number = static_cast<int64_t>(feature), v.extra = "PreviewFeature";
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
    bool setShapeValuesV2(const char *name, OptProfileSelector select, const int64_t *values,
                          int32_t count) {
        return headrace::call<bool>(nullptr, "profile_set_values",
                                    {headrace::Value(this), name, static_cast<int32_t>(select),
                                     headrace::Value::ints(values, count)});
    }
    int32_t getNbShapeValues(const char *name) const {
        int32_t count = 0;
        values<int32_t>(name, OptProfileSelector::kMIN, &count);
        return count ? count : -1;
    }
    const int32_t *getShapeValues(const char *name, OptProfileSelector select) const {
        return values<int32_t>(name, select, nullptr);
    }
    const int64_t *getShapeValuesV2(const char *name, OptProfileSelector select) const {
        return values<int64_t>(name, select, nullptr);
    }
    HEADRACE_CALL(bool, setExtraMemoryTarget(float target), "set_extra_memory_target", target)
    HEADRACE_GET(float, getExtraMemoryTarget, "extra_memory_target")
    bool isValid() const { return headrace::call<bool>(this, "__bool__"); }

private:
    IOptimizationProfile() = delete;
    template <typename T>
    const T *values(const char *name, OptProfileSelector select, int32_t *count) const {
        return headrace::numbersFrom<T>(
            headrace::callValue(nullptr, "profile_values",
                                {headrace::Value(this), name, static_cast<int32_t>(select),
                                 static_cast<int32_t>(sizeof(T))}),
            count);
    }
};

struct TimingCacheKey {
    uint8_t data[16];
};
struct TimingCacheValue {
    uint64_t tacticHash;
    float timingMSec;
};

// Carries the bytes that it was given, so that programs that save and load it work. Its entries are
// not shown: the host keeps times elsewhere.
class ITimingCache : public headrace::Object {
public:
    void destroy() { delete this; }
    IHostMemory *serialize() const { return headrace::call<IHostMemory *>(this, "serialize"); }
    HEADRACE_CALL(bool, combine(const ITimingCache &other, bool ignoreMismatch), "combine", other,
                  ignoreMismatch)
    bool reset() { return headrace::call<bool>(this, "reset"); }
    int64_t queryKeys(TimingCacheKey *, int64_t) const { return 0; }
    TimingCacheValue query(const TimingCacheKey &) const {
        return TimingCacheValue{0, __builtin_nanf("")};
    }
    bool update(const TimingCacheKey &, const TimingCacheValue &) { return false; }

private:
    ITimingCache() = delete;
};

class IBuilderConfig : public headrace::Object {
public:
    void destroy() { delete this; }
    HEADRACE_CALL(void, setFlag(BuilderFlag flag), "set_flag", headrace::namedFlag(flag))
    HEADRACE_CALL(void, clearFlag(BuilderFlag flag), "clear_flag", headrace::namedFlag(flag))
    HEADRACE_CALL(bool, getFlag(BuilderFlag flag) const, "get_flag", headrace::namedFlag(flag))
    void setFlags(BuilderFlags flags) {
        for (int32_t i = 0; i <= static_cast<int32_t>(BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE); ++i)
            (flags >> i) & 1U ? setFlag(static_cast<BuilderFlag>(i))
                              : clearFlag(static_cast<BuilderFlag>(i));
    }
    BuilderFlags getFlags() const {
        BuilderFlags flags = 0;
        for (int32_t i = 0; i <= static_cast<int32_t>(BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE); ++i)
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
    HEADRACE_CALL(bool, setCalibrationProfile(const IOptimizationProfile *profile),
                  "set_calibration_profile", profile)
    const IOptimizationProfile *getCalibrationProfile() {
        return headrace::call<IOptimizationProfile *>(this, "get_calibration_profile");
    }
    HEADRACE_PROPERTY(DeviceType, getDefaultDeviceType, setDefaultDeviceType, "default_device_type")
    HEADRACE_PROPERTY(int32_t, getDLACore, setDLACore, "DLA_core")
    HEADRACE_CALL(void, setDeviceType(const ILayer *layer, DeviceType type), "set_device_type",
                  layer, type)
    HEADRACE_CALL(DeviceType, getDeviceType(const ILayer *layer) const, "get_device_type", layer)
    HEADRACE_CALL(bool, isDeviceTypeSet(const ILayer *layer) const, "is_device_type_set", layer)
    HEADRACE_CALL(void, resetDeviceType(const ILayer *layer), "reset_device_type", layer)
    HEADRACE_CALL(bool, canRunOnDLA(const ILayer *layer) const, "can_run_on_DLA", layer)
    HEADRACE_PROPERTY(ProfilingVerbosity, getProfilingVerbosity, setProfilingVerbosity,
                      "profiling_verbosity")
    HEADRACE_PROPERTY(int32_t, getBuilderOptimizationLevel, setBuilderOptimizationLevel,
                      "builder_optimization_level")
    HEADRACE_PROPERTY(int32_t, getAvgTimingIterations, setAvgTimingIterations,
                      "avg_timing_iterations")
    HEADRACE_PROPERTY(int32_t, getMaxAuxStreams, setMaxAuxStreams, "max_aux_streams")
    HEADRACE_PROPERTY(int32_t, getMinTimingIterations, setMinTimingIterations,
                      "min_timing_iterations")
    HEADRACE_CALL(bool, setTacticSources(TacticSources sources), "set_tactic_sources", sources)
    TacticSources getTacticSources() const {
        return headrace::call<TacticSources>(this, "get_tactic_sources");
    }
    HEADRACE_PROPERTY(RuntimePlatform, getRuntimePlatform, setRuntimePlatform, "runtime_platform")
    bool setTilingOptimizationLevel(TilingOptimizationLevel level) {
        return headrace::set(this, "tiling_optimization_level", level);
    }
    HEADRACE_GET(TilingOptimizationLevel, getTilingOptimizationLevel, "tiling_optimization_level")
    HEADRACE_CALL(void, setPreviewFeature(PreviewFeature feature, bool on), "set_preview_feature",
                  headrace::namedFeature(feature), on)
    HEADRACE_CALL(bool, getPreviewFeature(PreviewFeature feature) const, "get_preview_feature",
                  headrace::namedFeature(feature))
    HEADRACE_PROPERTY(HardwareCompatibilityLevel, getHardwareCompatibilityLevel,
                      setHardwareCompatibilityLevel, "hardware_compatibility_level")
    HEADRACE_CALL(void, setQuantizationFlag(QuantizationFlag flag), "set_quantization_flag", flag)
    HEADRACE_CALL(void, clearQuantizationFlag(QuantizationFlag flag), "clear_quantization_flag",
                  flag)
    HEADRACE_CALL(bool, getQuantizationFlag(QuantizationFlag flag) const, "get_quantization_flag",
                  flag)
    HEADRACE_PROPERTY(QuantizationFlags, getQuantizationFlags, setQuantizationFlags,
                      "quantization_flags")
    void setProfileStream(const cudaStream_t stream) {
        headrace::set(this, "profile_stream",
                      headrace::Value(static_cast<long long>(reinterpret_cast<intptr_t>(stream))));
    }
    cudaStream_t getProfileStream() const {
        return reinterpret_cast<cudaStream_t>(
            static_cast<intptr_t>(headrace::get<int64_t>(this, "profile_stream")));
    }
    HEADRACE_PROPERTY(EngineCapability, getEngineCapability, setEngineCapability,
                      "engine_capability")
    HEADRACE_PROPERTY(int32_t, getMaxNbTactics, setMaxNbTactics, "max_num_tactics")
    bool setL2LimitForTiling(int64_t size) {
        return headrace::set(this, "l2_limit_for_tiling", headrace::Value(size));
    }
    HEADRACE_GET(int64_t, getL2LimitForTiling, "l2_limit_for_tiling")
    bool setRemoteAutoTuningConfig(const char *config) {
        return headrace::set(this, "remote_auto_tuning_config", config);
    }
    HEADRACE_GET(const char *, getRemoteAutoTuningConfig, "remote_auto_tuning_config")
    bool setBuildRoute(const char *route) { return headrace::set(this, "build_route", route); }
    HEADRACE_GET(const char *, getBuildRoute, "build_route")
    HEADRACE_GET(const char *, getAllBuildRoutes, "all_build_routes")
    // Libraries whose plugins an engine carries: the engine names them, and they are loaded anew.
    void setPluginsToSerialize(const char *const *paths, int32_t count) {
        for (int32_t i = 0; i < count || i == 0; ++i)
            headrace::call<void>(nullptr, "plugin_to_serialize",
                                 {headrace::Value(this), i, i < count ? paths[i] : nullptr});
    }
    int32_t getNbPluginsToSerialize() const {
        return headrace::call<int32_t>(nullptr, "count_plugins_to_serialize",
                                       {headrace::Value(this)});
    }
    const char *getPluginToSerialize(int32_t index) const {
        return headrace::call<const char *>(nullptr, "plugin_to_serialize_at",
                                            {headrace::Value(this), index});
    }
    void setProgressMonitor(IProgressMonitor *monitor) {
        headrace::setCallback(this, "progress_monitor", monitor);
    }
    IProgressMonitor *getProgressMonitor() const {
        return headrace::getCallback<IProgressMonitor>(this, "progress_monitor");
    }
    // Its scales are the original's way to INT8.
    void setInt8Calibrator(IInt8Calibrator *calibrator) {
        headrace::setCalibrator(this, calibrator);
    }
    IInt8Calibrator *getInt8Calibrator() const { return headrace::getCalibrator(this); }
    HEADRACE_CALL(ITimingCache *, createTimingCache(const void *blob, size_t size) const,
                  "create_timing_cache", headrace::Value::bytes(blob, size))
    HEADRACE_CALL(bool, setTimingCache(const ITimingCache &cache, bool ignoreMismatch),
                  "set_timing_cache", cache, ignoreMismatch)
    const ITimingCache *getTimingCache() const {
        return headrace::call<ITimingCache *>(this, "get_timing_cache");
    }
    // Asked about each layer, which has one algorithm here.
    void setAlgorithmSelector(IAlgorithmSelector *selector) {
        headrace::setCallback(this, "algorithm_selector", selector);
    }
    IAlgorithmSelector *getAlgorithmSelector() const {
        return headrace::getCallback<IAlgorithmSelector>(this, "algorithm_selector");
    }
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
    IPluginRegistry &getPluginRegistry() {
        return *headrace::call<IPluginRegistry *>(this, "get_plugin_registry");
    }
    bool buildSerializedNetworkToStream(INetworkDefinition &network, IBuilderConfig &config,
                                        IStreamWriter &writer) {
        IHostMemory *plan = buildSerializedNetwork(network, config);
        if (!plan) return false;
        const int64_t size = static_cast<int64_t>(plan->size());
        const bool done = writer.write(plan->data(), size) == size;
        delete plan;
        return done;
    }
    // There is no text of kernels.
    IHostMemory *buildSerializedNetworkWithKernelText(INetworkDefinition &network,
                                                      IBuilderConfig &config,
                                                      IHostMemory *&kernelText) {
        kernelText = nullptr;
        return buildSerializedNetwork(network, config);
    }
    HEADRACE_GET(bool, platformHasFastFp16, "platform_has_fast_fp16")
    HEADRACE_GET(bool, platformHasFastInt8, "platform_has_fast_int8")
    HEADRACE_GET(bool, platformHasTf32, "platform_has_tf32")
    HEADRACE_PROPERTY(int32_t, getMaxBatchSize, setMaxBatchSize, "max_batch_size")
    HEADRACE_GET(int32_t, getNbDLACores, "num_DLA_cores")
    HEADRACE_GET(int32_t, getMaxDLABatchSize, "max_DLA_batch_size")
    bool setMaxThreads(int32_t threads) { return headrace::set(this, "max_threads", threads); }
    HEADRACE_GET(int32_t, getMaxThreads, "max_threads")
    void setGpuAllocator(IGpuAllocator *allocator) {
        headrace::setCallback(this, "gpu_allocator", allocator);
    }
    HEADRACE_RECORDER
    void setMaxWorkspaceSize(size_t size) { keep("max_workspace_size", headrace::Value(size)); }
    size_t getMaxWorkspaceSize() const { return kept<size_t>("max_workspace_size"); }
    void setFp16Mode(bool on) { keep("FP16", on); }
    bool getFp16Mode() const { return kept<bool>("FP16"); }
    void setHalf2Mode(bool on) { setFp16Mode(on); }
    bool getHalf2Mode() const { return getFp16Mode(); }
    void setInt8Mode(bool on) { keep("INT8", on); }
    bool getInt8Mode() const { return kept<bool>("INT8"); }
    void setStrictTypeConstraints(bool on) { keep("STRICT_TYPES", on); }
    bool getStrictTypeConstraints() const { return kept<bool>("STRICT_TYPES"); }
    void setRefittable(bool on) { keep("REFIT", on); }
    bool getRefittable() const { return kept<bool>("REFIT"); }
    void setDebugSync(bool on) { keep("DEBUG", on); }
    bool getDebugSync() const { return kept<bool>("DEBUG"); }
    void allowGPUFallback(bool on) { keep("GPU_FALLBACK", on); }
    void setAverageFindIterations(int count) { keep("avg_timing_iterations", count); }
    int getAverageFindIterations() const { return kept<int>("avg_timing_iterations"); }
    void setMinFindIterations(int count) { keep("min_timing_iterations", count); }
    int getMinFindIterations() const { return kept<int>("min_timing_iterations"); }
    void setDefaultDeviceType(DeviceType type) { keep("default_device_type", type); }
    DeviceType getDefaultDeviceType() const { return kept<DeviceType>("default_device_type"); }
    void setDLACore(int core) { keep("DLA_core", core); }
    int getDLACore() const { return kept<int>("DLA_core"); }
    void setEngineCapability(EngineCapability level) { keep("engine_capability", level); }
    EngineCapability getEngineCapability() const {
        return kept<EngineCapability>("engine_capability");
    }
    void setDeviceType(ILayer *layer, DeviceType type) {
        ofLayer<void>("set_device_type", layer, type);
    }
    DeviceType getDeviceType(const ILayer *layer) const {
        return ofLayer<DeviceType>("get_device_type", layer);
    }
    bool isDeviceTypeSet(const ILayer *layer) const {
        return ofLayer<bool>("is_device_type_set", layer);
    }
    void resetDeviceType(ILayer *layer) { ofLayer<void>("reset_device_type", layer); }
    bool canRunOnDLA(const ILayer *) const { return false; }
    void setInt8Calibrator(IInt8Calibrator *calibrator) {
        headrace::setCalibrator(this, calibrator);
    }
    void reset() { headrace::call<void>(this, "reset"); }

private:
    IBuilder() = delete;
    void keep(const char *name, const headrace::Value &value) {
        headrace::call<void>(nullptr, "builder_setting", {headrace::Value(this), name, value});
    }
    template <typename T>
    T kept(const char *name) const {
        return headrace::call<T>(nullptr, "builder_setting_of", {headrace::Value(this), name});
    }
    template <typename T>
    T ofLayer(const char *method, const ILayer *layer, const headrace::Value &value = {}) const {
        return headrace::call<T>(nullptr, "builder_of_layer",
                                 {headrace::Value(this), method, layer, value});
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
