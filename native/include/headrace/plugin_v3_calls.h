// How the host calls a plugin of the third generation. Its faces are asked for before each access.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_PLUGIN_V3_CALLS_H
#define HEADRACE_TRT_PLUGIN_V3_CALLS_H

#include <cstring>

#include "plugin_v2_calls.h"
#include "plugin_v3.h"

namespace headrace {
inline namespace HEADRACE_GENERATION {

struct PluginV3Calls {
    using Plugin = nvinfer1::IPluginV3;
    using Core = nvinfer1::IPluginV3OneCore;
    using Build = nvinfer1::IPluginV3OneBuild;
    using Runtime = nvinfer1::IPluginV3OneRuntime;
    using Capability = nvinfer1::PluginCapabilityType;
    using Type = nvinfer1::DataType;
    using Exprs = Items<nvinfer1::DimsExprs>;

    static Plugin *plugin(void *self) { return static_cast<Plugin *>(self); }
    static Core *core(void *self) {
        return static_cast<Core *>(plugin(self)->getCapabilityInterface(Capability::kCORE));
    }
    static Build *build(void *self) {
        return static_cast<Build *>(plugin(self)->getCapabilityInterface(Capability::kBUILD));
    }
    static Runtime *runtime(void *self) {
        return static_cast<Runtime *>(plugin(self)->getCapabilityInterface(Capability::kRUNTIME));
    }

    static const char *name(void *self) { return core(self) ? core(self)->getPluginName() : ""; }
    static const char *version(void *self) {
        return core(self) ? core(self)->getPluginVersion() : "";
    }
    static const char *getNamespace(void *self) {
        return core(self) ? core(self)->getPluginNamespace() : "";
    }
    static void destroy(void *self) { delete plugin(self); }
    static void *clone(void *self) { return plugin(self)->clone(); }
    // 1 if it can be built, and 2 more if it cannot be run.
    static int32_t hasBuild(void *self) { return (build(self) ? 1 : 0) | (runtime(self) ? 0 : 2); }
    static int32_t outputCount(void *self) { return build(self)->getNbOutputs(); }
    static int32_t outputTypes(void *self, int32_t *out, int32_t nOut, const int32_t *in,
                               int32_t nIn) {
        const Items<Type> given = allTypes(in, nIn);
        Items<Type> made(nOut);  // FLOAT, which is 0
        const int32_t status =
            build(self)->getOutputDataTypes(made.data(), nOut, given.data(), nIn);
        for (int32_t i = 0; i < nOut; ++i) out[i] = static_cast<int32_t>(made[i]);
        return status;
    }
    static int32_t outputExprs(void *self, const headrace_exprs *in, int32_t nIn,
                               const headrace_exprs *shapeIn, int32_t nShape, headrace_exprs *out,
                               int32_t nOut, headrace_object *builder) {
        const Exprs inputs = allExprs(in, nIn), shapes = allExprs(shapeIn, nShape);
        Exprs made(nOut);
        const int32_t status = build(self)->getOutputShapes(
            inputs.data(), nIn, shapes.data(), nShape, made.data(), nOut,
            *reinterpret_cast<nvinfer1::IExprBuilder *>(builder));
        for (int32_t i = 0; i < nOut; ++i) out[i] = toHost(made[i]);
        return status;
    }
    static int32_t supportsCombination(void *self, int32_t pos, const headrace_desc *inOut,
                                       int32_t nIn, int32_t nOut) {
        const auto descs = allDynamicDescs(inOut, nIn + nOut);
        return build(self)->supportsFormatCombination(pos, descs.data(), nIn, nOut);
    }
    static int32_t configure(void *self, const headrace_desc *in, int32_t nIn,
                             const headrace_desc *out, int32_t nOut) {
        const auto i = allDynamicDescs(in, nIn), o = allDynamicDescs(out, nOut);
        return build(self)->configurePlugin(i.data(), nIn, o.data(), nOut);
    }
    static size_t workspace(void *self, const headrace_desc *in, int32_t nIn,
                            const headrace_desc *out, int32_t nOut) {
        const auto i = allDynamicDescs(in, nIn), o = allDynamicDescs(out, nOut);
        return build(self)->getWorkspaceSize(i.data(), nIn, o.data(), nOut);
    }
    static int32_t tacticCount(void *self) { return build(self)->getNbTactics(); }
    static int32_t tactics(void *self, int32_t *ids, int32_t n) {
        return build(self)->getValidTactics(ids, n);
    }
    static const char *timingCacheId(void *self) { return build(self)->getTimingCacheID(); }
    static int32_t formatLimit(void *self) { return build(self)->getFormatCombinationLimit(); }
    static const char *metadata(void *self) { return build(self)->getMetadataString(); }
    static int32_t aliasedInput(void *self, int32_t output) {
        Build *b = build(self);
        if (b->getInterfaceInfo().major < 2) return -2;
        return static_cast<nvinfer1::IPluginV3OneBuildV2 *>(b)->getAliasedInput(output);
    }

    static int32_t setTactic(void *self, int32_t tactic) {
        return runtime(self)->setTactic(tactic);
    }
    static int32_t onShapeChange(void *self, const headrace_desc *in, int32_t nIn,
                                 const headrace_desc *out, int32_t nOut) {
        const auto i = allDescs(in, nIn), o = allDescs(out, nOut);
        return runtime(self)->onShapeChange(i.data(), nIn, o.data(), nOut);
    }
    static int32_t enqueue(void *self, const headrace_desc *inDesc, int32_t nIn,
                           const headrace_desc *outDesc, int32_t nOut, const void *const *in,
                           void *const *out, void *scratch, void *stream) {
        const auto i = allDescs(inDesc, nIn), o = allDescs(outDesc, nOut);
        return runtime(self)->enqueue(i.data(), o.data(), in, out, scratch,
                                      static_cast<cudaStream_t>(stream));
    }
    static void *attach(void *self, headrace_object *context) {
        return runtime(self)->attachToContext(
            reinterpret_cast<nvinfer1::IPluginResourceContext *>(context));
    }
    static const headrace_fields *fieldsToSerialize(void *self) {
        return reinterpret_cast<const headrace_fields *>(runtime(self)->getFieldsToSerialize());
    }

    static headrace_plugin_v3_calls table() {
        headrace_plugin_v3_calls c = {};
        c.size = sizeof(c);
        c.class_name = &className<Plugin>;
        c.name = &name, c.version = &version, c.get_namespace = &getNamespace;
        c.destroy = &destroy, c.clone = &clone, c.has_build = &hasBuild;
        c.output_count = &outputCount, c.output_types = &outputTypes;
        c.output_exprs = &outputExprs, c.supports_combination = &supportsCombination;
        c.configure = &configure, c.workspace = &workspace;
        c.tactic_count = &tacticCount, c.tactics = &tactics;
        c.timing_cache_id = &timingCacheId, c.format_limit = &formatLimit;
        c.metadata = &metadata, c.aliased_input = &aliasedInput;
        c.set_tactic = &setTactic, c.on_shape_change = &onShapeChange, c.enqueue = &enqueue;
        c.attach = &attach, c.fields_to_serialize = &fieldsToSerialize;
        return c;
    }
};

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

#endif  // HEADRACE_TRT_PLUGIN_V3_CALLS_H
