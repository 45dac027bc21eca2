// generations: 8
// What releases before 10 have: bindings by their numbers, layers that are not copied; and plugins
// that are asked of a layer, of every line.
#include "NvInferPlugin.h"
#include "checks.h"

using namespace nvinfer1;

namespace {

template <typename T>
using Held = std::unique_ptr<T>;

Log gLog;

// y = x twice, up to 5.
class Oldest : public IPlugin {
public:
    int getNbOutputs() const override { return 1; }
    Dims getOutputDimensions(int, const Dims *inputs, int) override { return inputs[0]; }
    void configure(const Dims *, int, const Dims *, int, int) override {}
    int initialize() override { return 0; }
    void terminate() override {}
    size_t getWorkspaceSize(int) const override { return 0; }
    int enqueue(int, const void *const *, void **, void *, cudaStream_t) override { return 0; }
    size_t getSerializationSize() override { return 0; }
    void serialize(void *) override {}
};

// Its output has as many elements as the first input says, at most; the expressions are looked at.
class Sized : public IPluginV3,
              public IPluginV3OneCore,
              public IPluginV3OneBuildV2,
              public IPluginV3OneRuntime {
public:
    IPluginCapability *getCapabilityInterface(PluginCapabilityType type) noexcept override {
        if (type == PluginCapabilityType::kCORE) return static_cast<IPluginV3OneCore *>(this);
        if (type == PluginCapabilityType::kBUILD) return static_cast<IPluginV3OneBuild *>(this);
        return static_cast<IPluginV3OneRuntime *>(this);
    }
    IPluginV3 *clone() noexcept override { return new Sized; }
    const char *getPluginName() const noexcept override { return "Sized"; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    const char *getPluginNamespace() const noexcept override { return ""; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t getOutputDataTypes(DataType *out, int32_t, const DataType *,
                               int32_t) const noexcept override {
        out[0] = DataType::kFLOAT;
        return 0;
    }
    int32_t getOutputShapes(const DimsExprs *in, int32_t, const DimsExprs *, int32_t,
                            DimsExprs *out, int32_t, IExprBuilder &build) noexcept override {
        const IDimensionExpr *two = build.constant(2);
        CHECK(two->isConstant() && two->getConstantValue() == 2 && !two->isSizeTensor());
        out[0].nbDims = 2;
        out[0].d[0] = in[0].d[0];
        out[0].d[1] = build.operation(DimensionOperation::kPROD, *in[0].d[1], *two);
        return 0;
    }
    int32_t getAliasedInput(int32_t) noexcept override { return -1; }
    bool supportsFormatCombination(int32_t pos, const DynamicPluginTensorDesc *all, int32_t,
                                   int32_t) noexcept override {
        return all[pos].desc.type == DataType::kFLOAT;
    }
    int32_t configurePlugin(const DynamicPluginTensorDesc *, int32_t,
                            const DynamicPluginTensorDesc *, int32_t) noexcept override {
        return 0;
    }
    int32_t onShapeChange(const PluginTensorDesc *, int32_t, const PluginTensorDesc *,
                          int32_t) noexcept override {
        return 0;
    }
    int32_t enqueue(const PluginTensorDesc *, const PluginTensorDesc *, const void *const *,
                    void *const *, void *, cudaStream_t) noexcept override {
        return 0;
    }
    IPluginV3 *attachToContext(IPluginResourceContext *context) noexcept override {
        context->getGpuAllocator(), context->getErrorRecorder();
        return clone();
    }
    const PluginFieldCollection *getFieldsToSerialize() noexcept override {
        static PluginFieldCollection none{0, nullptr};
        return &none;
    }
};

class Counted : public IPluginResource {
public:
    static int alive;
    int32_t release() noexcept override {
        --alive;
        delete this;
        return 0;
    }
    IPluginResource *clone() noexcept override {
        ++alive;
        return new Counted;
    }
};
int Counted::alive = 0;

void bindings() {
    Held<IBuilder> builder(createInferBuilder(gLog));
    Held<INetworkDefinition> net(builder->createNetworkV2(1));
    ITensor &x = *net->addInput("x", DataType::kFLOAT, dims({-1, 4}));
    ITensor &shape = *net->addInput("shape", DataType::kINT32, dims({2}));
    IShuffleLayer &shuffle = *net->addShuffle(x);
    shuffle.setInput(1, shape);
    shuffle.getOutput(0)->setName("y");
    net->markOutput(*shuffle.getOutput(0));
    IBuilderConfig *config = builder->createBuilderConfig();
    IOptimizationProfile &profile = *builder->createOptimizationProfile();
    const int32_t least[] = {1, 2}, most[] = {8, 8};
    int64_t rows = 1;
    for (OptProfileSelector which :
         {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX}) {
        profile.setDimensions("x", which, dims({rows, 4}));
        profile.setShapeValues("shape", which, which == OptProfileSelector::kMIN ? least : most, 2);
        rows *= 2;
    }
    config->addOptimizationProfile(&profile);
    Held<ICudaEngine> engine(builder->buildEngineWithConfig(*net, *config));
    config->destroy();
    CHECK(engine && engine->getNbBindings() == 3 && engine->getMaxBatchSize() == 1);
    CHECK(engine->getBindingIndex("y") == 2 && engine->getBindingIndex("none") == -1);
    CHECK(equal(engine->getBindingName(0), "x") && engine->bindingIsInput(1));
    CHECK(equal(engine->getBindingDimensions(0), dims({-1, 4})));
    CHECK(engine->getBindingDataType(1) == DataType::kINT32);
    CHECK(engine->getBindingFormat(0) == TensorFormat::kLINEAR);
    CHECK(std::strstr(engine->getBindingFormatDesc(0), "kLINEAR"));
    CHECK(engine->getBindingBytesPerComponent(0) == 4);
    CHECK(engine->getBindingComponentsPerElement(0) == -1);
    CHECK(engine->getBindingVectorizedDim(0) == -1);
    CHECK(engine->getLocation(1) == TensorLocation::kHOST && engine->isShapeBinding(1));
    CHECK(!engine->isShapeBinding(0) && engine->isExecutionBinding(0));
    CHECK(equal(engine->getProfileDimensions(0, 0, OptProfileSelector::kMAX), dims({4, 4})));
    CHECK(engine->getProfileShapeValues(0, 1, OptProfileSelector::kMAX)[1] == 8);
    Held<IExecutionContext> context(engine->createExecutionContext());
    CHECK(context->setBindingDimensions(0, dims({2, 4})));
    CHECK(equal(context->getBindingDimensions(0), dims({2, 4})));
    CHECK(equal(context->getStrides(0), dims({4, 1})));
    const int32_t target[] = {4, 2}, wrong[] = {400, 2};
    int32_t read[2] = {};
    CHECK(!context->setInputShapeBinding(1, wrong) && context->setInputShapeBinding(1, target));
    CHECK(context->getShapeBinding(1, read) && read[0] == 4 && read[1] == 2);
    CHECK(equal(context->getBindingDimensions(2), dims({4, 2})));
    float from[8] = {0, 1, 2, 3, 4, 5, 6, 7}, to[8] = {};
    void *memory[] = {from, const_cast<int32_t *>(target), to};
    CHECK(context->enqueueV2(memory, nullptr, nullptr) && to[7] == 7);
    IBuilder *other = createInferBuilder(gLog);
    other->destroy();
}

void plugins() {
    Held<IBuilder> builder(createInferBuilder(gLog));
    Held<INetworkDefinition> net(builder->createNetworkV2(1));
    ITensor &x = *net->addInput("x", DataType::kFLOAT, dims({1, 4}));
    ITensor *one[] = {&x};
    Sized sized;
    IPluginV3Layer *third = net->addPluginV3(one, 1, nullptr, 0, sized);
    CHECK(third && dynamic_cast<Sized *>(&third->getPlugin()) && &third->getPlugin() != &sized);
    CHECK(equal(third->getOutput(0)->getDimensions(), dims({1, 8})));
    Held<INetworkDefinition> implicit(builder->createNetworkV2(0));
    ITensor &image = *implicit->addInput("i", DataType::kFLOAT, dims({4, 2, 2}));
    ITensor *two[] = {&image};
    Oldest oldest;
    IPluginLayer *first = implicit->addPlugin(two, 1, oldest);
    CHECK(first && &first->getPlugin() == &oldest);
    const int32_t stride = 2;
    const PluginField field("stride", &stride, PluginFieldType::kINT32, 1);
    const PluginFieldCollection fields{1, &field};
    IPluginV2 *reorg =
        getPluginRegistry()->getPluginCreator("Reorg_TRT", "1")->createPlugin("reorg", &fields);
    IPluginV2Layer *second = implicit->addPluginV2(two, 1, *reorg);
    CHECK(second && equal(second->getPlugin().getPluginType(), "Reorg_TRT"));
    CHECK(second->getPlugin().getNbOutputs() == 1);
    reorg->destroy();
}

void resources() {
    IPluginRegistry &registry = *getPluginRegistry();
    Counted mine;
    IPluginResource *first = registry.acquirePluginResource("counted", &mine);
    CHECK(first && Counted::alive == 1 &&
          registry.acquirePluginResource("counted", &mine) == first);
    CHECK(registry.releasePluginResource("counted") == 0 && Counted::alive == 1);
    CHECK(registry.releasePluginResource("counted") == 0 && Counted::alive == 0);
    CHECK(registry.releasePluginResource("counted") != 0);
}

using Part = void (*)();
const Part kParts[] = {bindings, plugins, resources};

}  // namespace

extern "C" const char *check_old(int part) {
    failed().clear();
    kParts[part]();
    return failed().c_str();
}
