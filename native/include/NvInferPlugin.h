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
#include "headrace/plugin_factories.h"

// Makes all of them known under a namespace. A template: a source may define a function of its
// name.
template <typename = void>
bool initLibNvInferPlugins(void *, const char *libNamespace) {
    return headrace::call<bool>(nullptr, "init_libnvinfer_plugins",
                                {libNamespace ? libNamespace : ""});
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
