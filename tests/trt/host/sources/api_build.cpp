// Builders, configs, profiles, networks and the registry: what they are told is what they keep.
#include "NvInferPlugin.h"
#include "checks.h"

using namespace nvinfer1;

namespace {

template <typename T>
using Held = std::unique_ptr<T>;

class Allocator : public IGpuAllocator {
public:
    void *allocate(uint64_t, uint64_t, AllocatorFlags) noexcept override { return nullptr; }
    void *reallocate(void *, uint64_t, uint64_t) noexcept override { return nullptr; }
    bool deallocate(void *) noexcept override { return true; }
    void free(void *) noexcept override {}
    void *allocateAsync(uint64_t, uint64_t, AllocatorFlags, cudaStream_t) noexcept override {
        return nullptr;
    }
    bool deallocateAsync(void *, cudaStream_t) noexcept override { return true; }
};

class Monitor : public IProgressMonitor {
public:
    int started = 0, steps = 0, finished = 0, most = 1 << 30;
    void phaseStart(const char *, const char *, int32_t) noexcept override { ++started; }
    bool stepComplete(const char *, int32_t) noexcept override { return ++steps < most; }
    void phaseFinish(const char *) noexcept override { ++finished; }
};

class Writer : public IStreamWriter {
public:
    int64_t bytes = 0;
    int64_t write(const void *, int64_t size) noexcept override {
        bytes += size;
        return size;
    }
};

class Legacy : public IInt8LegacyCalibrator {
public:
    int32_t getBatchSize() const noexcept override { return 1; }
    bool getBatch(void **, const char **, int32_t) noexcept override { return false; }
    const void *readCalibrationCache(size_t &length) noexcept override {
        length = 0;
        return nullptr;
    }
    void writeCalibrationCache(const void *, size_t) noexcept override {}
    double getQuantile() const noexcept override { return 0.5; }
    double getRegressionCutoff() const noexcept override { return 0.5; }
    const void *readHistogramCache(size_t &) noexcept override { return nullptr; }
    void writeHistogramCache(const void *, size_t) noexcept override {}
};

// Keeps what it is shown; with `choose`, it takes the first choice.
class Chooser : public IAlgorithmSelector {
public:
    int asked = 0, reported = 0;
    int32_t selectAlgorithms(const IAlgorithmContext &context, const IAlgorithm *const *choices,
                             int32_t count, int32_t *selection) noexcept override {
        ++asked;
        CHECK(count == 1 && context.getName()[0] && context.getNbInputs() == 2);
        CHECK(context.getNbOutputs() == 1);
        CHECK(equal(context.getDimensions(0, OptProfileSelector::kOPT), dims({1, 2})));
        CHECK(choices[0]->getAlgorithmVariant().getImplementation() != 0);
        CHECK(choices[0]->getAlgorithmVariant().getTactic() == 0);
        CHECK(choices[0]->getTimingMSec() == 0 && choices[0]->getWorkspaceSize() == 0);
        const IAlgorithmIOInfo &info = choices[0]->getAlgorithmIOInfo(0);
        CHECK(info.getDataType() == DataType::kFLOAT && equal(info.getStrides(), dims({2, 1})));
        CHECK(info.getTensorFormat() == TensorFormat::kLINEAR && info.getVectorizedDim() == -1);
        CHECK(info.getComponentsPerElement() == 1);
        CHECK(choices[0]->getAlgorithmIOInfoByIndex(2) &&
              !choices[0]->getAlgorithmIOInfoByIndex(9));
        selection[0] = 0;
        return 1;
    }
    void reportAlgorithms(const IAlgorithmContext *const *contexts, const IAlgorithm *const *,
                          int32_t count) noexcept override {
        reported = count;
        CHECK(contexts[0]->getName()[0]);
    }
};

class Ceiling : public IOutputDimensionsFormula {
public:
    DimsHW compute(DimsHW in, DimsHW kernel, DimsHW stride, DimsHW, DimsHW,
                   const char *) const noexcept override {
        return DimsHW((in.h() - kernel.h() + stride.h() - 1) / stride.h() + 1,
                      (in.w() - kernel.w() + stride.w() - 1) / stride.w() + 1);
    }
};

Log gLog;

// y = x + 1, with named weights.
INetworkDefinition *small(IBuilder &builder) {
    INetworkDefinition *net = builder.createNetworkV2(1);
    ITensor &x = *net->addInput("x", DataType::kFLOAT, dims({1, 2}));
    IConstantLayer &one = *net->addConstant(dims({1, 2}), weights(2));
    IElementWiseLayer &sum = *net->addElementWise(x, *one.getOutput(0), ElementWiseOperation::kSUM);
    sum.getOutput(0)->setName("y");
    net->markOutput(*sum.getOutput(0));
    return net;
}

void builders() {
    Held<IBuilder> builder(createInferBuilder(gLog));
    CHECK(builder->getLogger() == &gLog);
    CHECK(builder->platformHasFastFp16() && builder->platformHasFastInt8());
    CHECK(!builder->platformHasTf32());
    CHECK(builder->getNbDLACores() == 0 && builder->getMaxDLABatchSize() == 0);
    KEEP(*builder, MaxBatchSize, 4);
    KEEP(*builder, MaxThreads, 3);
    KEEP(*builder, MaxWorkspaceSize, 1 << 20);
    KEEP(*builder, Fp16Mode, true);
    KEEP(*builder, Half2Mode, false);
    KEEP(*builder, Int8Mode, true);
    KEEP(*builder, Int8Mode, false);
    KEEP(*builder, StrictTypeConstraints, true);
    KEEP(*builder, Refittable, true);
    KEEP(*builder, DebugSync, true);
    KEEP(*builder, AverageFindIterations, 3);
    KEEP(*builder, MinFindIterations, 2);
    KEEP(*builder, DefaultDeviceType, DeviceType::kGPU);
    CHECK(builder->getDLACore() == -1);
    builder->setDLACore(-1);
    KEEP(*builder, EngineCapability, EngineCapability::kSTANDARD);
    builder->allowGPUFallback(true);
    builder->setInt8Calibrator(nullptr);
    Allocator allocator;
    builder->setGpuAllocator(&allocator);
    CHECK(&builder->getPluginRegistry() != getPluginRegistry());
    Errors errors;
    builder->setErrorRecorder(&errors);
    CHECK(builder->getErrorRecorder() == &errors && errors.references == 1);
    Held<INetworkDefinition> net(small(*builder));
    CHECK(&net->getBuilder() == builder.get());
    ILayer *layer = net->getLayer(1);
    builder->setDeviceType(layer, DeviceType::kGPU);
    CHECK(builder->isDeviceTypeSet(layer) && !builder->canRunOnDLA(layer));
    CHECK(builder->getDeviceType(layer) == DeviceType::kGPU);
    builder->resetDeviceType(layer);
    CHECK(!builder->isDeviceTypeSet(layer));
    Held<ICudaEngine> engine(builder->buildCudaEngine(*net));
    CHECK(engine && engine->isRefittable());  // by the setting of the builder
    Held<IBuilderConfig> config(builder->createBuilderConfig());
    CHECK(builder->isNetworkSupported(*net, *config));
    Held<INetworkDefinition> empty(builder->createNetworkV2(1));
    CHECK(!builder->buildSerializedNetwork(*empty, *config));
    CHECK(errors.getNbErrors() == 1 && errors.getErrorCode(0) == ErrorCode::kINVALID_CONFIG);
    builder->setErrorRecorder(nullptr);
    CHECK(errors.references == 0 && !builder->getErrorRecorder());
    Writer writer;
    CHECK(builder->buildSerializedNetworkToStream(*net, *config, writer) && writer.bytes > 100);
    IHostMemory *text = nullptr;
    Held<IHostMemory> plan(builder->buildSerializedNetworkWithKernelText(*net, *config, text));
    CHECK(plan && plan->size() > 100 && !text);
    builder->reset();
    CHECK(builder->getMaxBatchSize() == 1);
}

void configs() {
    Held<IBuilder> builder(createInferBuilder(gLog));
    Held<IBuilderConfig> config(builder->createBuilderConfig());
    config->setFlag(BuilderFlag::kREFIT);
    CHECK(config->getFlag(BuilderFlag::kREFIT));
    config->clearFlag(BuilderFlag::kREFIT);
    CHECK(!config->getFlag(BuilderFlag::kREFIT));
    KEEP(*config, Flags, 1U << static_cast<int>(BuilderFlag::kWEIGHT_STREAMING));
    KEEP(*config, Flags, 0U);
    KEEP(*config, MaxWorkspaceSize, 1 << 22);
    config->setMemoryPoolLimit(MemoryPoolType::kTACTIC_DRAM, 123456);
    CHECK(config->getMemoryPoolLimit(MemoryPoolType::kTACTIC_DRAM) == 123456);
    KEEP(*config, DefaultDeviceType, DeviceType::kGPU);
    config->setDLACore(-1);
    CHECK(config->getDLACore() == -1);
    KEEP(*config, ProfilingVerbosity, ProfilingVerbosity::kDETAILED);
    KEEP(*config, BuilderOptimizationLevel, 5);
    KEEP(*config, AvgTimingIterations, 4);
    KEEP(*config, MinTimingIterations, 2);
    KEEP(*config, MaxAuxStreams, 1);
    KEEP(*config, TacticSources, 8U);
    KEEP(*config, RuntimePlatform, RuntimePlatform::kSAME_AS_BUILD);
    KEEP(*config, TilingOptimizationLevel, TilingOptimizationLevel::kFAST);
    KEEP(*config, HardwareCompatibilityLevel, HardwareCompatibilityLevel::kAMPERE_PLUS);
    KEEP(*config, EngineCapability, EngineCapability::kSTANDARD);
    KEEP(*config, MaxNbTactics, 7);
    KEEP(*config, L2LimitForTiling, 4096);
    KEEP(*config, RemoteAutoTuningConfig, "none");
    KEEP(*config, BuildRoute, "a");
    CHECK(equal(config->getAllBuildRoutes(), ""));
    cudaStream_t stream = reinterpret_cast<cudaStream_t>(16);
    KEEP(*config, ProfileStream, stream);
    config->setPreviewFeature(PreviewFeature::kALIASED_PLUGIN_IO_10_03, true);
    CHECK(config->getPreviewFeature(PreviewFeature::kALIASED_PLUGIN_IO_10_03));
    config->setPreviewFeature(PreviewFeature::kALIASED_PLUGIN_IO_10_03, false);
    CHECK(!config->getPreviewFeature(PreviewFeature::kALIASED_PLUGIN_IO_10_03));
    config->setQuantizationFlag(QuantizationFlag::kCALIBRATE_BEFORE_FUSION);
    CHECK(config->getQuantizationFlag(QuantizationFlag::kCALIBRATE_BEFORE_FUSION));
    CHECK(config->getQuantizationFlags() == 1);
    config->clearQuantizationFlag(QuantizationFlag::kCALIBRATE_BEFORE_FUSION);
    KEEP(*config, QuantizationFlags, 1U);
    Legacy calibrator;
    KEEP(*config, Int8Calibrator, &calibrator);
    config->setInt8Calibrator(nullptr);
    CHECK(!config->getInt8Calibrator() && !config->getAlgorithmSelector());
    Chooser chooser;
    KEEP(*config, AlgorithmSelector, &chooser);
    const char *const libraries[] = {"libone.so", "libtwo.so"};
    config->setPluginsToSerialize(libraries, 2);
    CHECK(config->getNbPluginsToSerialize() == 2);
    CHECK(equal(config->getPluginToSerialize(1), "libtwo.so") && !config->getPluginToSerialize(2));
    config->setPluginsToSerialize(nullptr, 0);
    CHECK(config->getNbPluginsToSerialize() == 0);

    Held<INetworkDefinition> net(small(*builder));
    ILayer *layer = net->getLayer(0);
    config->setDeviceType(layer, DeviceType::kGPU);
    CHECK(config->isDeviceTypeSet(layer) && !config->canRunOnDLA(layer));
    CHECK(config->getDeviceType(layer) == DeviceType::kGPU);
    config->resetDeviceType(layer);
    CHECK(!config->isDeviceTypeSet(layer));

    Held<ITimingCache> cache(config->createTimingCache("bytes", 5));
    Held<ITimingCache> other(config->createTimingCache("longer bytes", 12));
    CHECK(config->setTimingCache(*cache, true) && config->getTimingCache() == cache.get());
    CHECK(cache->combine(*other, true));
    Held<IHostMemory> bytes(cache->serialize());
    CHECK(bytes->size() == 12 && !std::memcmp(bytes->data(), "longer bytes", 12));
    TimingCacheKey key{};
    CHECK(cache->queryKeys(&key, 1) == 0 && std::isnan(cache->query(key).timingMSec));
    CHECK(!cache->update(key, TimingCacheValue{1, 2.0f}) && cache->reset());

    Monitor monitor;
    KEEP(*config, ProgressMonitor, &monitor);
    Held<IBuilderConfig> plain(builder->createBuilderConfig());
    plain->setProgressMonitor(&monitor);
    plain->setAlgorithmSelector(&chooser);
    Held<IHostMemory> plan(builder->buildSerializedNetwork(*net, *plain));
    CHECK(plan && monitor.started > 0 && monitor.steps > 0);
    CHECK(monitor.started == monitor.finished);
    CHECK(chooser.asked == 1 && chooser.reported == 1);
    Monitor stops;
    stops.most = 1;
    plain->setProgressMonitor(&stops);
    CHECK(!builder->buildSerializedNetwork(*net, *plain));
    plain->setProgressMonitor(nullptr);
    config->reset();
    CHECK(config->getBuilderOptimizationLevel() == 3 && !config->getProgressMonitor());
}

void profiles() {
    Held<IBuilder> builder(createInferBuilder(gLog));
    Held<IBuilderConfig> config(builder->createBuilderConfig());
    IOptimizationProfile &profile = *builder->createOptimizationProfile();
    CHECK(profile.setDimensions("x", OptProfileSelector::kMIN, dims({1, 2})));
    CHECK(profile.setDimensions("x", OptProfileSelector::kOPT, dims({2, 2})));
    CHECK(profile.setDimensions("x", OptProfileSelector::kMAX, dims({4, 2})));
    CHECK(equal(profile.getDimensions("x", OptProfileSelector::kMAX), dims({4, 2})));
    const int32_t few[] = {1, 2};
    const int64_t many[] = {3, 5};
    CHECK(profile.getNbShapeValues("v") == -1 &&
          !profile.getShapeValues("v", OptProfileSelector::kMIN));
    CHECK(profile.setShapeValues("v", OptProfileSelector::kMIN, few, 2));
    CHECK(profile.setShapeValuesV2("v", OptProfileSelector::kOPT, many, 2));
    CHECK(profile.setShapeValuesV2("v", OptProfileSelector::kMAX, many, 2));
    CHECK(!profile.setShapeValues("v", OptProfileSelector::kMIN, few, 1));
    CHECK(!profile.setDimensions("x", OptProfileSelector::kOPT, dims({2})));
    CHECK(profile.getNbShapeValues("v") == 2);
    CHECK(profile.getShapeValues("v", OptProfileSelector::kMIN)[1] == 2);
    CHECK(profile.getShapeValuesV2("v", OptProfileSelector::kMAX)[1] == 5);
    KEEP(profile, ExtraMemoryTarget, 0.5f);
    CHECK(!profile.setExtraMemoryTarget(2.0f));
    CHECK(profile.isValid());
    CHECK(config->addOptimizationProfile(&profile) == 0);
    CHECK(config->getNbOptimizationProfiles() == 1);
    CHECK(config->setCalibrationProfile(&profile));
    CHECK(config->getCalibrationProfile() == &profile);
    IOptimizationProfile &wrong = *builder->createOptimizationProfile();
    wrong.setDimensions("x", OptProfileSelector::kMIN, dims({4}));
    wrong.setDimensions("x", OptProfileSelector::kOPT, dims({2}));
    wrong.setDimensions("x", OptProfileSelector::kMAX, dims({1}));
    CHECK(!wrong.isValid() && config->addOptimizationProfile(&wrong) == -1);
}

void networks() {
    Held<IBuilder> builder(createInferBuilder(gLog));
    Held<INetworkDefinition> net(small(*builder));
    KEEP(*net, Name, "tiny");
    CHECK(net->getNbInputs() == 1 && net->getNbOutputs() == 1 && net->getNbLayers() == 2);
    CHECK(equal(net->getInput(0)->getName(), "x") && equal(net->getOutput(0)->getName(), "y"));
    CHECK(!net->hasImplicitBatchDimension() && !net->hasExplicitPrecision());
    CHECK(net->getFlags() == 1 && net->getFlag(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH));
    CHECK(!net->usingStronglyTyped());
    Held<INetworkDefinition> strong(builder->createNetworkV2(2));
    CHECK(strong->usingStronglyTyped());
    CHECK(strong->getFlag(NetworkDefinitionCreationFlag::kSTRONGLY_TYPED));
    Errors errors;
    net->setErrorRecorder(&errors);
    CHECK(net->getErrorRecorder() == &errors && errors.references == 1);
    net->setErrorRecorder(nullptr);
    ITensor &y = *net->getOutput(0);
    net->unmarkOutput(y);
    CHECK(net->getNbOutputs() == 0);
    CHECK(net->markOutputForShapes(y) && !net->markOutputForShapes(y));
    CHECK(net->unmarkOutputForShapes(y) && net->getNbOutputs() == 0);
    net->markOutput(y);
    CHECK(net->markDebug(y) && net->isDebugTensor(y));
    CHECK(net->unmarkDebug(y) && !net->isDebugTensor(y));
    CHECK(net->markUnfusedTensorsAsDebugTensors() && net->unmarkUnfusedTensorsAsDebugTensors());
    const Weights named = weights(2);
    net->addConstant(dims({2}), named);
    CHECK(net->setWeightsName(named, "pair"));
    CHECK(net->markWeightsRefittable("pair") && net->areWeightsMarkedRefittable("pair"));
    CHECK(net->unmarkWeightsRefittable("pair") && !net->areWeightsMarkedRefittable("pair"));
    CHECK(!net->markWeightsRefittable("others"));
    net->removeTensor(y);
    CHECK(net->getNbOutputs() == 0);
}

// Up to 7: a formula of the source decides extents.
void formulas() {
    Held<IBuilder> builder(createInferBuilder(gLog));
    Held<INetworkDefinition> net(builder->createNetworkV2(1));
    ITensor &x = *net->addInput("x", DataType::kFLOAT, dims({1, 1, 6, 7}));
    IPoolingLayer &pool = *net->addPooling(x, PoolingType::kMAX, DimsHW(3, 3));
    pool.setStride(DimsHW(2, 2));
    CHECK(equal(pool.getOutput(0)->getDimensions(), dims({1, 1, 2, 3})));
    Ceiling formula;
    net->setPoolingOutputDimensionsFormula(&formula);
    net->setConvolutionOutputDimensionsFormula(&formula);
    net->setDeconvolutionOutputDimensionsFormula(&formula);
    CHECK(&net->getPoolingOutputDimensionsFormula() == &formula);
    CHECK(&net->getConvolutionOutputDimensionsFormula() == &formula);
    CHECK(&net->getDeconvolutionOutputDimensionsFormula() == &formula);
    IPoolingLayer &other = *net->addPooling(x, PoolingType::kMAX, DimsHW(3, 3));
    other.setStride(DimsHW(2, 2));
    CHECK(equal(other.getOutput(0)->getDimensions(), dims({1, 1, 3, 3})));
    IConvolutionLayer &conv = *net->addConvolution(x, 1, DimsHW(3, 3), weights(9), weights(1));
    conv.setStride(DimsHW(2, 2));
    CHECK(equal(conv.getOutput(0)->getDimensions(), dims({1, 1, 3, 3})));
}

void registries() {
    IPluginRegistry &global = *getPluginRegistry();
    Errors errors;
    global.setErrorRecorder(&errors);
    CHECK(global.getErrorRecorder() == &errors && errors.references == 1);
    CHECK(!global.getPluginCreator("NoSuchPlugin", "1") && errors.getNbErrors() > 0);
    global.setErrorRecorder(nullptr);
    CHECK(errors.references == 0);
    CHECK(initLibNvInferPlugins(nullptr, ""));
    CHECK(global.getPluginCreator("BatchedNMS_TRT", "1") &&
          global.getCreator("BatchedNMS_TRT", "1"));
    int32_t all = 0, recursive = 0;
    global.getAllCreators(&all);
    Held<IBuilder> builder(createInferBuilder(gLog));
    IPluginRegistry &own = builder->getPluginRegistry();
    own.getAllCreatorsRecursive(&recursive);
    CHECK(all > 40 && recursive == all);
    CHECK(own.getCreator("BatchedNMS_TRT", "1"));
    own.setParentSearchEnabled(false);
    CHECK(!own.isParentSearchEnabled() && !own.getCreator("BatchedNMS_TRT", "1"));
    own.setParentSearchEnabled(true);
    CHECK(global.loadLibrary("/no/such/library.so") == nullptr);
    global.deregisterLibrary(nullptr);
}

using Part = void (*)();
const Part kParts[] = {builders, configs, profiles, networks, formulas, registries};

}  // namespace

extern "C" const char *check_build(int part) {
    failed().clear();
    kParts[part]();
    return failed().c_str();
}
