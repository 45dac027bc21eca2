// Plugins and creators of the host (the standard ones, those written in Python) as C++ sources see
// them: things to create, name, clone and hand to a network.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_HOST_PLUGIN_H
#define HEADRACE_TRT_HOST_PLUGIN_H

#include <string>

#include "creators.h"
#include "plugin_v3_calls.h"

namespace headrace {
inline namespace HEADRACE_GENERATION {

// The first byte of getTensorRTVersion tells classes apart; this one is of no generation.
enum : int32_t { kHOST_PLUGIN_VERSION = 0x7E << 24 };

class HostPlugin : public nvinfer1::IPluginV2Ext {
public:
    explicit HostPlugin(headrace_object *object) : object_(object) {}
    ~HostPlugin() override {
        if (const headrace_host *h = host()) h->release(object_);
    }
    headrace_object *object() const { return object_; }

    int32_t getTensorRTVersion() const override {
        return kHOST_PLUGIN_VERSION | NV_TENSORRT_VERSION;
    }
    const char *getPluginType() const override { return ask<const char *>("plugin_type"); }
    const char *getPluginVersion() const override { return ask<const char *>("plugin_version"); }
    int32_t getNbOutputs() const override { return ask<int32_t>("num_outputs"); }
    void setPluginNamespace(const char *text) override {
        if (text) set(handle(), "plugin_namespace", text);
    }
    const char *getPluginNamespace() const override {
        return ask<const char *>("plugin_namespace");
    }
    size_t getSerializationSize() const override { return blob().size(); }
    void serialize(void *buffer) const override {
        const std::string bytes = blob();
        if (!bytes.empty()) std::memcpy(buffer, bytes.data(), bytes.size());
    }
    nvinfer1::IPluginV2Ext *clone() const override {
        const headrace_value made = callValue(handle(), "clone", {});
        if (made.kind != HEADRACE_OBJECT) return nullptr;
        return new HostPlugin(static_cast<headrace_object *>(const_cast<void *>(made.data)));
    }
    void destroy() override { delete this; }

    // The host drives its own plugins: what a builder asks is not asked through C++.
    nvinfer1::Dims getOutputDimensions(int32_t, const nvinfer1::Dims *, int32_t) override {
        nvinfer1::Dims none = {};
        none.nbDims = -1;
        return none;
    }
    bool supportsFormat(nvinfer1::DataType, nvinfer1::PluginFormat) const override { return false; }
    nvinfer1::DataType getOutputDataType(int32_t, const nvinfer1::DataType *,
                                         int32_t) const override {
        return nvinfer1::DataType::kFLOAT;
    }
    void configurePlugin(const nvinfer1::Dims *, int32_t, const nvinfer1::Dims *, int32_t,
                         const nvinfer1::DataType *, const nvinfer1::DataType *, const bool *,
                         const bool *, nvinfer1::PluginFormat, int32_t) override {}
    int32_t initialize() override { return 0; }
    void terminate() override {}
    size_t getWorkspaceSize(int32_t) const override { return 0; }
    int32_t enqueue(int32_t, const void *const *, HEADRACE_OUTPUTS, void *, cudaStream_t) override {
        return 1;
    }

private:
    const Object *handle() const { return reinterpret_cast<const Object *>(object_); }
    template <typename T>
    T ask(const char *name) const {
        return get<T>(handle(), name);
    }
    std::string blob() const {
        const headrace_value bytes = callValue(handle(), "serialize", {});
        if (bytes.kind != HEADRACE_BYTES) return std::string();
        return std::string(static_cast<const char *>(bytes.data),
                           static_cast<size_t>(bytes.number));
    }
    headrace_object *object_;
};

// A plugin as the host is told of it.
inline headrace_plugin describe(nvinfer1::IPluginV2 *plugin) {
    headrace_plugin out = {};
    out.generation = HEADRACE_PLUGIN_NONE;
    if (!plugin) return out;
    const int32_t kind = (plugin->getTensorRTVersion() >> 24) & 0xFF;
    if (kind == kHOST_PLUGIN_VERSION >> 24) {
        out.generation = HEADRACE_PLUGIN_OF_HOST;
        out.object = static_cast<HostPlugin *>(plugin)->object();
        return out;
    }
    out.generation = kind;
    out.self = plugin;
    out.v2 = PluginV2Calls::table(kind);
    return out;
}

inline headrace_plugin describe(nvinfer1::IPluginV3 *plugin) {
    headrace_plugin out = {};
    out.generation = plugin ? HEADRACE_PLUGIN_V3 : HEADRACE_PLUGIN_NONE;
    out.self = plugin;
    out.v3 = PluginV3Calls::table();
    return out;
}

inline Value pluginValue(const headrace_plugin &plugin) {
    Value v;
    v.kind = plugin.generation == HEADRACE_PLUGIN_NONE ? HEADRACE_NONE : HEADRACE_PLUGIN;
    v.data = &plugin;
    return v;
}

// A V2 plugin that a call of the host gave; the caller destroys it.
inline nvinfer1::IPluginV2 *pluginFrom(const headrace_value &value) {
    if (value.kind == HEADRACE_PLUGIN)
        return static_cast<nvinfer1::IPluginV2 *>(
            static_cast<const headrace_plugin *>(value.data)->self);
    if (value.kind != HEADRACE_OBJECT) return nullptr;
    return new HostPlugin(static_cast<headrace_object *>(const_cast<void *>(value.data)));
}

// The fields as the standard plugins read them: how many values some have is what another field
// says, whatever their length; sources of the original's samples leave it at 1.
inline Items<nvinfer1::PluginField> fieldsCounted(const nvinfer1::PluginFieldCollection &fc) {
    static const char *const counts[][2] = {{"anchorsRatios", "anchorsRatioCount"},
                                            {"anchorsScales", "anchorsScaleCount"},
                                            {"weights", "nbWeights"}};
    Items<nvinfer1::PluginField> all(fc.nbFields);
    for (int32_t i = 0; i < fc.nbFields; ++i) {
        nvinfer1::PluginField &field = all[i] = fc.fields[i];
        for (const auto &pair : counts) {
            if (!field.name || std::strcmp(field.name, pair[0]) != 0) continue;
            for (int32_t k = 0; k < fc.nbFields; ++k) {
                const nvinfer1::PluginField &count = fc.fields[k];
                if (!count.name || !count.data || std::strcmp(count.name, pair[1]) != 0) continue;
                int32_t number = 0;
                std::memcpy(&number, count.data, sizeof(number));
                if (number > field.length) field.length = number;
            }
        }
    }
    return all;
}

class HostCreator : public nvinfer1::IPluginCreator {
public:
    explicit HostCreator(headrace_object *object) : object_(object) {}
    const char *getPluginName() const override { return get<const char *>(handle(), "name"); }
    const char *getPluginVersion() const override {
        return get<const char *>(handle(), "plugin_version");
    }
    const nvinfer1::PluginFieldCollection *getFieldNames() override {
        headrace_value result = {};
        const headrace_host *h = host();
        if (!h || !h->get(object_, "field_names", &result) || result.kind != HEADRACE_FIELDS)
            return nullptr;
        return static_cast<const nvinfer1::PluginFieldCollection *>(result.data);
    }
    nvinfer1::IPluginV2 *createPlugin(const char *name,
                                      const nvinfer1::PluginFieldCollection *fc) override {
        if (!fc || !fc->fields) return pluginFrom(callValue(handle(), "create_plugin", {name, fc}));
        const Items<nvinfer1::PluginField> all = fieldsCounted(*fc);
        const nvinfer1::PluginFieldCollection given{fc->nbFields, all.data()};
        return pluginFrom(callValue(handle(), "create_plugin", {name, &given}));
    }
    nvinfer1::IPluginV2 *deserializePlugin(const char *name, const void *serialData,
                                           size_t serialLength) override {
        return pluginFrom(callValue(handle(), "deserialize_plugin",
                                    {name, Value::bytes(serialData, serialLength)}));
    }
    void setPluginNamespace(const char *text) override {
        if (text) set(handle(), "plugin_namespace", text);
    }
    const char *getPluginNamespace() const override {
        return get<const char *>(handle(), "plugin_namespace");
    }

private:
    const Object *handle() const { return reinterpret_cast<const Object *>(object_); }
    headrace_object *object_;
};

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

#endif  // HEADRACE_TRT_HOST_PLUGIN_H
