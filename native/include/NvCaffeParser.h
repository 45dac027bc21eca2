// Networks from Caffe files, and the factories of layers that they need. Part of noria, Apache-2.0.
#ifndef NORIA_NV_CAFFE_PARSER_H
#define NORIA_NV_CAFFE_PARSER_H

#include "NvInfer.h"

namespace nvcaffeparser1 {

// Makes the layers that a Caffe model has beyond Caffe's own.
class IPluginFactoryV2 {
public:
    virtual bool isPluginV2(const char *layerName) = 0;
    virtual nvinfer1::IPluginV2 *createPlugin(const char *layerName,
                                              const nvinfer1::Weights *weights, int32_t nbWeights,
                                              const char *libNamespace = "") = 0;
    virtual ~IPluginFactoryV2() = default;
};

// The factories before V2: declared for sources, never called.
class IPluginFactory {
public:
    virtual bool isPlugin(const char *layerName) = 0;
    virtual nvinfer1::IPlugin *createPlugin(const char *layerName,
                                            const nvinfer1::Weights *weights, int nbWeights) = 0;
    virtual ~IPluginFactory() = default;
};
class IPluginFactoryExt : public IPluginFactory {
public:
    virtual int getVersion() const { return NV_TENSORRT_VERSION; }
    virtual bool isPluginExt(const char *layerName) = 0;
};

class IBlobNameToTensor : public noria::Object {
public:
    nvinfer1::ITensor *find(const char *name) const {
        return noria::call<nvinfer1::ITensor *>(this, "find", {name});
    }

private:
    IBlobNameToTensor() = delete;
};

class ICaffeParser : public noria::Object {
public:
    void destroy() { delete this; }
    const IBlobNameToTensor *parse(const char *deploy, const char *model,
                                   nvinfer1::INetworkDefinition &network,
                                   nvinfer1::DataType weightType) {
        return noria::call<IBlobNameToTensor *>(this, "parse",
                                                {deploy, model, network, weightType});
    }
    void setPluginFactoryV2(IPluginFactoryV2 *factory);
    void setPluginNamespace(const char *text) { noria::set(this, "plugin_namespace", text); }
    void setProtobufBufferSize(size_t) {}

private:
    ICaffeParser() = delete;
};

inline ICaffeParser *createCaffeParser() {
    return noria::call<ICaffeParser *>(nullptr, "create_caffe_parser");
}
inline void shutdownProtobufLibrary() {}

}  // namespace nvcaffeparser1

namespace noria {
inline namespace NORIA_GENERATION {

struct FactoryCalls {
    using Factory = nvcaffeparser1::IPluginFactoryV2;
    static Factory *of(void *self) { return static_cast<Factory *>(self); }
    static int32_t isPlugin(void *self, const char *layer) { return of(self)->isPluginV2(layer); }
    static void create(void *self, const char *layer, const noria_value *weights, int32_t n,
                       const char *text, noria_plugin *made) {
        std::vector<nvinfer1::Weights> given;
        for (int32_t i = 0; i < n; ++i)
            given.push_back(nvinfer1::Weights{static_cast<nvinfer1::DataType>(weights[i].code),
                                              weights[i].data, weights[i].number});
        *made = describe(of(self)->createPlugin(layer, n ? given.data() : nullptr, n, text));
    }
    static noria_factory_calls table() {
        noria_factory_calls c = {};
        c.size = sizeof(c);
        c.is_plugin = &isPlugin, c.create = &create;
        return c;
    }
};

}  // namespace NORIA_GENERATION
}  // namespace noria

inline void nvcaffeparser1::ICaffeParser::setPluginFactoryV2(IPluginFactoryV2 *factory) {
    const noria_factory_calls calls = noria::FactoryCalls::table();
    noria::set(this, "plugin_factory_v2", noria::Value::foreign(NORIA_FACTORY, factory, &calls));
}

#endif  // NORIA_NV_CAFFE_PARSER_H
