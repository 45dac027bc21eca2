// How the host calls an IPluginV3 that was compiled against TensorRT's own headers: lines 10
// and 11. Its faces are asked for before each access: they are other bases of the object.
#pragma once

#include "foreign/expressions.h"

namespace headrace::foreign {

template <typename L>
struct PluginV3Calls {
    using Plugin = typename L::IPluginV3;
    using Core = typename L::IPluginV3OneCore;
    using Build = typename L::IPluginV3OneBuild;
    using BuildV2 = typename L::IPluginV3OneBuild_v2;
    using Runtime = typename L::IPluginV3OneRuntime;
    enum Capability : int { kCORE = 0, kBUILD = 1, kRUNTIME = 2 };

    // What attachToContext is given: a context without allocator and recorder, which the library
    // may keep as long as its plugin.
    struct Context final : L::IPluginResourceContext {
        void *getGpuAllocator() override { return nullptr; }
        void *getErrorRecorder() override { return nullptr; }
    };

    static Plugin &plugin(void *self) { return *static_cast<Plugin *>(self); }
    template <typename T>
    static T *face(void *self, Capability capability) {
        return static_cast<T *>(plugin(self).getCapabilityInterface(capability));
    }
    template <typename T>
    static T &required(void *self, Capability capability, const char *name) {
        T *found = face<T>(self, capability);
        if (!found)
            throw std::invalid_argument(std::string("getCapabilityInterface(") + name +
                                        ") returned null");
        return *found;
    }
    static Build &build(void *self) { return required<Build>(self, kBUILD, "kBUILD"); }
    static Runtime &runtime(void *self) { return required<Runtime>(self, kRUNTIME, "kRUNTIME"); }

    static const char *name(void *self) {
        Core *core = face<Core>(self, kCORE);
        return core ? core->getPluginName() : "";
    }
    static const char *version(void *self) {
        Core *core = face<Core>(self, kCORE);
        return core ? core->getPluginVersion() : "";
    }
    static const char *get_namespace(void *self) {
        Core *core = face<Core>(self, kCORE);
        return core ? core->getPluginNamespace() : "";
    }
    static void destroy(void *self) { plugin(self).deleting(); }
    static void *clone(void *self) { return plugin(self).clone(); }
    static int32_t has_build(void *self) {
        return (face<Build>(self, kBUILD) ? 1 : 0) | (face<Runtime>(self, kRUNTIME) ? 0 : 2);
    }
    static int32_t output_count(void *self) { return build(self).getNbOutputs(); }
    static int32_t output_types(void *self, int32_t *out, int32_t n_out, const int32_t *in,
                                int32_t n_in) {
        for (int32_t i = 0; i < n_out; ++i) out[i] = 0;  // FLOAT
        return build(self).getOutputDataTypes(out, n_out, in, n_in);
    }
    static int32_t output_exprs(void *self, const headrace_exprs *in, int32_t n_in,
                                const headrace_exprs *shape_in, int32_t n_shape,
                                headrace_exprs *out, int32_t n_out, headrace_object *builder) {
        Expressions<L> all(builder);
        const auto inputs = all.lend(in, n_in), shapes = all.lend(shape_in, n_shape);
        std::vector<typename L::DimsExprs> made(static_cast<size_t>(n_out));
        const int32_t status = build(self).getOutputShapes(
            inputs.data(), n_in, shapes.data(), n_shape, made.data(), n_out, all.builder());
        for (int32_t i = 0; i < n_out; ++i)
            out[i] = all.taken(made[static_cast<size_t>(i)], "getOutputShapes");
        return status;
    }
    static int32_t supports_combination(void *self, int32_t pos, const headrace_desc *in_out,
                                        int32_t n_in, int32_t n_out) {
        const auto descs = all_dynamic_descs<L>(in_out, n_in + n_out);
        return build(self).supportsFormatCombination(pos, descs.data(), n_in, n_out);
    }
    static int32_t configure(void *self, const headrace_desc *in, int32_t n_in,
                             const headrace_desc *out, int32_t n_out) {
        const auto i = all_dynamic_descs<L>(in, n_in), o = all_dynamic_descs<L>(out, n_out);
        return build(self).configurePlugin(i.data(), n_in, o.data(), n_out);
    }
    static size_t workspace(void *self, const headrace_desc *in, int32_t n_in,
                            const headrace_desc *out, int32_t n_out) {
        const auto i = all_dynamic_descs<L>(in, n_in), o = all_dynamic_descs<L>(out, n_out);
        return build(self).getWorkspaceSize(i.data(), n_in, o.data(), n_out);
    }
    static int32_t tactic_count(void *self) { return build(self).getNbTactics(); }
    static int32_t tactics(void *self, int32_t *ids, int32_t n) {
        return build(self).getValidTactics(ids, n);
    }
    static const char *timing_cache_id(void *self) { return build(self).getTimingCacheID(); }
    static int32_t format_limit(void *self) { return build(self).getFormatCombinationLimit(); }
    static const char *metadata(void *self) { return build(self).getMetadataString(); }
    static int32_t aliased_input(void *self, int32_t output) {
        Build &b = build(self);
        if (b.getInterfaceInfo().major < 2) return -2;
        return static_cast<BuildV2 &>(b).getAliasedInput(output);
    }
    static int32_t set_tactic(void *self, int32_t tactic) {
        return runtime(self).setTactic(tactic);
    }
    static int32_t on_shape_change(void *self, const headrace_desc *in, int32_t n_in,
                                   const headrace_desc *out, int32_t n_out) {
        const auto i = all_descs<L>(in, n_in), o = all_descs<L>(out, n_out);
        return runtime(self).onShapeChange(i.data(), n_in, o.data(), n_out);
    }
    static int32_t enqueue(void *self, const headrace_desc *in_desc, int32_t n_in,
                           const headrace_desc *out_desc, int32_t n_out, const void *const *in,
                           void *const *out, void *scratch, void *stream) {
        const auto i = all_descs<L>(in_desc, n_in), o = all_descs<L>(out_desc, n_out);
        return runtime(self).enqueue(i.data(), o.data(), in, out, scratch, stream);
    }
    static void *attach(void *self, headrace_object *) {
        static Context context;
        return runtime(self).attachToContext(
            static_cast<typename L::IPluginResourceContext *>(&context));
    }
    static const headrace_fields *fields_to_serialize(void *self) {
        return reinterpret_cast<const headrace_fields *>(runtime(self).getFieldsToSerialize());
    }

    static headrace_plugin_v3_calls table() {
        headrace_plugin_v3_calls c{};
        c.size = sizeof(c);
        c.class_name = &foreign::class_name;
        c.name = &name, c.version = &version, c.get_namespace = &get_namespace;
        c.destroy = &destroy, c.clone = &clone, c.has_build = &has_build;
        c.output_count = &output_count, c.output_types = &output_types;
        c.output_exprs = &output_exprs, c.supports_combination = &supports_combination;
        c.configure = &configure, c.workspace = &workspace;
        c.tactic_count = &tactic_count, c.tactics = &tactics;
        c.timing_cache_id = &timing_cache_id, c.format_limit = &format_limit;
        c.metadata = &metadata, c.aliased_input = &aliased_input;
        c.set_tactic = &set_tactic, c.on_shape_change = &on_shape_change, c.enqueue = &enqueue;
        c.attach = &attach, c.fields_to_serialize = &fields_to_serialize;
        return c;
    }
};

}  // namespace headrace::foreign
