// How the host calls a plugin creator that was compiled against TensorRT's own headers.
#pragma once

#include <cstring>

#include "foreign/known.h"
#include "foreign/objects.h"
#include "foreign/plugins.h"
#include "foreign/plugins_v3.h"

namespace headrace::foreign {

// A plugin of the V2 line as the host is told of it. Throws std::invalid_argument for one of
// another line: its functions have other places.
template <typename L>
headrace_plugin described(void *plugin) {
    headrace_plugin out{};
    out.generation = HEADRACE_PLUGIN_NONE;
    if (!plugin) return out;
    const int32_t version = static_cast<typename L::IPluginV2 *>(plugin)->getTensorRTVersion();
    const int32_t release = version & 0xFFFFFF;
    require_line(L::number, release, "its plugin's getTensorRTVersion");
    note_release(plugin, release);
    out.generation = (version >> 24) & 0xFF;
    if (out.generation == kHostPlugin) {
        out.generation = HEADRACE_PLUGIN_OF_HOST;
        out.object = object_behind(plugin);
        return out;
    }
    out.self = plugin;
    out.v2 = PluginV2Calls<L>::table(out.generation);
    return out;
}

template <typename L>
struct CreatorCalls {
    using V2 = typename L::IPluginCreator;
    using Fields = typename L::PluginFieldCollection;

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
    static const char *get_namespace(void *self) {
        return as<T>(self)->getPluginNamespace();
    }
    static void set_namespace(void *self, const char *value) {
        as<V2>(self)->setPluginNamespace(value);
    }
    template <typename T>
    static const headrace_fields *field_names(void *self) {
        return reinterpret_cast<const headrace_fields *>(as<T>(self)->getFieldNames());
    }
    static void create(void *self, const char *name, const headrace_fields *fields, int32_t,
                       headrace_plugin *made) {
        *made = described<L>(
            as<V2>(self)->createPlugin(name, reinterpret_cast<const Fields *>(fields)));
    }
    static void deserialize(void *self, const char *name, const void *data, size_t size,
                            headrace_plugin *made) {
        *made = described<L>(as<V2>(self)->deserializePlugin(name, data, size));
    }
    template <typename T>
    static headrace_creator_calls common(int32_t generation) {
        headrace_creator_calls c{};
        c.size = sizeof(c);
        c.generation = generation;
        c.class_name = &foreign::class_name;
        c.name = &name<T>, c.version = &version<T>, c.get_namespace = &get_namespace<T>;
        c.field_names = &field_names<T>;
        return c;
    }
    static headrace_creator_calls v2() {
        headrace_creator_calls c = common<V2>(HEADRACE_PLUGIN_V2);
        c.set_namespace = &set_namespace, c.create = &create, c.deserialize = &deserialize;
        return c;
    }
};

template <typename L>
struct CreatorV3Calls {
    using V3 = typename L::IPluginCreatorV3One;
    using Fields = typename L::PluginFieldCollection;

    static void create(void *self, const char *name, const headrace_fields *fields, int32_t phase,
                       headrace_plugin *made) {
        *made = {};
        made->self = static_cast<V3 *>(self)->createPlugin(
            name, reinterpret_cast<const Fields *>(fields), phase);
        made->generation = made->self ? HEADRACE_PLUGIN_V3 : HEADRACE_PLUGIN_NONE;
        made->v3 = PluginV3Calls<L>::table();
    }
    static headrace_creator_calls v3() {
        headrace_creator_calls c = CreatorCalls<L>::template common<V3>(HEADRACE_PLUGIN_V3);
        c.create = &create;
        return c;
    }
};

}  // namespace headrace::foreign
