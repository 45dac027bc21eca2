// Engine creators of a library of TensorRT's own headers that take standard plugins: by functions
// of libnvinfer_plugin, up to line 8, and by the registry. No GPU, no layers of its own.
#include <cstring>

#include "NvInfer.h"

using namespace nvinfer1;

namespace {

Dims of(int count, int a, int b, int c, int d = 0) {
    Dims dims{};
    dims.nbDims = count;
    const int all[] = {a, b, c, d};
    for (int i = 0; i < count; ++i) dims.d[i] = all[i];
    return dims;
}

#if NV_TENSORRT_MAJOR < 10
struct PriorBox {
    float *minSize, *maxSize, *aspectRatios;
    int numMinSize, numMaxSize, numAspectRatios;
    bool flip, clip;
    float variance[4];
    int imgH, imgW;
    float stepH, stepW, offset;
};
struct Detections {
    bool shareLocation, varianceEncodedInTarget;
    int backgroundLabelId, numClasses, topK, keepTopK;
    float confidenceThreshold, nmsThreshold;
    int codeType;
    int inputOrder[3];
    bool confSigmoid, isNormalized;
};
struct Boxes {
    bool shareLocation;
    int backgroundLabelId, numClasses, topK, keepTopK;
    float scoreThreshold, iouThreshold;
    bool isNormalized;
};
struct Region {
    int num, coords, classes;
    void *tree;
};
extern "C" {
IPluginV2 *createReorgPlugin(int stride);
IPluginV2 *createLReLUPlugin(float slope);
IPluginV2 *createClipPlugin(const char *layer, float least, float most);
IPluginV2 *createRegionPlugin(Region params);
IPluginV2 *createPriorBoxPlugin(PriorBox params);
IPluginV2 *createNMSPlugin(Detections params);
IPluginV2 *createBatchedNMSPlugin(Boxes params);
IPluginV2 *createNormalizePlugin(const Weights *scales, bool across, bool shared, float eps);
IPluginV2 *createInstanceNormalizationPlugin(float epsilon, Weights scale, Weights bias);
IPluginV2 *createRPNROIPlugin(int stride, int before, int most, float iou, float least, float scale,
                              DimsHW pooling, Weights ratios, Weights scales);
}

bool is(IPluginV2 *plugin, const char *type) {
    if (!plugin || std::strcmp(plugin->getPluginType(), type) != 0) return false;
    IPluginV2 *twin = plugin->clone();
    if (!twin || plugin->getNbOutputs() < 1) return false;
    const bool same = twin->getSerializationSize() == plugin->getSerializationSize();
    twin->destroy();
    plugin->destroy();
    return same;
}

bool all_are_made() {
    static float sizes[] = {30, 60}, one[] = {1, 1, 1, 1};
    const Weights four{DataType::kFLOAT, one, 4}, ratios{DataType::kFLOAT, sizes, 2};
    DimsHW pooling;
    pooling.nbDims = 2;
    pooling.d[0] = pooling.d[1] = 7;
    const PriorBox prior{sizes, sizes + 1, sizes, 1, 1,  1, true, false, {.1f, .1f, .2f, .2f},
                         0,     0,         8,     8, .5f};
    const Detections detections{true, false, 0, 3, 20, 10, .1f, .5f, 1, {0, 1, 2}, false, true};
    return is(createReorgPlugin(1), "Reorg_TRT") && is(createClipPlugin("c", 0, 6), "Clip_TRT") &&
           is(createRegionPlugin({5, 4, 3, nullptr}), "Region_TRT") &&
           is(createPriorBoxPlugin(prior), "PriorBox_TRT") &&
           is(createNMSPlugin(detections), "NMS_TRT") &&
           is(createBatchedNMSPlugin({true, -1, 3, 20, 10, .1f, .5f, true}), "BatchedNMS_TRT") &&
           is(createNormalizePlugin(&four, false, false, 1e-6f), "Normalize_TRT") &&
           is(createInstanceNormalizationPlugin(1e-5f, four, four), "InstanceNormalization_TRT") &&
           is(createRPNROIPlugin(16, 60, 3, .7f, 16, 1, pooling, ratios, ratios), "RPROI_TRT");
}
#endif

ITensor *through(INetworkDefinition &network, ITensor *x, IPluginV2 *plugin) {
    if (!plugin) return nullptr;
    auto *layer = network.addPluginV2(&x, 1, *plugin);
    plugin->destroy();
    return layer ? layer->getOutput(0) : nullptr;
}

IPluginV2 *reorganised(int stride) {
#if NV_TENSORRT_MAJOR < 11
    IPluginCreator *creator = getPluginRegistry()->getPluginCreator("Reorg_TRT", "1", "");
#else
    auto *creator =
        static_cast<IPluginCreator *>(getPluginRegistry()->getCreator("Reorg_TRT", "1", ""));
#endif
    if (!creator || creator->getFieldNames()->nbFields != 1) return nullptr;
    const PluginField field{"stride", &stride, PluginFieldType::kINT32, 1};
    const PluginFieldCollection all{1, &field};
    return creator->createPlugin("reorg", &all);
}

ICudaEngine *engine(IBuilder &builder, IBuilderConfig &config) {
#if NV_TENSORRT_MAJOR < 10  // of an implicit batch: the two layers below are of its time
    INetworkDefinition *network = builder.createNetworkV2(0);
    ITensor *x = network->addInput("image", DataType::kFLOAT, of(3, 3, 4, 6));
#else
    INetworkDefinition *network = builder.createNetworkV2(NV_TENSORRT_MAJOR >= 11 ? 0U : 1U);
    ITensor *x = network->addInput("image", DataType::kFLOAT, of(4, 1, 3, 4, 6));
#endif
    x = through(*network, x, reorganised(2));
#if NV_TENSORRT_MAJOR < 10
    if (!all_are_made()) return nullptr;
    if (x) x = through(*network, x, createLReLUPlugin(0.5f));
    if (x) x = through(*network, x, createClipPlugin("clip", -5, 20));
#endif
    if (!x) return nullptr;
    x->setName("y");
    network->markOutput(*x);
#if NV_TENSORRT_MAJOR >= 8
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
    return builder.buildEngineWithConfig(*network, config);
#endif
}

}  // namespace

#if NV_TENSORRT_MAJOR < 8
extern "C" bool Standard(IBuilder *builder, const void *, DataType, ICudaEngine *&made) {
    return (made = engine(*builder, *builder->createBuilderConfig())) != nullptr;
}
#else
extern "C" bool Standard(IBuilder *builder, IBuilderConfig *config, const void *, DataType,
                         ICudaEngine *&made) {
    return (made = engine(*builder, *config)) != nullptr;
}
#endif
