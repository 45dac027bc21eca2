// Networks from Caffe files, and the factories of layers that they need. Part of headrace,
// Apache-2.0.
#ifndef HEADRACE_NV_CAFFE_PARSER_H
#define HEADRACE_NV_CAFFE_PARSER_H

#include "NvInfer.h"

namespace nvcaffeparser1 {

// Makes the layers that it says it makes, whatever their type.
class IPluginFactoryV2 {
public:
    virtual bool isPluginV2(const char *layerName) = 0;
    virtual nvinfer1::IPluginV2 *createPlugin(const char *layerName,
                                              const nvinfer1::Weights *weights, int32_t nbWeights,
                                              const char *libNamespace = "") = 0;
    virtual ~IPluginFactoryV2() = default;
    inline virtual headrace_factory_calls headraceCaffeCalls() const;  // how the host calls it
};

// Up to 7.
class IPluginFactory {
public:
    virtual bool isPlugin(const char *layerName) = 0;
    virtual nvinfer1::IPlugin *createPlugin(const char *layerName, const nvinfer1::Weights *weights,
                                            int nbWeights) = 0;
    virtual ~IPluginFactory() = default;
    inline virtual headrace_factory_calls headraceCaffeCalls() const;
};
class IPluginFactoryExt : public IPluginFactory {
public:
    virtual int getVersion() const { return NV_TENSORRT_VERSION; }
    virtual bool isPluginExt(const char *layerName) = 0;
    inline headrace_factory_calls headraceCaffeCalls() const override;
};

class IBlobNameToTensor : public headrace::Object {
public:
    HEADRACE_CALL(nvinfer1::ITensor *, find(const char *name) const, "find", name)

private:
    IBlobNameToTensor() = delete;
};

class ICaffeParser : public headrace::Object {
public:
    void destroy() { delete this; }
    const IBlobNameToTensor *parse(const char *deploy, const char *model,
                                   nvinfer1::INetworkDefinition &network,
                                   nvinfer1::DataType weightType) {
        return headrace::call<IBlobNameToTensor *>(this, "parse",
                                                   {deploy, model, network, weightType});
    }
    void setPluginFactoryV2(IPluginFactoryV2 *factory) {
        headrace::setFactory(this, "plugin_factory_v2", factory,
                             &IPluginFactoryV2::headraceCaffeCalls);
    }
    void setPluginFactory(IPluginFactory *factory) {
        headrace::setFactory(this, "_plugin_factory", factory, &IPluginFactory::headraceCaffeCalls);
    }
    void setPluginFactoryExt(IPluginFactoryExt *factory) { setPluginFactory(factory); }
    void setPluginNamespace(const char *text) { headrace::set(this, "plugin_namespace", text); }
    void setProtobufBufferSize(size_t) {}

private:
    ICaffeParser() = delete;
};

inline ICaffeParser *createCaffeParser() {
    return headrace::call<ICaffeParser *>(nullptr, "create_caffe_parser");
}
inline void shutdownProtobufLibrary() {}

}  // namespace nvcaffeparser1

namespace headrace {
inline namespace HEADRACE_GENERATION {

struct CaffeFactoryCalls {
    using V2 = nvcaffeparser1::IPluginFactoryV2;
    using V1 = nvcaffeparser1::IPluginFactory;
    using Ext = nvcaffeparser1::IPluginFactoryExt;

    static int32_t isPluginV2(void *self, const char *layer) {
        return static_cast<V2 *>(self)->isPluginV2(layer);
    }
    static void createV2(void *self, const char *layer, const headrace_value *weights, int32_t n,
                         const char *text, headrace_plugin *made) {
        const Items<nvinfer1::Weights> given = allWeights(weights, n);
        *made = describe(
            static_cast<V2 *>(self)->createPlugin(layer, n ? given.data() : nullptr, n, text));
    }
    static int32_t isPlugin(void *self, const char *layer) {
        return static_cast<V1 *>(self)->isPlugin(layer);
    }
    template <bool WithFormats>
    static void create(void *self, const char *layer, const headrace_value *weights, int32_t n,
                       const char *, headrace_plugin *made) {
        const Items<nvinfer1::Weights> given = allWeights(weights, n);
        V1 *factory = static_cast<V1 *>(self);
        nvinfer1::IPlugin *plugin = factory->createPlugin(layer, n ? given.data() : nullptr, n);
        *made = describe(plugin, WithFormats && static_cast<Ext *>(factory)->isPluginExt(layer));
    }
    static headrace_factory_calls table(int32_t (*is)(void *, const char *),
                                        void (*make)(void *, const char *, const headrace_value *,
                                                     int32_t, const char *, headrace_plugin *)) {
        headrace_factory_calls c = {};
        c.size = sizeof(c);
        c.is_plugin = is, c.create = make;
        return c;
    }
};

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

namespace nvcaffeparser1 {
inline headrace_factory_calls IPluginFactoryV2::headraceCaffeCalls() const {
    using Calls = headrace::CaffeFactoryCalls;
    return Calls::table(&Calls::isPluginV2, &Calls::createV2);
}
inline headrace_factory_calls IPluginFactory::headraceCaffeCalls() const {
    using Calls = headrace::CaffeFactoryCalls;
    return Calls::table(&Calls::isPlugin, &Calls::create<false>);
}
inline headrace_factory_calls IPluginFactoryExt::headraceCaffeCalls() const {
    using Calls = headrace::CaffeFactoryCalls;
    return Calls::table(&Calls::isPlugin, &Calls::create<true>);
}
}  // namespace nvcaffeparser1

#endif  // HEADRACE_NV_CAFFE_PARSER_H
