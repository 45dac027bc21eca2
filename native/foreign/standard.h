// Plugins and creators of the host (the standard ones, those in Python, those of libraries of other
// lines) as a library of a line knows them; and the functions of libnvinfer_plugin that make some.
// Part of facing.h.
#pragma once

#include <map>

#include "headrace/plugin_factories.h"

namespace headrace::foreign::HEADRACE_GENERATION {

// The host drives it: what a builder asks is not asked through C++.
struct StandardPlugin final : Line::IPluginV2Ext {
    headrace::HostPlugin *own;  // stays: a late use is an error then, and not a crash

    explicit StandardPlugin(headrace::HostPlugin *plugin) : own(plugin) {
        remember(static_cast<Line::IPluginV2 *>(this), own->object(), Line::number);
    }
    int getTensorRTVersion() override { return kHostPlugin << 24 | Line::newest; }
    const char *getPluginType() override { return own->getPluginType(); }
    const char *getPluginVersion() override { return own->getPluginVersion(); }
    int getNbOutputs() override { return own->getNbOutputs(); }
    unsigned long getSerializationSize() override { return own->getSerializationSize(); }
    void serialize(void *to) override { own->serialize(to); }
    void *clone() override;
    void destroy() override { release(static_cast<Line::IPluginV2 *>(this)); }
    void deleting() override { destroy(); }
    void setPluginNamespace(const char *value) override { own->setPluginNamespace(value); }
    const char *getPluginNamespace() override { return own->getPluginNamespace(); }
};

// Null for null, and for a plugin that is another library's own object.
inline void *standard_plugin(nvinfer1::IPluginV2 *plugin, const char *function) {
    if (!plugin) {
        null_answer("IPluginCreator", function);
        return nullptr;
    }
    if ((plugin->getTensorRTVersion() >> 24 & 0xFF) != kHostPlugin) {
        fail(function, "its plugins are objects of another library");
        return nullptr;
    }
    return static_cast<Line::IPluginV2 *>(
        new StandardPlugin(static_cast<headrace::HostPlugin *>(plugin)));
}

inline void *StandardPlugin::clone() { return standard_plugin(own->clone(), "clone"); }

struct StandardCreator final : Line::IPluginCreator {
    headrace::HostCreator *own;

    explicit StandardCreator(headrace::HostCreator *creator) : own(creator) {}
#if NV_TENSORRT_MAJOR >= 10
    int getAPILanguage() override { return 0; }
    Line::InterfaceInfo getInterfaceInfo() override { return {"PLUGIN CREATOR_V1", 1, 0}; }
#else
    int getTensorRTVersion() override { return Line::newest; }
#endif
    const char *getPluginName() override { return own->getPluginName(); }
    const char *getPluginVersion() override { return own->getPluginVersion(); }
    const Line::PluginFieldCollection *getFieldNames() override {
        return reinterpret_cast<const Line::PluginFieldCollection *>(own->getFieldNames());
    }
    void *createPlugin(const char *name, const Line::PluginFieldCollection *fields) override {
        using Fields = nvinfer1::PluginFieldCollection;
        return standard_plugin(own->createPlugin(name, reinterpret_cast<const Fields *>(fields)),
                               "createPlugin");
    }
    void *deserializePlugin(const char *name, const void *data, unsigned long size) override {
        return standard_plugin(own->deserializePlugin(name, data, size), "deserializePlugin");
    }
    void setPluginNamespace(const char *value) override { own->setPluginNamespace(value); }
    const char *getPluginNamespace() override { return own->getPluginNamespace(); }
};

inline void *standard_creator(const char *name, const char *version, const char *name_space) {
    const headrace_value registry = call(nullptr, "get_plugin_registry", {});
    headrace_value nobody{};
    nobody.kind = HEADRACE_ADDRESS;
    const headrace_value found = call(as_object(registry), "get_plugin_creator",
                                      {text(name), text(version), text(name_space), nobody});
    headrace_object *const object = as_object(found);
    if (!object) return nullptr;
    static auto *known = new std::map<const void *, StandardCreator *>;  // libraries keep them
    static auto *lock = new std::mutex;
    std::lock_guard<std::mutex> hold(*lock);
    auto *&one = (*known)[object];
    if (!one) one = new StandardCreator(headrace::standIn<headrace::HostCreator>(object));
    return static_cast<Line::IPluginCreator *>(one);
}

#if NV_TENSORRT_MAJOR < 10
using Params = nvinfer1::plugin::PriorBoxParameters;

struct Size : Line::Dims {};  // DimsHW
inline nvinfer1::Weights weights(const Weights &given) { return Struct{&given}; }
inline void *made_by(const char *function, nvinfer1::IPluginV2 *plugin) {
    return standard_plugin(plugin, function);
}
inline void *rpn_roi(int stride, int before, int most, float iou, float least, float scale,
                     Size pooling, Weights ratios, Weights scales) {
    const nvinfer1::DimsHW size(pooling.d[0], pooling.d[1]);
    return made_by("createRPNROIPlugin",
                   createRPNROIPlugin(stride, before, most, iou, least, scale, size,
                                      weights(ratios), weights(scales)));
}
inline void *reorg(int stride) { return made_by("createReorgPlugin", createReorgPlugin(stride)); }
inline void *region(nvinfer1::plugin::RegionParameters params) {
    return made_by("createRegionPlugin", createRegionPlugin(params));
}
inline void *normalize(const Weights *scales, bool across, bool shared, float eps) {
    if (!scales) return made_by("createNormalizePlugin", nullptr);
    const nvinfer1::Weights given = weights(*scales);
    return made_by("createNormalizePlugin", createNormalizePlugin(&given, across, shared, eps));
}
inline void *prior_box(nvinfer1::plugin::PriorBoxParameters params) {
    return made_by("createPriorBoxPlugin", createPriorBoxPlugin(params));
}
inline void *nms(nvinfer1::plugin::DetectionOutputParameters params) {
    return made_by("createNMSPlugin", createNMSPlugin(params));
}
inline void *batched_nms(nvinfer1::plugin::NMSParameters params) {
    return made_by("createBatchedNMSPlugin", createBatchedNMSPlugin(params));
}
inline void *clip(const char *layer, float least, float most) {
    return made_by("createClipPlugin", createClipPlugin(layer, least, most));
}
inline void *leaky(float slope) { return made_by("createLReLUPlugin", createLReLUPlugin(slope)); }
inline void *instance_norm(float epsilon, Weights scale, Weights bias) {
    return made_by("createInstanceNormalizationPlugin",
                   createInstanceNormalizationPlugin(epsilon, weights(scale), weights(bias)));
}

inline void *factory(const std::string &name) {
    if (name == "createRPNROIPlugin") return reinterpret_cast<void *>(&rpn_roi);
    if (name == "createReorgPlugin") return reinterpret_cast<void *>(&reorg);
    if (name == "createRegionPlugin") return reinterpret_cast<void *>(&region);
    if (name == "createNormalizePlugin") return reinterpret_cast<void *>(&normalize);
    if (name == "createPriorBoxPlugin") return reinterpret_cast<void *>(&prior_box);
    if (name == "createNMSPlugin") return reinterpret_cast<void *>(&nms);
    if (name == "createBatchedNMSPlugin") return reinterpret_cast<void *>(&batched_nms);
    if (name == "createClipPlugin") return reinterpret_cast<void *>(&clip);
    if (name == "createLReLUPlugin") return reinterpret_cast<void *>(&leaky);
    if (name == "createInstanceNormalizationPlugin")
        return reinterpret_cast<void *>(&instance_norm);
    return nullptr;
}
#else
inline void *factory(const std::string &) { return nullptr; }
#endif

}  // namespace headrace::foreign::HEADRACE_GENERATION
