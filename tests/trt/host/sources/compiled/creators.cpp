// Engine creators of a library of TensorRT's own headers: a convolution, an activation, and the
// library's own layer, which adds one. Enums are opaque in the header of tests.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "NvInfer.h"

using namespace nvinfer1;

namespace {

#if NV_TENSORRT_MAJOR >= 10
using Extent = int64_t;
#else
using Extent = int32_t;
#endif

Dims of(int count, Extent a, Extent b, Extent c = 0, Extent d = 0) {
    Dims dims{};
    dims.nbDims = count;
    const Extent all[] = {a, b, c, d};
    for (int i = 0; i < count; ++i) dims.d[i] = all[i];
    return dims;
}

#ifndef ADDS
#define ADDS 1
#endif
#ifndef RESERVED
#define RESERVED 0
#endif

class PlusOne : public IPluginV2IOExt {
public:
    const char *getPluginType() const noexcept override { return "PlusOneOf" NAME; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    int getNbOutputs() const noexcept override { return 1; }
    Dims getOutputDimensions(int, const Dims *inputs, int) noexcept override { return inputs[0]; }
    int initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    unsigned long getWorkspaceSize(int) const noexcept override { return 0; }
    int enqueue(int batch, const void *const *in,
#if NV_TENSORRT_MAJOR < 8
                void **out,
#else
                void *const *out,
#endif
                void *, cudaStream_t) noexcept override {
        const float *from = static_cast<const float *>(in[0]);
        float *to = static_cast<float *>(out[0]);
        for (long i = 0; i < batch * size_; ++i) to[i] = from[i] + ADDS;
        return 0;
    }
    unsigned long getSerializationSize() const noexcept override {
        return RESERVED + sizeof(size_);
    }
    void serialize(void *to) const noexcept override {
        std::memset(to, 0x7f, RESERVED + sizeof(size_));
        std::memcpy(static_cast<char *>(to) + RESERVED, &size_, sizeof(size_));
    }
    void destroy() noexcept override { delete this; }
    void setPluginNamespace(const char *) noexcept override {}
    const char *getPluginNamespace() const noexcept override { return ""; }
    DataType getOutputDataType(int, const DataType *types, int) const noexcept override {
        return types[0];
    }
#if NV_TENSORRT_MAJOR < 11
    bool isOutputBroadcastAcrossBatch(int, const bool *, int) const noexcept override {
        return false;
    }
    bool canBroadcastInputAcrossBatch(int) const noexcept override { return false; }
#endif
    IPluginV2Ext *clone() const noexcept override { return new PlusOne(*this); }
    void configurePlugin(const PluginTensorDesc *in, int, const PluginTensorDesc *,
                         int) noexcept override {
        size_ = 1;
        for (int i = 0; i < in->dims.nbDims; ++i) size_ *= in->dims.d[i];
    }
    bool supportsFormatCombination(int at, const PluginTensorDesc *all, int,
                                   int) const noexcept override {
        return all[at].type == DataType::kFLOAT && all[at].format == TensorFormat::kLINEAR;
    }
    long size_ = 0;
};

class PlusOneCreator : public IPluginCreator {
public:
    const char *getPluginName() const noexcept override { return "PlusOneOf" NAME; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    const PluginFieldCollection *getFieldNames() noexcept override {
        static PluginFieldCollection none{0, nullptr};
        return &none;
    }
    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *) noexcept override {
        return new PlusOne;
    }
    IPluginV2 *deserializePlugin(const char *, const void *data, unsigned long) noexcept override {
        auto *made = new PlusOne;
        std::memcpy(&made->size_, static_cast<const char *>(data) + RESERVED, sizeof(made->size_));
        return made;
    }
    void setPluginNamespace(const char *) noexcept override {}
    const char *getPluginNamespace() const noexcept override { return ""; }
};
REGISTER_TENSORRT_PLUGIN(PlusOneCreator);

ITensor *convolved(INetworkDefinition &network, ITensor &input) {
    float ones[12];
    for (float &one : ones) one = 1;
    const Weights kernel{DataType::kFLOAT, ones, 12}, none{DataType::kFLOAT, nullptr, 0};
    auto *layer = network.addConvolutionNd(input, 1, of(2, 2, 2), kernel, none);
    for (float &one : ones) one = -7;  // the library's own from here on
    layer->setStrideNd(of(2, 2, 2));
    layer->setName("sums");
    const Dims shape = layer->getOutput(0)->getDimensions();
    const int axis = shape.nbDims - 3;
    if (shape.d[axis] != 1 || shape.d[axis + 1] != 2 || shape.d[axis + 2] != 3) return nullptr;
    if (std::strcmp(layer->getName(), "sums") != 0 || layer->getNbInputs() != 1) return nullptr;
    auto *bent = network.addActivation(*layer->getOutput(0), ActivationType(3));  // leaky
    bent->setAlpha(0.5f);
    return bent->getOutput(0);
}

ICudaEngine *engine(IBuilder &builder, IBuilderConfig &config, bool implicit) {
    INetworkDefinition *network =
        builder.createNetworkV2(implicit || NV_TENSORRT_MAJOR >= 11 ? 0U : 1U);
    const Dims input = implicit ? of(3, 3, 4, 6) : of(4, 1, 3, 4, 6);
    ITensor *x = network->addInput("image", DataType::kFLOAT, input);
    x = convolved(*network, *x);
    if (!x) return nullptr;
#if NV_TENSORRT_MAJOR < 11
    IPluginCreator *own = getPluginRegistry()->getPluginCreator("PlusOneOf" NAME, "1", "");
    IPluginV2 *plugin = own->createPlugin("own", own->getFieldNames());
#else
    IPluginV2 *plugin = new PlusOne;
#endif
    x = network->addPluginV2(&x, 1, *plugin)->getOutput(0);
    plugin->destroy();
    x->setName("sums_and_one");
    network->markOutput(*x);
    if (network->getNbLayers() != 3 || network->getLayer(1) == nullptr) return nullptr;
#if NV_TENSORRT_MAJOR >= 8
#if !defined(NV_TENSORRT_MINOR) || NV_TENSORRT_MAJOR * 100 + NV_TENSORRT_MINOR >= 806
    if (&network->getBuilder() != &builder) return nullptr;
#endif
    config.setAvgTimingIterations(2);
    IHostMemory *plan = builder.buildSerializedNetwork(*network, config);
    delete network;
    if (!plan) return nullptr;
    IRuntime *runtime = createInferRuntime(*getLogger());
    ICudaEngine *made = runtime->deserializeCudaEngine(plan->data(), plan->size()
#if NV_TENSORRT_MAJOR < 10
                                                                         ,
                                                       nullptr
#endif
    );
    delete plan;
    delete runtime;
    return made;
#else
    ICudaEngine *made = builder.buildEngineWithConfig(*network, config);
    network->destroy();
    return made;
#endif
}

}  // namespace

#if NV_TENSORRT_MAJOR < 8
#define CREATOR(name)                                                                     \
    extern "C" bool name(IBuilder *builder, const void *, DataType, ICudaEngine *&made) { \
        IBuilderConfig *own = builder->createBuilderConfig();                             \
        return name##With(*builder, *own, made);                                          \
    }
#else
#define CREATOR(name)                                                                       \
    extern "C" bool name(IBuilder *builder, IBuilderConfig *config, const void *, DataType, \
                         ICudaEngine *&made) {                                              \
        return name##With(*builder, *config, made);                                         \
    }
#endif

static bool SumsWith(IBuilder &builder, IBuilderConfig &config, ICudaEngine *&made) {
    return (made = engine(builder, config, false)) != nullptr;
}
static bool ImplicitWith(IBuilder &builder, IBuilderConfig &config, ICudaEngine *&made) {
    return (made = engine(builder, config, true)) != nullptr;
}
static bool ThrowsWith(IBuilder &, IBuilderConfig &, ICudaEngine *&) {
    throw std::runtime_error("no weights today");
}
static bool NullsWith(IBuilder &builder, IBuilderConfig &, ICudaEngine *&) {
    INetworkDefinition *network = builder.createNetworkV2(NV_TENSORRT_MAJOR >= 11 ? 0U : 1U);
    auto *layer = network->addActivation(*static_cast<ITensor *>(nullptr), ActivationType(0));
    return layer != nullptr;
}
static bool StrangerWith(IBuilder &builder, IBuilderConfig &, ICudaEngine *&) {
    INetworkDefinition *network = builder.createNetworkV2(NV_TENSORRT_MAJOR >= 11 ? 0U : 1U);
    static char bytes[256];
    auto *layer = network->addActivation(*reinterpret_cast<ITensor *>(bytes), ActivationType(0));
    return layer != nullptr;
}
static bool DeadNetworkWith(IBuilder &builder, IBuilderConfig &, ICudaEngine *&) {
    INetworkDefinition *network = builder.createNetworkV2(NV_TENSORRT_MAJOR >= 11 ? 0U : 1U);
    ITensor *x = network->addInput("image", DataType::kFLOAT, of(4, 1, 3, 4, 6));
#if NV_TENSORRT_MAJOR >= 8
    delete network;
#else
    network->destroy();
#endif
    return network->addActivation(*x, ActivationType(0)) != nullptr;
}
// A layer that is not served: null.
static ILayer *missing(IBuilder &builder) {
    INetworkDefinition *network = builder.createNetworkV2(NV_TENSORRT_MAJOR >= 11 ? 0U : 1U);
    ITensor *x = network->addInput("image", DataType::kFLOAT, of(4, 1, 3, 4, 6));
#if NV_TENSORRT_MAJOR < 10
    return reinterpret_cast<ILayer *>(network->addRNNv2(*x, 1, 1, 1, RNNOperation(0)));
#elif NV_TENSORRT_VERSION >= 101600
    return reinterpret_cast<ILayer *>(network->addMoE(*x, *x, *x));
#else
    return nullptr;
#endif
}
static bool RefusedWith(IBuilder &builder, IBuilderConfig &config, ICudaEngine *&) {
    config.setFlags(0);
    builder.setGpuAllocator(nullptr);
    return missing(builder) != nullptr;
}
static bool DiesWith(IBuilder &builder, IBuilderConfig &, ICudaEngine *&) {
    return missing(builder)->getNbOutputs() == 1;
}
static bool WideWith(IBuilder &builder, IBuilderConfig &, ICudaEngine *&) {
    INetworkDefinition *network = builder.createNetworkV2(NV_TENSORRT_MAJOR >= 11 ? 0U : 1U);
    Dims dims = of(4, 1, 3, 4, 6);
    dims.nbDims = 99;
    return network->addInput("image", DataType::kFLOAT, dims) != nullptr;
}
static bool HangsWith(IBuilder &, IBuilderConfig &, ICudaEngine *&) {
    for (;;) usleep(1000);
}
static bool ExitsWith(IBuilder &, IBuilderConfig &, ICudaEngine *&) { std::exit(3); }
static bool AbortsWith(IBuilder &, IBuilderConfig &, ICudaEngine *&) { std::abort(); }
// An engine that is none.
static bool WildWith(IBuilder &, IBuilderConfig &, ICudaEngine *&made) {
    static char bytes[256];
    made = reinterpret_cast<ICudaEngine *>(bytes);
    return true;
}
static bool NoneWith(IBuilder &, IBuilderConfig &, ICudaEngine *&) { return true; }
static bool weighed(IBuilder &builder, const void *values, int64_t count) {
    INetworkDefinition *network = builder.createNetworkV2(NV_TENSORRT_MAJOR >= 11 ? 0U : 1U);
    ITensor *x = network->addInput("image", DataType::kFLOAT, of(4, 1, 3, 4, 6));
    const Weights kernel{DataType::kFLOAT, values, count}, none{DataType::kFLOAT, nullptr, 0};
    return network->addConvolutionNd(*x, 1, of(2, 2, 2), kernel, none) != nullptr;
}
static bool FreedWith(IBuilder &builder, IBuilderConfig &, ICudaEngine *&) {
    void *gone = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone, 4096);
    return weighed(builder, gone, 12);
}
static bool TwiceWith(IBuilder &builder, IBuilderConfig &, ICudaEngine *&) {
    INetworkDefinition *network = builder.createNetworkV2(NV_TENSORRT_MAJOR >= 11 ? 0U : 1U);
    for (int i = 0; i < 2; ++i) {
#if NV_TENSORRT_MAJOR >= 8
        delete network;
#else
        network->destroy();
#endif
    }
    return false;
}
// A function that a release to come has behind the last one of the table.
static bool NewerWith(IBuilder &builder, IBuilderConfig &, ICudaEngine *&) {
    INetworkDefinition *network = builder.createNetworkV2(NV_TENSORRT_MAJOR >= 11 ? 0U : 1U);
#if NV_TENSORRT_MAJOR >= 10 && defined(NEWER)
    void *self = reinterpret_cast<void **>(network)[1];
    auto *table = *reinterpret_cast<void *(***)(void *)>(self);
    return table[NEWER](self) != nullptr;
#else
    return network == nullptr;
#endif
}
CREATOR(Hangs)
CREATOR(Exits)
CREATOR(Aborts)
CREATOR(Wild)
CREATOR(None)
CREATOR(Freed)
CREATOR(Twice)
CREATOR(Newer)
CREATOR(Sums)
CREATOR(Implicit)
CREATOR(Throws)
CREATOR(Nulls)
CREATOR(Stranger)
CREATOR(DeadNetwork)
CREATOR(Refused)
CREATOR(Wide)
CREATOR(Dies)
