// Up to 7: layers that an engine stores by their name and bytes alone, and who makes them.
//
// The host meets such a layer as an IPluginV2 around it. It cannot be copied: all "clones" are the
// one object, which stays its factory's. Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_PLUGIN_LEGACY_H
#define HEADRACE_TRT_PLUGIN_LEGACY_H

#include <string>

#include "host_plugin.h"

namespace nvinfer1 {

class IPlugin {
public:
    virtual int getNbOutputs() const = 0;
    virtual Dims getOutputDimensions(int index, const Dims *inputs, int nbInputDims) = 0;
    virtual void configure(const Dims *inputDims, int nbInputs, const Dims *outputDims,
                           int nbOutputs, int maxBatchSize) = 0;
    virtual int initialize() = 0;
    virtual void terminate() = 0;
    virtual size_t getWorkspaceSize(int maxBatchSize) const = 0;
    virtual int enqueue(int batchSize, const void *const *inputs, void **outputs, void *workspace,
                        cudaStream_t stream) = 0;
    virtual size_t getSerializationSize() = 0;
    virtual void serialize(void *buffer) = 0;
    virtual ~IPlugin() {}
    // The plugin of the host that it stands for, if it does.
    virtual headrace_object *headraceObject() const { return nullptr; }
};

class IPluginExt : public IPlugin {
public:
    virtual int getTensorRTVersion() const { return NV_TENSORRT_VERSION; }
    virtual bool supportsFormat(DataType type, PluginFormat format) const = 0;
    virtual void configureWithFormat(const Dims *inputDims, int nbInputs, const Dims *outputDims,
                                     int nbOutputs, DataType type, PluginFormat format,
                                     int maxBatchSize) = 0;
    virtual ~IPluginExt() {}

protected:
    void configure(const Dims *, int, const Dims *, int, int) final {}
};

// Makes the layers of an engine that is loaded.
class IPluginFactory {
public:
    virtual IPlugin *createPlugin(const char *layerName, const void *serialData,
                                  size_t serialLength) = 0;
    virtual ~IPluginFactory() = default;
    inline virtual headrace_factory_calls headraceRuntimeCalls() const;  // how the host calls it
};

}  // namespace nvinfer1

namespace headrace {
inline namespace HEADRACE_GENERATION {

class LegacyPlugin : public nvinfer1::IPluginV2 {
public:
    LegacyPlugin(nvinfer1::IPlugin *plugin, nvinfer1::IPluginExt *ext)
        : plugin_(plugin), ext_(ext) {}

    const char *getPluginType() const override { return "IPlugin"; }
    const char *getPluginVersion() const override { return "1"; }
    int32_t getNbOutputs() const override { return plugin_->getNbOutputs(); }
    nvinfer1::Dims getOutputDimensions(int32_t index, const nvinfer1::Dims *inputs,
                                       int32_t n) override {
        return plugin_->getOutputDimensions(index, inputs, n);
    }
    bool supportsFormat(nvinfer1::DataType type, nvinfer1::PluginFormat format) const override {
        if (ext_) return ext_->supportsFormat(type, format);
        return type == nvinfer1::DataType::kFLOAT && format == nvinfer1::PluginFormat::kLINEAR;
    }
    void configureWithFormat(const nvinfer1::Dims *in, int32_t nIn, const nvinfer1::Dims *out,
                             int32_t nOut, nvinfer1::DataType type, nvinfer1::PluginFormat format,
                             int32_t maxBatch) override {
        if (ext_)
            ext_->configureWithFormat(in, nIn, out, nOut, type, format, maxBatch);
        else
            plugin_->configure(in, nIn, out, nOut, maxBatch);
    }
    int32_t initialize() override { return plugin_->initialize(); }
    void terminate() override { plugin_->terminate(); }
    size_t getWorkspaceSize(int32_t maxBatch) const override {
        return plugin_->getWorkspaceSize(maxBatch);
    }
    int32_t enqueue(int32_t batch, const void *const *inputs, HEADRACE_OUTPUTS outputs,
                    void *workspace, cudaStream_t stream) override {
        return plugin_->enqueue(batch, inputs, const_cast<void **>(outputs), workspace, stream);
    }
    size_t getSerializationSize() const override { return plugin_->getSerializationSize(); }
    void serialize(void *buffer) const override { plugin_->serialize(buffer); }
    void destroy() override { delete this; }
    nvinfer1::IPluginV2 *clone() const override { return new LegacyPlugin(*this); }
    void setPluginNamespace(const char *text) override { namespace_ = text ? text : ""; }
    const char *getPluginNamespace() const override { return namespace_.c_str(); }

    static const char *nameOf(void *self) {
        return className<nvinfer1::IPlugin>(&behind(static_cast<nvinfer1::IPluginV2 *>(self)));
    }
    static nvinfer1::IPlugin &behind(nvinfer1::IPluginV2 *shown) {
        return *static_cast<LegacyPlugin *>(shown)->plugin_;
    }

private:
    nvinfer1::IPlugin *plugin_;
    nvinfer1::IPluginExt *ext_;  // the same, if it has formats
    std::string namespace_;
};

inline headrace_plugin describe(nvinfer1::IPlugin *plugin, bool ext) {
    headrace_plugin out = {};
    out.generation = HEADRACE_PLUGIN_NONE;
    if (!plugin) return out;
    if (headrace_object *object = plugin->headraceObject()) {
        out.generation = HEADRACE_PLUGIN_OF_HOST;
        out.object = object;
        return out;
    }
    nvinfer1::IPluginV2 *shown =
        new LegacyPlugin(plugin, ext ? static_cast<nvinfer1::IPluginExt *>(plugin) : nullptr);
    out.generation = HEADRACE_PLUGIN_V2;
    out.self = shown;
    out.v2 = PluginV2Calls::table(HEADRACE_PLUGIN_V2);
    out.v2.class_name = &LegacyPlugin::nameOf;
    out.owned = 1;
    return out;
}

struct RuntimeFactoryCalls {
    static void deserialize(void *self, const char *layer, const void *data, size_t size,
                            headrace_plugin *made) {
        *made = describe(
            static_cast<nvinfer1::IPluginFactory *>(self)->createPlugin(layer, data, size), false);
    }
};

inline Items<nvinfer1::Weights> allWeights(const headrace_value *values, int32_t n) {
    Items<nvinfer1::Weights> out(n);
    for (int32_t i = 0; i < n; ++i)
        out[i] = nvinfer1::Weights{static_cast<nvinfer1::DataType>(values[i].code), values[i].data,
                                   values[i].number};
    return out;
}

// Sets a property of an object of the host to a factory of the library.
template <typename Factory>
bool setFactory(const Object *owner, const char *name, Factory *factory,
                headrace_factory_calls (Factory::*calls)() const) {
    headrace_factory_calls table = {};
    if (factory) table = (factory->*calls)();
    return set(owner, name, Value::foreign(HEADRACE_FACTORY, factory, &table));
}

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

inline headrace_factory_calls nvinfer1::IPluginFactory::headraceRuntimeCalls() const {
    headrace_factory_calls c = {};
    c.size = sizeof(c);
    c.deserialize = &headrace::RuntimeFactoryCalls::deserialize;
    return c;
}

#endif  // HEADRACE_TRT_PLUGIN_LEGACY_H
