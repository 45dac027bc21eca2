// Engines, contexts, runtimes, refitters and inspectors.
#include "checks.h"

using namespace nvinfer1;

namespace {

template <typename T>
using Held = std::unique_ptr<T>;

Log gLog;

class Times : public IProfiler {
public:
    int reports = 0;
    void reportLayerTime(const char *name, float ms) noexcept override {
        reports += name && ms >= 0;
    }
};

class Listener : public IDebugListener {
public:
    std::string name;
    float first = 0;
    bool processDebugTensor(const void *data, TensorLocation location, DataType type,
                            const Dims &shape, const char *text, cudaStream_t) noexcept override {
        if (location != TensorLocation::kDEVICE || type != DataType::kFLOAT || shape.nbDims != 2)
            return false;
        name = text, first = *static_cast<const float *>(data);
        return true;
    }
};

class Grows : public IOutputAllocator {
public:
    std::vector<float> memory;
    Dims shape{};
    int32_t getInterfaceVersion() const noexcept override { return 1; }
    void *reallocateOutput(const char *, void *, uint64_t size, uint64_t) noexcept override {
        memory.resize(size / sizeof(float));
        return memory.data();
    }
    void *reallocateOutputAsync(const char *name, void *at, uint64_t size, uint64_t alignment,
                                cudaStream_t) noexcept override {
        return reallocateOutput(name, at, size, alignment);
    }
    void notifyShape(const char *, const Dims &given) noexcept override { shape = given; }
};

class Reader : public IStreamReaderV2 {
public:
    const IHostMemory &plan;
    int64_t at = 0;
    explicit Reader(const IHostMemory &given) : plan(given) {}
    int64_t read(void *to, int64_t most, cudaStream_t) noexcept override {
        const int64_t rest = static_cast<int64_t>(plan.size()) - at;
        const int64_t size = most < rest ? most : rest;
        std::memcpy(to, static_cast<const char *>(plan.data()) + at, static_cast<size_t>(size));
        at += size;
        return size;
    }
    bool seek(int64_t offset, SeekPosition) noexcept override {
        at = offset;
        return true;
    }
};

// y = 2 x + 1 for -1 rows; with debug, "twice" is watched.
IHostMemory *plan(uint32_t flags, bool debug = false) {
    Held<IBuilder> builder(createInferBuilder(gLog));
    Held<INetworkDefinition> net(builder->createNetworkV2(1));
    net->setName("line");
    ITensor &x = *net->addInput("x", DataType::kFLOAT, dims({-1, 2}));
    static const float two[] = {2, 2}, one[] = {1, 1};
    const Weights slope{DataType::kFLOAT, two, 2};
    IConstantLayer &a = *net->addConstant(dims({1, 2}), slope);
    IConstantLayer &b = *net->addConstant(dims({1, 2}), Weights{DataType::kFLOAT, one, 2});
    b.setName("offset");
    CHECK(net->setWeightsName(slope, "slope"));
    ITensor &twice =
        *net->addElementWise(x, *a.getOutput(0), ElementWiseOperation::kPROD)->getOutput(0);
    twice.setName("twice");
    ITensor &y =
        *net->addElementWise(twice, *b.getOutput(0), ElementWiseOperation::kSUM)->getOutput(0);
    y.setName("y");
    net->markOutput(y);
    if (debug) net->markDebug(twice);
    Held<IBuilderConfig> config(builder->createBuilderConfig());
    config->setFlags(flags);
    config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    IOptimizationProfile &profile = *builder->createOptimizationProfile();
    profile.setDimensions("x", OptProfileSelector::kMIN, dims({1, 2}));
    profile.setDimensions("x", OptProfileSelector::kOPT, dims({2, 2}));
    profile.setDimensions("x", OptProfileSelector::kMAX, dims({4, 2}));
    config->addOptimizationProfile(&profile);
    return builder->buildSerializedNetwork(*net, *config);
}

uint32_t flag(BuilderFlag one) { return 1U << static_cast<int>(one); }

void engines() {
    Held<IRuntime> runtime(createInferRuntime(gLog));
    Held<IHostMemory> bytes(plan(flag(BuilderFlag::kWEIGHT_STREAMING)));
    CHECK(bytes && bytes->type() == DataType::kINT8);
    Held<ICudaEngine> engine(runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
    CHECK(engine && equal(engine->getName(), "line"));
    CHECK(engine->getNbIOTensors() == 2 && equal(engine->getIOTensorName(1), "y"));
    CHECK(engine->getTensorIOMode("x") == TensorIOMode::kINPUT);
    CHECK(equal(engine->getTensorShape("x"), dims({-1, 2})));
    CHECK(engine->getTensorDataType("y") == DataType::kFLOAT);
    CHECK(engine->getTensorLocation("x") == TensorLocation::kDEVICE);
    CHECK(!engine->isShapeInferenceIO("x"));
    CHECK(engine->getTensorFormat("x") == TensorFormat::kLINEAR);
    CHECK(engine->getTensorFormat("x", 0) == TensorFormat::kLINEAR);
    CHECK(std::strstr(engine->getTensorFormatDesc("x"), "kLINEAR"));
    CHECK(std::strstr(engine->getTensorFormatDesc("x", 0), "kLINEAR"));
    CHECK(engine->getTensorBytesPerComponent("x") == 4);
    CHECK(engine->getTensorBytesPerComponent("x", 0) == 4);
    CHECK(engine->getTensorComponentsPerElement("x") == -1);
    CHECK(engine->getTensorComponentsPerElement("x", 0) == -1);
    CHECK(engine->getTensorVectorizedDim("x") == -1 &&
          engine->getTensorVectorizedDim("x", 0) == -1);
    CHECK(engine->getNbOptimizationProfiles() == 1 && engine->getNbLayers() == 4);
    CHECK(equal(engine->getProfileShape("x", 0, OptProfileSelector::kMAX), dims({4, 2})));
    CHECK(!engine->getProfileTensorValues("x", 0, OptProfileSelector::kMIN));
    CHECK(!engine->getProfileTensorValuesV2("x", 0, OptProfileSelector::kMIN));
    CHECK(!engine->isRefittable() && !engine->hasImplicitBatchDimension());
    CHECK(engine->getEngineCapability() == EngineCapability::kSTANDARD);
    CHECK(engine->getHardwareCompatibilityLevel() == HardwareCompatibilityLevel::kNONE);
    CHECK(engine->getProfilingVerbosity() == ProfilingVerbosity::kDETAILED);
    CHECK(engine->getTacticSources() == 0 && engine->getNbAuxStreams() == 0);
    CHECK(engine->getDeviceMemorySize() == 0 && engine->getDeviceMemorySizeV2() == 0);
    CHECK(engine->getWorkspaceSize() == 0 && engine->getDeviceMemorySizeForProfile(0) == 0);
    CHECK(engine->getDeviceMemorySizeForProfileV2(0) == 0);
    const int64_t all = engine->getStreamableWeightsSize();
    CHECK(all >= 16 && engine->getWeightStreamingAutomaticBudget() == all);
    CHECK(engine->setWeightStreamingBudgetV2(8) && engine->getWeightStreamingBudgetV2() == 8);
    CHECK(!engine->setWeightStreamingBudgetV2(-1));
    CHECK(engine->setWeightStreamingBudget(12) && engine->getWeightStreamingBudget() == 12);
    CHECK(engine->getMinimumWeightStreamingBudget() == 0);
    CHECK(engine->getWeightStreamingScratchMemorySize() == 0);
    CHECK(engine->getEngineStat(EngineStat::kTOTAL_WEIGHTS_SIZE) == all);
    CHECK(engine->getEngineStat(EngineStat::kSTRIPPED_WEIGHTS_SIZE) == -1);
    CHECK(!engine->isDebugTensor("x") && !engine->getAliasedInputTensor("y"));
    Errors errors;
    engine->setErrorRecorder(&errors);
    CHECK(engine->getErrorRecorder() == &errors);
    engine->setErrorRecorder(nullptr);
    Held<ISerializationConfig> saving(engine->createSerializationConfig());
    CHECK(saving->setFlag(SerializationFlag::kEXCLUDE_LEAN_RUNTIME));
    CHECK(saving->getFlag(SerializationFlag::kEXCLUDE_LEAN_RUNTIME) && saving->getFlags() == 2);
    CHECK(saving->clearFlag(SerializationFlag::kEXCLUDE_LEAN_RUNTIME));
    CHECK(saving->setFlags(1) && saving->getFlags() == 1);
    Held<IHostMemory> again(engine->serializeWithConfig(*saving));
    Held<IHostMemory> same(engine->serialize());
    CHECK(again->size() == same->size() && same->size() > 100);
    Held<IEngineInspector> inspector(engine->createEngineInspector());
    Held<IExecutionContext> context(engine->createExecutionContext());
    CHECK(inspector->setExecutionContext(context.get()));
    CHECK(inspector->getExecutionContext() == context.get());
    CHECK(std::strstr(inspector->getEngineInformation(LayerInformationFormat::kJSON), "Layers"));
    CHECK(std::strstr(inspector->getLayerInformation(2, LayerInformationFormat::kJSON), "Name"));
    inspector->setErrorRecorder(&errors);
    CHECK(inspector->getErrorRecorder() == &errors);
    inspector->setErrorRecorder(nullptr);
}

void contexts() {
    Held<IRuntime> runtime(createInferRuntime(gLog));
    Held<IHostMemory> bytes(plan(0, true));
    Reader reader(*bytes);
    CHECK(reader.seek(0, SeekPosition::kSET));
    Held<ICudaEngine> engine(runtime->deserializeCudaEngine(reader));
    CHECK(engine->isDebugTensor("twice"));
    Held<IRuntimeConfig> config(engine->createRuntimeConfig());
    KEEP(*config, ExecutionContextAllocationStrategy,
         ExecutionContextAllocationStrategy::kUSER_MANAGED);
    Held<IExecutionContext> other(engine->createExecutionContextWithRuntimeConfig(config.get()));
    Held<IRuntimeConfig> read(other->getRuntimeConfig());
    CHECK(read->getExecutionContextAllocationStrategy() ==
          ExecutionContextAllocationStrategy::kUSER_MANAGED);
    Held<IExecutionContext> bare(engine->createExecutionContextWithoutDeviceMemory());
    CHECK(bare);
    Held<IExecutionContext> context(engine->createExecutionContext());
    CHECK(&context->getEngine() == engine.get());
    KEEP(*context, Name, "runs");
    KEEP(*context, DebugSync, true);
    KEEP(*context, PersistentCacheLimit, 64);
    KEEP(*context, NvtxVerbosity, ProfilingVerbosity::kNONE);
    CHECK(context->updateDeviceMemorySizeForShapes() == 0);
    context->setDeviceMemory(nullptr);
    context->setDeviceMemoryV2(nullptr, 0);
    context->setAuxStreams(nullptr, 0);
    CHECK(context->setTemporaryStorageAllocator(nullptr));
    CHECK(!context->getTemporaryStorageAllocator());
    cudaEvent_t event = reinterpret_cast<cudaEvent_t>(32);
    CHECK(context->setInputConsumedEvent(event) && context->getInputConsumedEvent() == event);
    Errors errors;
    context->setErrorRecorder(&errors);
    CHECK(context->getErrorRecorder() == &errors);
    CHECK(context->getOptimizationProfile() == 0 &&
          context->setOptimizationProfileAsync(0, nullptr));
    CHECK(!context->setOptimizationProfileAsync(3, nullptr) && errors.getNbErrors() == 1);
    CHECK(std::strstr(errors.getErrorDesc(0), "no profile 3") && !errors.hasOverflowed());
    errors.clear();
    const char *missing[2] = {};
    CHECK(context->inferShapes(2, missing) == 1 && equal(missing[0], "x"));
    CHECK(!context->allInputDimensionsSpecified() && context->allInputShapesSpecified());
    CHECK(!context->setInputShape("x", dims({9, 2})) && context->setInputShape("x", dims({3, 2})));
    CHECK(context->allInputDimensionsSpecified() && context->inferShapes() == 0);
    CHECK(equal(context->getTensorShape("y"), dims({3, 2})));
    CHECK(equal(context->getTensorStrides("y"), dims({2, 1})));
    CHECK(context->getMaxOutputSize("y") == 32);
    float x[6] = {0, 1, 2, 3, 4, 5}, y[6] = {};
    CHECK(context->setInputTensorAddress("x", x) && context->setTensorAddress("x", x));
    CHECK(context->setOutputTensorAddress("y", y));
    CHECK(context->getTensorAddress("x") == x && context->getOutputTensorAddress("y") == y);
    Times times;
    KEEP(*context, Profiler, &times);
    KEEP(*context, EnqueueEmitsProfile, false);
    Listener listener;
    CHECK(context->setDebugListener(&listener) && context->getDebugListener() == &listener);
    CHECK(context->setTensorDebugState("twice", true) && context->getDebugState("twice"));
    CHECK(!context->setTensorDebugState("y", true));
    CHECK(context->enqueueV3(nullptr) && y[0] == 1 && y[5] == 11);
    CHECK(listener.name == "twice" && listener.first == 0);
    CHECK(times.reports == 0 && context->reportToProfiler() && times.reports == 1);
    CHECK(context->setAllTensorsDebugState(false) && !context->getDebugState("twice"));
    CHECK(context->setUnfusedTensorsDebugState(true) && context->getUnfusedTensorsDebugState());
    void *bindings[] = {x, y};
    y[5] = 0;
    CHECK(context->executeV2(bindings) && y[5] == 11);
    Grows grows;
    CHECK(context->setOutputAllocator("y", &grows) && context->getOutputAllocator("y") == &grows);
    CHECK(context->enqueueV3(nullptr) && grows.memory[5] == 11);
    CHECK(equal(grows.shape, dims({3, 2})));
    CHECK(!context->setCommunicator(nullptr));
    context->setErrorRecorder(nullptr);
    CHECK(errors.references == 0);
}

void runtimes() {
    Held<IRuntime> runtime(createInferRuntime(gLog));
    CHECK(runtime->getLogger() == &gLog && runtime->getNbDLACores() == 0);
    KEEP(*runtime, DLACore, -1);
    KEEP(*runtime, MaxThreads, 2);
    KEEP(*runtime, TemporaryDirectory, "/tmp");
    KEEP(*runtime, TempfileControlFlags, 1U);
    KEEP(*runtime, EngineHostCodeAllowed, true);
    runtime->setGpuAllocator(nullptr);
    CHECK(&runtime->getPluginRegistry() != getPluginRegistry());
    runtime->setPluginRegistryParent(getPluginRegistry());
    CHECK(runtime->loadRuntime("libnvinfer_lean.so"));
    Errors errors;
    runtime->setErrorRecorder(&errors);
    CHECK(runtime->getErrorRecorder() == &errors);
    CHECK(!runtime->deserializeCudaEngine("no engine", 9) && errors.getNbErrors() == 1);
    runtime->setErrorRecorder(nullptr);
}

void refitters() {
    Held<IRuntime> runtime(createInferRuntime(gLog));
    Held<IHostMemory> bytes(plan(flag(BuilderFlag::kREFIT)));
    Held<ICudaEngine> engine(runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
    CHECK(engine->isRefittable());
    Held<IRefitter> refitter(engine->createRefitter(gLog));
    CHECK(refitter->getLogger() == &gLog);
    KEEP(*refitter, MaxThreads, 2);
    Errors errors;
    refitter->setErrorRecorder(&errors);
    CHECK(refitter->getErrorRecorder() == &errors);
    const char *layers[4] = {}, *names[4] = {};
    WeightsRole roles[4] = {};
    CHECK(refitter->getAll(4, layers, roles) == 2 && roles[0] == WeightsRole::kCONSTANT);
    CHECK(refitter->getAllWeights(4, names) == 1 && equal(names[0], "slope"));
    CHECK(refitter->getMissing(0, nullptr, nullptr) == 0);
    CHECK(refitter->getMissingWeights(0, nullptr) == 0);
    CHECK(refitter->getTensorsWithDynamicRange(0, nullptr) == 0);
    CHECK(!refitter->setDynamicRange("x", -1, 1) && refitter->getDynamicRangeMin("x") == 0);
    CHECK(refitter->getDynamicRangeMax("x") == 0);
    CHECK(refitter->getWeightsPrototype("slope").count == 2);
    CHECK(!refitter->getWeightsPrototype("slope").values);
    const float three[] = {3, 3}, five[] = {5, 5}, wild[] = {INFINITY, 1};
    KEEP(*refitter, WeightsValidation, true);
    CHECK(!refitter->setNamedWeights("slope", Weights{DataType::kFLOAT, wild, 2}));
    CHECK(errors.getNbErrors() == 1 && !refitter->getNamedWeights("slope").values);
    CHECK(refitter->setNamedWeights("slope", Weights{DataType::kFLOAT, three, 2}));
    CHECK(refitter->unsetNamedWeights("slope"));
    CHECK(refitter->setNamedWeightsWithLocation("slope", Weights{DataType::kFLOAT, three, 2},
                                                TensorLocation::kHOST));
    CHECK(refitter->getWeightsLocation("slope") == TensorLocation::kHOST);
    CHECK(static_cast<const float *>(refitter->getNamedWeights("slope").values)[1] == 3);
    CHECK(
        refitter->setWeights("offset", WeightsRole::kCONSTANT, Weights{DataType::kFLOAT, five, 2}));
    CHECK(refitter->refitCudaEngineAsync(nullptr) && refitter->refitCudaEngine());
    Held<IExecutionContext> context(engine->createExecutionContext());
    float x[2] = {1, 2}, y[2] = {};
    context->setInputShape("x", dims({1, 2}));
    void *bindings[] = {x, y};
    CHECK(context->executeV2(bindings) && y[0] == 8 && y[1] == 11);
    refitter->setErrorRecorder(nullptr);
}

using Part = void (*)();
const Part kParts[] = {engines, contexts, runtimes, refitters};

}  // namespace

extern "C" const char *check_run(int part) {
    failed().clear();
    kParts[part]();
    return failed().c_str();
}
