// How the host calls a plugin of the V2 line: plain functions around its virtual ones.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_PLUGIN_V2_CALLS_H
#define HEADRACE_TRT_PLUGIN_V2_CALLS_H

#include <cstring>

#include "plugin_v2.h"

namespace headrace {
inline namespace HEADRACE_GENERATION {

inline nvinfer1::PluginTensorDesc toDesc(const headrace_desc &desc) {
    nvinfer1::PluginTensorDesc out = {};
    out.dims = fromHost(desc.dims);
    out.type = static_cast<nvinfer1::DataType>(desc.type);
    out.format = static_cast<nvinfer1::TensorFormat>(desc.format);
    out.scale = desc.scale;
    return out;
}

inline Items<nvinfer1::PluginTensorDesc> allDescs(const headrace_desc *descs, int32_t n) {
    Items<nvinfer1::PluginTensorDesc> out(n);
    for (int32_t i = 0; i < n; ++i) out[i] = toDesc(descs[i]);
    return out;
}

inline Items<nvinfer1::DynamicPluginTensorDesc> allDynamicDescs(const headrace_desc *descs,
                                                                int32_t n) {
    Items<nvinfer1::DynamicPluginTensorDesc> out(n);
    for (int32_t i = 0; i < n; ++i) {
        nvinfer1::DynamicPluginTensorDesc &d = out[i];
        d.desc = toDesc(descs[i]);
        d.min = fromHost(descs[i].least);
        d.max = fromHost(descs[i].most);
#if NV_TENSORRT_MAJOR >= 10
        d.opt = fromHost(descs[i].best);
#endif
    }
    return out;
}

inline Items<nvinfer1::Dims> allDims(const headrace_dims *dims, int32_t n) {
    Items<nvinfer1::Dims> out(n);
    for (int32_t i = 0; i < n; ++i) out[i] = fromHost(dims[i]);
    return out;
}

inline Items<nvinfer1::DataType> allTypes(const int32_t *types, int32_t n) {
    Items<nvinfer1::DataType> out(n);
    for (int32_t i = 0; i < n; ++i) out[i] = static_cast<nvinfer1::DataType>(types[i]);
    return out;
}

inline Items<nvinfer1::DimsExprs> allExprs(const headrace_exprs *exprs, int32_t n) {
    Items<nvinfer1::DimsExprs> out(n);
    for (int32_t i = 0; i < n; ++i) out[i] = fromHost(exprs[i]);
    return out;
}

struct PluginV2Calls {
    using Plugin = nvinfer1::IPluginV2;
    using Ext = nvinfer1::IPluginV2Ext;
    using IOExt = nvinfer1::IPluginV2IOExt;
    using Dynamic = nvinfer1::IPluginV2DynamicExt;
    using Dims = nvinfer1::Dims;
    using Type = nvinfer1::DataType;
    using Format = nvinfer1::TensorFormat;

    template <typename T>
    static T &as(void *self) {
        return *static_cast<T *>(static_cast<Plugin *>(self));
    }
    static const char *type(void *self) { return as<Plugin>(self).getPluginType(); }
    static const char *version(void *self) { return as<Plugin>(self).getPluginVersion(); }
    static const char *getNamespace(void *self) { return as<Plugin>(self).getPluginNamespace(); }
    static void setNamespace(void *self, const char *text) {
        as<Plugin>(self).setPluginNamespace(text);
    }
    static int32_t outputCount(void *self) { return as<Plugin>(self).getNbOutputs(); }
    static int32_t initialize(void *self) { return as<Plugin>(self).initialize(); }
    static void terminate(void *self) { as<Plugin>(self).terminate(); }
    static void destroy(void *self) { as<Plugin>(self).destroy(); }
    static void *clone(void *self) { return as<Plugin>(self).clone(); }
    static size_t serializationSize(void *self) { return as<Plugin>(self).getSerializationSize(); }
    static void serialize(void *self, void *buffer) { as<Plugin>(self).serialize(buffer); }

    static void outputDims(void *self, int32_t index, const headrace_dims *in, int32_t n,
                           headrace_dims *out) {
        const Items<Dims> dims = allDims(in, n);
        *out = toHost(as<Plugin>(self).getOutputDimensions(index, dims.data(), n));
    }
    static int32_t supportsFormat(void *self, int32_t type, int32_t format) {
        return as<Plugin>(self).supportsFormat(static_cast<Type>(type),
                                               static_cast<Format>(format));
    }
    static void configureWithFormat(void *self, const headrace_dims *in, int32_t nIn,
                                    const headrace_dims *out, int32_t nOut, int32_t type,
                                    int32_t format, int32_t maxBatch) {
        const Items<Dims> i = allDims(in, nIn), o = allDims(out, nOut);
        as<Plugin>(self).configureWithFormat(i.data(), nIn, o.data(), nOut, static_cast<Type>(type),
                                             static_cast<Format>(format), maxBatch);
    }
    static size_t workspace(void *self, int32_t maxBatch) {
        return as<Plugin>(self).getWorkspaceSize(maxBatch);
    }
    static int32_t enqueue(void *self, int32_t batch, const void *const *in, void *const *out,
                           void *scratch, void *stream) {
        return as<Plugin>(self).enqueue(batch, in, const_cast<HEADRACE_OUTPUTS>(out), scratch,
                                        static_cast<cudaStream_t>(stream));
    }

    static int32_t outputType(void *self, int32_t index, const int32_t *types, int32_t n) {
        const Items<Type> in = allTypes(types, n);
        return static_cast<int32_t>(as<Ext>(self).getOutputDataType(index, in.data(), n));
    }
    static int32_t outputBroadcast(void *self, int32_t index, const uint8_t *broadcast, int32_t n) {
        return as<Ext>(self).isOutputBroadcastAcrossBatch(
            index, reinterpret_cast<const bool *>(broadcast), n);
    }
    static int32_t inputBroadcast(void *self, int32_t index) {
        return as<Ext>(self).canBroadcastInputAcrossBatch(index);
    }
    static void configureExt(void *self, const headrace_desc *in, int32_t nIn,
                             const headrace_desc *out, int32_t nOut, const uint8_t *inBroadcast,
                             const uint8_t *outBroadcast, int32_t format, int32_t maxBatch) {
        Items<Dims> i(nIn), o(nOut);
        Items<Type> ti(nIn), to(nOut);
        for (int32_t k = 0; k < nIn; ++k) {
            i[k] = fromHost(in[k].dims);
            ti[k] = static_cast<Type>(in[k].type);
        }
        for (int32_t k = 0; k < nOut; ++k) {
            o[k] = fromHost(out[k].dims);
            to[k] = static_cast<Type>(out[k].type);
        }
        as<Ext>(self).configurePlugin(i.data(), nIn, o.data(), nOut, ti.data(), to.data(),
                                      reinterpret_cast<const bool *>(inBroadcast),
                                      reinterpret_cast<const bool *>(outBroadcast),
                                      static_cast<Format>(format), maxBatch);
    }
    static void attach(void *self, void *cudnn, void *cublas, void *allocator) {
        as<Ext>(self).attachToContext(static_cast<cudnnContext *>(cudnn),
                                      static_cast<cublasContext *>(cublas),
                                      static_cast<nvinfer1::IGpuAllocator *>(allocator));
    }
    static void detach(void *self) { as<Ext>(self).detachFromContext(); }

    template <typename T>
    static int32_t supportsCombination(void *self, int32_t pos, const headrace_desc *inOut,
                                       int32_t nIn, int32_t nOut) {
        const auto descs = allDescs(inOut, nIn + nOut);
        return as<T>(self).supportsFormatCombination(pos, descs.data(), nIn, nOut);
    }
    static void configureIO(void *self, const headrace_desc *in, int32_t nIn,
                            const headrace_desc *out, int32_t nOut) {
        const auto i = allDescs(in, nIn), o = allDescs(out, nOut);
        as<IOExt>(self).configurePlugin(i.data(), nIn, o.data(), nOut);
    }
    static void configureDynamic(void *self, const headrace_desc *in, int32_t nIn,
                                 const headrace_desc *out, int32_t nOut) {
        const auto i = allDynamicDescs(in, nIn), o = allDynamicDescs(out, nOut);
        as<Dynamic>(self).configurePlugin(i.data(), nIn, o.data(), nOut);
    }
    static void outputExprs(void *self, int32_t index, const headrace_exprs *in, int32_t n,
                            headrace_object *builder, headrace_exprs *out) {
        const Items<nvinfer1::DimsExprs> exprs = allExprs(in, n);
        *out = toHost(as<Dynamic>(self).getOutputDimensions(
            index, exprs.data(), n, *reinterpret_cast<nvinfer1::IExprBuilder *>(builder)));
    }
    static size_t dynamicWorkspace(void *self, const headrace_desc *in, int32_t nIn,
                                   const headrace_desc *out, int32_t nOut) {
        const auto i = allDescs(in, nIn), o = allDescs(out, nOut);
        return as<Dynamic>(self).getWorkspaceSize(i.data(), nIn, o.data(), nOut);
    }
    static int32_t dynamicEnqueue(void *self, const headrace_desc *inDesc, int32_t nIn,
                                  const headrace_desc *outDesc, int32_t nOut, const void *const *in,
                                  void *const *out, void *scratch, void *stream) {
        const auto i = allDescs(inDesc, nIn), o = allDescs(outDesc, nOut);
        return as<Dynamic>(self).enqueue(i.data(), o.data(), in, out, scratch,
                                         static_cast<cudaStream_t>(stream));
    }

    static headrace_plugin_v2_calls table(int32_t generation) {
        headrace_plugin_v2_calls c = {};
        c.size = sizeof(c);
        c.class_name = &className<Plugin>;
        c.type = &type, c.version = &version;
        c.get_namespace = &getNamespace, c.set_namespace = &setNamespace;
        c.output_count = &outputCount, c.initialize = &initialize, c.terminate = &terminate;
        c.destroy = &destroy, c.clone = &clone;
        c.serialization_size = &serializationSize, c.serialize = &serialize;
        if (generation < HEADRACE_PLUGIN_V2_DYNAMIC_EXT) {
            c.output_dims = &outputDims, c.workspace = &workspace, c.enqueue = &enqueue;
            c.supports_format = &supportsFormat, c.configure_with_format = &configureWithFormat;
        }
        if (generation >= HEADRACE_PLUGIN_V2_EXT) {
            c.output_type = &outputType, c.output_broadcast = &outputBroadcast;
            c.input_broadcast = &inputBroadcast, c.configure_ext = &configureExt;
            c.attach = &attach, c.detach = &detach;
        }
        if (generation == HEADRACE_PLUGIN_V2_IO_EXT) {
            c.supports_combination = &supportsCombination<IOExt>;
            c.configure = &configureIO;
        }
        if (generation == HEADRACE_PLUGIN_V2_DYNAMIC_EXT) {
            c.supports_combination = &supportsCombination<Dynamic>;
            c.configure = &configureDynamic, c.output_exprs = &outputExprs;
            c.dynamic_workspace = &dynamicWorkspace, c.dynamic_enqueue = &dynamicEnqueue;
        }
        return c;
    }
};

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

#endif  // HEADRACE_TRT_PLUGIN_V2_CALLS_H
