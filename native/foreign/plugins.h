// How the host calls a plugin of the V2 line that was compiled against TensorRT's own headers.
#pragma once

#include "foreign/expressions.h"

namespace headrace::foreign {

template <typename L>
struct PluginV2Calls {
    using Plugin = typename L::IPluginV2;
    using Ext = typename L::IPluginV2Ext;
    using IOExt = typename L::IPluginV2IOExt;
    using Dynamic = typename L::IPluginV2DynamicExt;
    using Dims = typename L::Dims;

    template <typename T>
    static T &as(void *self) {
        return *static_cast<T *>(self);
    }
    static const char *type(void *self) { return as<Plugin>(self).getPluginType(); }
    static const char *version(void *self) { return as<Plugin>(self).getPluginVersion(); }
    static const char *get_namespace(void *self) { return as<Plugin>(self).getPluginNamespace(); }
    static void set_namespace(void *self, const char *value) {
        as<Plugin>(self).setPluginNamespace(value);
    }
    static int32_t output_count(void *self) { return as<Plugin>(self).getNbOutputs(); }
    static int32_t initialize(void *self) { return as<Plugin>(self).initialize(); }
    static void terminate(void *self) { as<Plugin>(self).terminate(); }
    static void destroy(void *self) { as<Plugin>(self).destroy(); }
    static void *clone(void *self) { return as<Plugin>(self).clone(); }
    static size_t serialization_size(void *self) { return as<Plugin>(self).getSerializationSize(); }
    static void serialize(void *self, void *buffer) { as<Plugin>(self).serialize(buffer); }

    static void output_dims(void *self, int32_t index, const headrace_dims *in, int32_t n,
                            headrace_dims *out) {
        const auto dims = all_dims<L>(in, n);
        *out = to_host<L>(as<Plugin>(self).getOutputDimensions(index, dims.data(), n));
    }
    static int32_t supports_format(void *self, int32_t type, int32_t format) {
        return as<Plugin>(self).supportsFormat(type, format);
    }
    static void configure_with_format(void *self, const headrace_dims *in, int32_t n_in,
                                      const headrace_dims *out, int32_t n_out, int32_t type,
                                      int32_t format, int32_t max_batch) {
        const auto i = all_dims<L>(in, n_in), o = all_dims<L>(out, n_out);
        as<Plugin>(self).configureWithFormat(i.data(), n_in, o.data(), n_out, type, format,
                                             max_batch);
    }
    static size_t workspace(void *self, int32_t max_batch) {
        return as<Plugin>(self).getWorkspaceSize(max_batch);
    }
    static int32_t enqueue(void *self, int32_t batch, const void *const *in, void *const *out,
                           void *scratch, void *stream) {
        return as<Plugin>(self).enqueue(batch, in, const_cast<void **>(out), scratch, stream);
    }

    static int32_t output_type(void *self, int32_t index, const int32_t *types, int32_t n) {
        return as<Ext>(self).getOutputDataType(index, types, n);
    }
    // From line 11 on no plugin is asked: nothing is broadcast.
    static int32_t output_broadcast(void *self, int32_t index, const uint8_t *broadcast,
                                    int32_t n) {
        if constexpr (L::number < 11)
            return as<Ext>(self).isOutputBroadcastAcrossBatch(
                index, reinterpret_cast<const bool *>(broadcast), n);
        return 0;
    }
    static int32_t input_broadcast(void *self, int32_t index) {
        if constexpr (L::number < 11) return as<Ext>(self).canBroadcastInputAcrossBatch(index);
        return 0;
    }
    static void configure_ext(void *self, const headrace_desc *in, int32_t n_in,
                              const headrace_desc *out, int32_t n_out, const uint8_t *in_broadcast,
                              const uint8_t *out_broadcast, int32_t format, int32_t max_batch) {
        std::vector<Dims> i, o;
        std::vector<int32_t> type_in, type_out;
        for (int32_t k = 0; k < n_in; ++k) {
            i.push_back(from_host<L>(in[k].dims));
            type_in.push_back(in[k].type);
        }
        for (int32_t k = 0; k < n_out; ++k) {
            o.push_back(from_host<L>(out[k].dims));
            type_out.push_back(out[k].type);
        }
        as<Ext>(self).configurePlugin(i.data(), n_in, o.data(), n_out, type_in.data(),
                                      type_out.data(), reinterpret_cast<const bool *>(in_broadcast),
                                      reinterpret_cast<const bool *>(out_broadcast), format,
                                      max_batch);
    }
    static void attach(void *self, void *cudnn, void *cublas, void *allocator) {
        as<Ext>(self).attachToContext(cudnn, cublas, allocator);
    }
    static void detach(void *self) { as<Ext>(self).detachFromContext(); }

    template <typename T>
    static int32_t supports_combination(void *self, int32_t pos, const headrace_desc *in_out,
                                        int32_t n_in, int32_t n_out) {
        const auto descs = all_descs<L>(in_out, n_in + n_out);
        return as<T>(self).supportsFormatCombination(pos, descs.data(), n_in, n_out);
    }
    static void configure_io(void *self, const headrace_desc *in, int32_t n_in,
                             const headrace_desc *out, int32_t n_out) {
        const auto i = all_descs<L>(in, n_in), o = all_descs<L>(out, n_out);
        as<IOExt>(self).configurePlugin(i.data(), n_in, o.data(), n_out);
    }
    static void configure_dynamic(void *self, const headrace_desc *in, int32_t n_in,
                                  const headrace_desc *out, int32_t n_out) {
        const auto i = all_dynamic_descs<L>(in, n_in), o = all_dynamic_descs<L>(out, n_out);
        as<Dynamic>(self).configurePlugin(i.data(), n_in, o.data(), n_out);
    }
    static void output_exprs(void *self, int32_t index, const headrace_exprs *in, int32_t n,
                             headrace_object *builder, headrace_exprs *out) {
        Expressions<L> all(builder);
        const auto exprs = all.lend(in, n);
        *out =
            all.taken(as<Dynamic>(self).getOutputDimensions(index, exprs.data(), n, all.builder()),
                      "getOutputDimensions");
    }
    static size_t dynamic_workspace(void *self, const headrace_desc *in, int32_t n_in,
                                    const headrace_desc *out, int32_t n_out) {
        const auto i = all_descs<L>(in, n_in), o = all_descs<L>(out, n_out);
        return as<Dynamic>(self).getWorkspaceSize(i.data(), n_in, o.data(), n_out);
    }
    static int32_t dynamic_enqueue(void *self, const headrace_desc *in_desc, int32_t n_in,
                                   const headrace_desc *out_desc, int32_t n_out,
                                   const void *const *in, void *const *out, void *scratch,
                                   void *stream) {
        const auto i = all_descs<L>(in_desc, n_in), o = all_descs<L>(out_desc, n_out);
        return as<Dynamic>(self).enqueue(i.data(), o.data(), in, out, scratch, stream);
    }

    static headrace_plugin_v2_calls table(int32_t generation) {
        headrace_plugin_v2_calls c{};
        c.size = sizeof(c);
        c.class_name = &foreign::class_name;
        c.type = &type, c.version = &version;
        c.get_namespace = &get_namespace, c.set_namespace = &set_namespace;
        c.output_count = &output_count, c.initialize = &initialize, c.terminate = &terminate;
        c.destroy = &destroy, c.clone = &clone;
        c.serialization_size = &serialization_size, c.serialize = &serialize;
        if (generation < HEADRACE_PLUGIN_V2_DYNAMIC_EXT) {
            c.output_dims = &output_dims, c.workspace = &workspace, c.enqueue = &enqueue;
            c.supports_format = &supports_format;
            c.configure_with_format = &configure_with_format;
        }
        if (generation >= HEADRACE_PLUGIN_V2_EXT) {
            c.output_type = &output_type, c.output_broadcast = &output_broadcast;
            c.input_broadcast = &input_broadcast, c.configure_ext = &configure_ext;
            c.attach = &attach, c.detach = &detach;
        }
        if (generation == HEADRACE_PLUGIN_V2_IO_EXT) {
            c.supports_combination = &supports_combination<IOExt>;
            c.configure = &configure_io;
        }
        if (generation == HEADRACE_PLUGIN_V2_DYNAMIC_EXT) {
            c.supports_combination = &supports_combination<Dynamic>;
            c.configure = &configure_dynamic, c.output_exprs = &output_exprs;
            c.dynamic_workspace = &dynamic_workspace, c.dynamic_enqueue = &dynamic_enqueue;
        }
        return c;
    }
};

}  // namespace headrace::foreign
