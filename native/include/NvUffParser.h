// Networks from UFF files. Part of headrace, Apache-2.0.
#ifndef HEADRACE_NV_UFF_PARSER_H
#define HEADRACE_NV_UFF_PARSER_H

#include <vector>

#include "NvInfer.h"

namespace nvuffparser {

enum class UffInputOrder : int32_t { kNCHW = 0, kNHWC = 1, kNC = 2 };

enum class FieldType : int {
    kFLOAT = 0,
    kINT32 = 1,
    kCHAR = 2,
    kDIMS = 4,
    kDATATYPE = 5,
    kUNKNOWN = 6
};

class FieldMap {
public:
    const char *name;
    const void *data;
    FieldType type = FieldType::kUNKNOWN;
    int length = 1;
    FieldMap(const char *name_, const void *data_, const FieldType type_, int length_ = 1)
        : name(name_), data(data_), type(type_), length(length_) {}
};

struct FieldCollection {
    int nbFields;
    const FieldMap *fields;
};

// Up to 7: makes the layers of custom nodes that it says it makes. Inputs that are constants come
// as weights.
class IPluginFactory {
public:
    virtual bool isPlugin(const char *layerName) = 0;
    virtual nvinfer1::IPlugin *createPlugin(const char *layerName, const nvinfer1::Weights *weights,
                                            int nbWeights, const FieldCollection fields) = 0;
    virtual ~IPluginFactory() = default;
    inline virtual headrace_factory_calls headraceUffCalls() const;  // how the host calls it
};
class IPluginFactoryExt : public IPluginFactory {
public:
    virtual int getVersion() const { return NV_TENSORRT_VERSION; }
    virtual bool isPluginExt(const char *layerName) = 0;
    inline headrace_factory_calls headraceUffCalls() const override;
};

class IUffParser : public headrace::Object {
public:
    void destroy() { delete this; }
    bool registerInput(const char *name, nvinfer1::Dims dims, UffInputOrder order) {
        return headrace::call<bool>(
            nullptr, "uff_register_input",
            {headrace::Value(this), name, dims, static_cast<int32_t>(order)});
    }
    HEADRACE_CALL(bool, registerOutput(const char *name), "register_output", name)
    HEADRACE_CALL(bool,
                  parse(const char *file, nvinfer1::INetworkDefinition &network,
                        nvinfer1::DataType weightType = nvinfer1::DataType::kFLOAT),
                  "parse", file, network, weightType)
    void setPluginFactory(IPluginFactory *factory) {
        headrace::setFactory(this, "_plugin_factory", factory, &IPluginFactory::headraceUffCalls);
    }
    void setPluginFactoryExt(IPluginFactoryExt *factory) { setPluginFactory(factory); }
    void setPluginNamespace(const char *text) { headrace::set(this, "plugin_namespace", text); }

private:
    IUffParser() = delete;
};

inline IUffParser *createUffParser() {
    return headrace::call<IUffParser *>(nullptr, "create_uff_parser");
}
inline void shutdownProtobufLibrary() {}

}  // namespace nvuffparser

namespace headrace {
inline namespace HEADRACE_GENERATION {

struct UffFactoryCalls {
    using V1 = nvuffparser::IPluginFactory;
    using Ext = nvuffparser::IPluginFactoryExt;

    static nvuffparser::FieldType typeOf(int32_t type) {
        using nvinfer1::PluginFieldType;
        switch (static_cast<PluginFieldType>(type)) {
        case PluginFieldType::kFLOAT32: return nvuffparser::FieldType::kFLOAT;
        case PluginFieldType::kINT32: return nvuffparser::FieldType::kINT32;
        case PluginFieldType::kCHAR: return nvuffparser::FieldType::kCHAR;
        case PluginFieldType::kDIMS: return nvuffparser::FieldType::kDIMS;
        default: return nvuffparser::FieldType::kUNKNOWN;
        }
    }
    static int32_t isPlugin(void *self, const char *layer) {
        return static_cast<V1 *>(self)->isPlugin(layer);
    }
    template <bool WithFormats>
    static void create(void *self, const char *layer, const headrace_value *weights, int32_t n,
                       const headrace_fields *fields, headrace_plugin *made) {
        const Items<nvinfer1::Weights> given = allWeights(weights, n);
        std::vector<nvuffparser::FieldMap> all;
        for (int32_t i = 0; i < fields->count; ++i) {
            const headrace_field &f = fields->fields[i];
            all.emplace_back(f.name, f.data, typeOf(f.type), f.length);
        }
        const nvuffparser::FieldCollection told{fields->count, all.data()};
        V1 *factory = static_cast<V1 *>(self);
        nvinfer1::IPlugin *plugin =
            factory->createPlugin(layer, n ? given.data() : nullptr, n, told);
        *made = describe(plugin, WithFormats && static_cast<Ext *>(factory)->isPluginExt(layer));
    }
    template <bool WithFormats>
    static headrace_factory_calls table() {
        headrace_factory_calls c = {};
        c.size = sizeof(c);
        c.is_plugin = &isPlugin, c.create_with_fields = &create<WithFormats>;
        return c;
    }
};

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

namespace nvuffparser {
inline headrace_factory_calls IPluginFactory::headraceUffCalls() const {
    return headrace::UffFactoryCalls::table<false>();
}
inline headrace_factory_calls IPluginFactoryExt::headraceUffCalls() const {
    return headrace::UffFactoryCalls::table<true>();
}
}  // namespace nvuffparser

#endif  // HEADRACE_NV_UFF_PARSER_H
