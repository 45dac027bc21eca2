// How the host calls a creator of plugins: plain functions around its virtual ones.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_CREATOR_CALLS_H
#define HEADRACE_TRT_CREATOR_CALLS_H

#include "host_abi.h"

namespace headrace {

// `Of` has the classes V2 (IPluginCreator) and Fields, `class_name<T>(self)`, and
// `described(made)`: what a creator made, as the host is told of it.
template <typename Of>
struct CreatorCallsOf {
    using V2 = typename Of::V2;
    using Fields = typename Of::Fields;

    template <typename T>
    static T *as(void *self) {
        return static_cast<T *>(self);
    }
    template <typename T>
    static const char *name(void *self) {
        return as<T>(self)->getPluginName();
    }
    template <typename T>
    static const char *version(void *self) {
        return as<T>(self)->getPluginVersion();
    }
    template <typename T>
    static const char *getNamespace(void *self) {
        return as<T>(self)->getPluginNamespace();
    }
    static void setNamespace(void *self, const char *text) {
        as<V2>(self)->setPluginNamespace(text);
    }
    template <typename T>
    static const headrace_fields *fieldNames(void *self) {
        return reinterpret_cast<const headrace_fields *>(as<T>(self)->getFieldNames());
    }
    static void create(void *self, const char *name, const headrace_fields *fields, int32_t,
                       headrace_plugin *made) {
        *made = Of::described(
            as<V2>(self)->createPlugin(name, reinterpret_cast<const Fields *>(fields)));
    }
    static void deserialize(void *self, const char *name, const void *data, size_t size,
                            headrace_plugin *made) {
        *made = Of::described(as<V2>(self)->deserializePlugin(name, data, size));
    }
    template <typename T>
    static headrace_creator_calls common(int32_t generation) {
        headrace_creator_calls c = {};
        c.size = sizeof(c);
        c.generation = generation;
        c.class_name = &Of::template className<T>;
        c.name = &name<T>, c.version = &version<T>, c.get_namespace = &getNamespace<T>;
        c.field_names = &fieldNames<T>;
        return c;
    }
    static headrace_creator_calls v2() {
        headrace_creator_calls c = common<V2>(HEADRACE_PLUGIN_V2);
        c.set_namespace = &setNamespace, c.create = &create, c.deserialize = &deserialize;
        return c;
    }
};

// `Of` has V3 (IPluginCreatorV3One), Phase and `describedThird(made)` besides.
template <typename Of>
struct CreatorV3CallsOf {
    using V3 = typename Of::V3;
    using Fields = typename Of::Fields;

    static void create(void *self, const char *name, const headrace_fields *fields, int32_t phase,
                       headrace_plugin *made) {
        *made = Of::describedThird(
            static_cast<V3 *>(self)->createPlugin(name, reinterpret_cast<const Fields *>(fields),
                                                  static_cast<typename Of::Phase>(phase)));
    }
    static headrace_creator_calls v3() {
        headrace_creator_calls c = CreatorCallsOf<Of>::template common<V3>(HEADRACE_PLUGIN_V3);
        c.create = &create;
        return c;
    }
};

}  // namespace headrace

#endif  // HEADRACE_TRT_CREATOR_CALLS_H
