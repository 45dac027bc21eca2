// Networks from UFF files. Part of noria, Apache-2.0.
#ifndef NORIA_NV_UFF_PARSER_H
#define NORIA_NV_UFF_PARSER_H

#include "NvInfer.h"

namespace nvuffparser {

enum class UffInputOrder : int32_t { kNCHW = 0, kNHWC = 1, kNC = 2 };

struct FieldCollection;

// Factories of layers of generations that are gone: declared for sources, never called.
class IPluginFactory {
public:
    virtual bool isPlugin(const char *layerName) = 0;
    virtual nvinfer1::IPlugin *createPlugin(const char *layerName,
                                            const nvinfer1::Weights *weights, int nbWeights,
                                            const FieldCollection fields) = 0;
    virtual ~IPluginFactory() = default;
};
class IPluginFactoryExt : public IPluginFactory {
public:
    virtual int getVersion() const { return NV_TENSORRT_VERSION; }
    virtual bool isPluginExt(const char *layerName) = 0;
};

class IUffParser : public noria::Object {
public:
    void destroy() { delete this; }
    bool registerInput(const char *name, nvinfer1::Dims dims, UffInputOrder order) {
        return noria::call<bool>(nullptr, "uff_register_input",
                                 {noria::Value(this), name, dims, static_cast<int32_t>(order)});
    }
    bool registerOutput(const char *name) {
        return noria::call<bool>(this, "register_output", {name});
    }
    bool parse(const char *file, nvinfer1::INetworkDefinition &network,
               nvinfer1::DataType weightType = nvinfer1::DataType::kFLOAT) {
        return noria::call<bool>(this, "parse", {file, network, weightType});
    }
    void setPluginNamespace(const char *text) { noria::set(this, "plugin_namespace", text); }

private:
    IUffParser() = delete;
};

inline IUffParser *createUffParser() {
    return noria::call<IUffParser *>(nullptr, "create_uff_parser");
}
inline void shutdownProtobufLibrary() {}

}  // namespace nvuffparser

#endif  // NORIA_NV_UFF_PARSER_H
