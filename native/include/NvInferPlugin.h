// The standard plugins. Part of headrace, Apache-2.0.
#if !defined(HEADRACE_NV_INFER_PLUGIN_H) && !defined(NV_INFER_PLUGIN_H)
#define HEADRACE_NV_INFER_PLUGIN_H
#define NV_INFER_PLUGIN_H  // NVIDIA's own header, before or after this one, declares the same

#include "NvInfer.h"
#ifndef HEADRACE_NV_INFER_H
#error \
    "NvInfer.h is NVIDIA's and NvInferPlugin.h is headrace's: name the folder of NVIDIA's headers by -I, or take headrace's NvInfer.h"
#else
#include "NvInferPluginUtils.h"

// Makes all of them known under a namespace.
static inline bool initLibNvInferPlugins(void *, const char *libNamespace) {
    return headrace::call<bool>(nullptr, "init_libnvinfer_plugins",
                                {libNamespace ? libNamespace : ""});
}

namespace headrace {
inline namespace HEADRACE_GENERATION {

inline nvinfer1::IPluginV2 *standardPlugin(const char *type, const nvinfer1::PluginField *fields,
                                           int32_t count) {
    nvinfer1::IPluginRegistry *registry = nvinfer1::headraceGetPluginRegistry();
    nvinfer1::IPluginCreator *creator = registry ? registry->getPluginCreator(type, "1") : nullptr;
    const nvinfer1::PluginFieldCollection all{count, fields};
    return creator ? creator->createPlugin(type, &all) : nullptr;
}

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

// Up to 8, some of them had functions of their own.
static inline nvinfer1::IPluginV2 *createRPNROIPlugin(int32_t featureStride, int32_t preNmsTop,
                                                      int32_t nmsMaxOut, float iouThreshold,
                                                      float minBoxSize, float spatialScale,
                                                      nvinfer1::DimsHW pooling,
                                                      nvinfer1::Weights anchorRatios,
                                                      nvinfer1::Weights anchorScales) {
    using nvinfer1::PluginFieldType;
    const int32_t poolingH = static_cast<int32_t>(pooling.h());
    const int32_t poolingW = static_cast<int32_t>(pooling.w());
    const int32_t ratios = static_cast<int32_t>(anchorRatios.count);
    const int32_t scales = static_cast<int32_t>(anchorScales.count);
    const nvinfer1::PluginField fields[] = {
        {"poolingH", &poolingH, PluginFieldType::kINT32, 1},
        {"poolingW", &poolingW, PluginFieldType::kINT32, 1},
        {"featureStride", &featureStride, PluginFieldType::kINT32, 1},
        {"preNmsTop", &preNmsTop, PluginFieldType::kINT32, 1},
        {"nmsMaxOut", &nmsMaxOut, PluginFieldType::kINT32, 1},
        {"anchorsRatioCount", &ratios, PluginFieldType::kINT32, 1},
        {"anchorsScaleCount", &scales, PluginFieldType::kINT32, 1},
        {"iouThreshold", &iouThreshold, PluginFieldType::kFLOAT32, 1},
        {"minBoxSize", &minBoxSize, PluginFieldType::kFLOAT32, 1},
        {"spatialScale", &spatialScale, PluginFieldType::kFLOAT32, 1},
        {"anchorsRatios", anchorRatios.values, PluginFieldType::kFLOAT32, ratios},
        {"anchorsScales", anchorScales.values, PluginFieldType::kFLOAT32, scales}};
    return headrace::standardPlugin("RPROI_TRT", fields, 12);
}

static inline nvinfer1::IPluginV2 *createReorgPlugin(int32_t stride) {
    const nvinfer1::PluginField field("stride", &stride, nvinfer1::PluginFieldType::kINT32, 1);
    return headrace::standardPlugin("Reorg_TRT", &field, 1);
}

static inline nvinfer1::IPluginV2 *createRegionPlugin(nvinfer1::plugin::RegionParameters params) {
    using nvinfer1::PluginFieldType;
    const nvinfer1::PluginField fields[] = {
        {"num", &params.num, PluginFieldType::kINT32, 1},
        {"coords", &params.coords, PluginFieldType::kINT32, 1},
        {"classes", &params.classes, PluginFieldType::kINT32, 1},
        {"smTree", nullptr, PluginFieldType::kINT32, 1}};
    return headrace::standardPlugin("Region_TRT", fields, 4);
}

// Up to 5.0 they were IPlugins.
namespace nvinfer1 {
namespace plugin {

class INvPlugin : public IPlugin {
public:
    virtual const char *getPluginType() const = 0;
    virtual const char *getPluginVersion() const = 0;
    virtual void destroy() = 0;
};

}  // namespace plugin
}  // namespace nvinfer1

namespace headrace {
inline namespace HEADRACE_GENERATION {

// The host drives its own plugins; of this one it is told by headraceObject.
class HostNvPlugin : public nvinfer1::plugin::INvPlugin {
public:
    explicit HostNvPlugin(HostPlugin *plugin) : plugin_(plugin) {}
    headrace_object *headraceObject() const override { return plugin_->object(); }
    const char *getPluginType() const override { return plugin_->getPluginType(); }
    const char *getPluginVersion() const override { return plugin_->getPluginVersion(); }
    void destroy() override {
        plugin_->destroy();
        delete this;
    }
    int getNbOutputs() const override { return plugin_->getNbOutputs(); }
    nvinfer1::Dims getOutputDimensions(int index, const nvinfer1::Dims *in, int n) override {
        return plugin_->getOutputDimensions(index, in, n);
    }
    void configure(const nvinfer1::Dims *, int, const nvinfer1::Dims *, int, int) override {}
    int initialize() override { return plugin_->initialize(); }
    void terminate() override {}
    size_t getWorkspaceSize(int n) const override { return plugin_->getWorkspaceSize(n); }
    int enqueue(int, const void *const *, void **, void *, cudaStream_t) override { return 1; }
    size_t getSerializationSize() override { return plugin_->getSerializationSize(); }
    void serialize(void *buffer) override { plugin_->serialize(buffer); }

    static nvinfer1::plugin::INvPlugin *around(nvinfer1::IPluginV2 *plugin) {
        return plugin ? new HostNvPlugin(static_cast<HostPlugin *>(plugin)) : nullptr;
    }

private:
    HostPlugin *plugin_;
};

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

namespace nvinfer1 {
namespace plugin {

static inline INvPlugin *createFasterRCNNPlugin(int featureStride, int preNmsTop, int nmsMaxOut,
                                                float iouThreshold, float minBoxSize,
                                                float spatialScale, DimsHW pooling,
                                                Weights anchorRatios, Weights anchorScales) {
    return headrace::HostNvPlugin::around(createRPNROIPlugin(featureStride, preNmsTop, nmsMaxOut,
                                                             iouThreshold, minBoxSize, spatialScale,
                                                             pooling, anchorRatios, anchorScales));
}
static inline INvPlugin *createFasterRCNNPlugin(const void *data, size_t length) {
    IPluginRegistry *registry = headraceGetPluginRegistry();
    IPluginCreator *creator = registry ? registry->getPluginCreator("RPROI_TRT", "1") : nullptr;
    return headrace::HostNvPlugin::around(
        creator ? creator->deserializePlugin("RPROI_TRT", data, length) : nullptr);
}

}  // namespace plugin
}  // namespace nvinfer1

#endif  // HEADRACE_NV_INFER_H
#endif  // HEADRACE_NV_INFER_PLUGIN_H
