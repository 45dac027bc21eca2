// How the host calls a plugin creator that was compiled against TensorRT's own headers.
#pragma once

#include <cstring>

#include "foreign/known.h"
#include "foreign/objects.h"
#include "foreign/plugins.h"
#include "foreign/plugins_v3.h"
#include "headrace/creator_calls.h"

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

// The creators of a line, for CreatorCallsOf.
template <typename L>
struct Creators {
    using V2 = typename L::IPluginCreator;
    using Fields = typename L::PluginFieldCollection;

    template <typename>
    static const char *className(void *self) {
        return class_name(self);
    }
    static headrace_plugin described(void *made) { return foreign::described<L>(made); }
};
template <typename L>
struct CreatorsV3 : Creators<L> {
    using V3 = typename L::IPluginCreatorV3One;
    using Phase = int32_t;

    static headrace_plugin describedThird(void *made) {
        headrace_plugin out{};
        out.self = made;
        out.generation = made ? HEADRACE_PLUGIN_V3 : HEADRACE_PLUGIN_NONE;
        out.v3 = PluginV3Calls<L>::table();
        return out;
    }
};
template <typename L>
using CreatorCalls = CreatorCallsOf<Creators<L>>;
template <typename L>
using CreatorV3Calls = CreatorV3CallsOf<CreatorsV3<L>>;

}  // namespace headrace::foreign
