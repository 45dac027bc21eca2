// The registry of plugin creators, and how a library's creators get into it.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_REGISTRY_H
#define HEADRACE_TRT_REGISTRY_H

#include "callbacks.h"
#include "creator_calls.h"
#include "plugin_legacy.h"

namespace headrace {
inline namespace HEADRACE_GENERATION {

// The creators of this library, for CreatorCallsOf.
struct OwnCreators {
    using V2 = nvinfer1::IPluginCreator;
    using V3 = nvinfer1::IPluginCreatorV3One;
    using Fields = nvinfer1::PluginFieldCollection;
    using Phase = nvinfer1::TensorRTPhase;

    template <typename T>
    static const char *className(void *self) {
        return headrace::className<T>(self);
    }
    static headrace_plugin described(nvinfer1::IPluginV2 *made) { return describe(made); }
    static headrace_plugin describedThird(nvinfer1::IPluginV3 *made) { return describe(made); }
};

inline headrace_creator_calls callsOf(OwnCreators::V2 *) {
    return CreatorCallsOf<OwnCreators>::v2();
}
inline headrace_creator_calls callsOf(OwnCreators::V3 *) {
    return CreatorV3CallsOf<OwnCreators>::v3();
}

template <typename T>
bool registerCreator(const Object *registry, T *creator, const char *text) {
    const headrace_creator_calls calls = callsOf(creator);
    return call<bool>(
        registry, "register_creator",
        {Value::foreign(HEADRACE_PLUGINS_CREATOR, creator, &calls), text ? text : ""});
}

// Tells the host which library asks: only its own creators go to it as they are.
inline Value thisLibrary() {
    return Value::address(
        reinterpret_cast<const void *>(&CreatorCallsOf<OwnCreators>::setNamespace));
}

inline nvinfer1::IPluginCreator *creatorFrom(const headrace_value &value) {
    if (value.kind == HEADRACE_PLUGINS_CREATOR)
        return static_cast<nvinfer1::IPluginCreator *>(const_cast<void *>(value.data));
    if (value.kind != HEADRACE_OBJECT) return nullptr;
    return standIn<HostCreator>(static_cast<headrace_object *>(const_cast<void *>(value.data)));
}

// A plugin of third generation of the host, for sources that ask a layer for it.
class HostPluginV3 : public nvinfer1::IPluginV3 {
public:
    explicit HostPluginV3(headrace_object *) {}
    nvinfer1::IPluginCapability *getCapabilityInterface(nvinfer1::PluginCapabilityType) override {
        return nullptr;
    }
    nvinfer1::IPluginV3 *clone() override { return nullptr; }
};

template <typename T>
struct HostTwin;
template <>
struct HostTwin<nvinfer1::IPluginV2> {
    using Type = HostPlugin;
};
template <>
struct HostTwin<nvinfer1::IPluginV3> {
    using Type = HostPluginV3;
};

// The plugin of a layer: an object of this library as it is, of others what stands for it.
template <typename T>
T *pluginOf(const Object *layer) {
    const headrace_value value = callValue(nullptr, "plugin_of", {Value(layer), thisLibrary()});
    void *const data = const_cast<void *>(value.data);
    if (value.kind == HEADRACE_ADDRESS) return static_cast<T *>(data);
    return standIn<typename HostTwin<T>::Type>(static_cast<headrace_object *>(data));
}

enum : int32_t { kCREATORS_V2 = 0, kCREATORS = 1, kCREATORS_RECURSIVE = 2 };

// The creators of a registry, until the next call.
template <typename T>
static inline T *const *creatorList(const Object *registry, int32_t which, int32_t *count) {
    static Items<T *> list(0);
    const int32_t number = call<int32_t>(nullptr, "count_creators", {Value(registry), which});
    Items<T *> found(number);
    int32_t size = 0;
    for (int32_t i = 0; i < number; ++i) {
        nvinfer1::IPluginCreator *one = creatorFrom(
            callValue(nullptr, "creator_at", {Value(registry), which, i, thisLibrary()}));
        if (one) found[size++] = one;
    }
    list.swap(found);
    if (count) *count = size;
    return list.data();
}

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

namespace nvinfer1 {

inline headrace_creator_calls IPluginCreator::headraceCalls(void **self) {
    *self = this;
    return headrace::callsOf(this);
}
inline headrace_creator_calls IPluginCreatorV3One::headraceCalls(void **self) {
    *self = this;
    return headrace::callsOf(this);
}

class IPluginRegistry : public headrace::Object {
public:
    using PluginLibraryHandle = void *;

    bool registerCreator(IPluginCreator &creator, const AsciiChar *pluginNamespace) {
        return headrace::registerCreator(this, &creator, pluginNamespace);
    }
    bool registerCreator(IPluginCreatorInterface &creator, const AsciiChar *pluginNamespace) {
        const char *kind = creator.getInterfaceInfo().kind;
        if (std::strcmp(kind, "PLUGIN CREATOR_V3ONE") == 0)
            return headrace::registerCreator(this, static_cast<IPluginCreatorV3One *>(&creator),
                                             pluginNamespace);
        if (std::strcmp(kind, "PLUGIN CREATOR_V1") == 0)
            return headrace::registerCreator(this, static_cast<IPluginCreator *>(&creator),
                                             pluginNamespace);
        return false;
    }
    HEADRACE_CALL(bool, deregisterCreator(const IPluginCreator &creator), "deregister_creator",
                  headrace::Value::address(&creator))
    HEADRACE_CALL(bool, deregisterCreator(const IPluginCreatorInterface &creator),
                  "deregister_creator", headrace::Value::address(&creator))
    IPluginCreator *getPluginCreator(const AsciiChar *type, const AsciiChar *version,
                                     const AsciiChar *pluginNamespace = "") {
        return headrace::creatorFrom(headrace::callValue(
            this, "get_plugin_creator", {type, version, pluginNamespace, headrace::thisLibrary()}));
    }
    IPluginCreatorInterface *getCreator(const AsciiChar *type, const AsciiChar *version,
                                        const AsciiChar *pluginNamespace = "") {
        return headrace::creatorFrom(headrace::callValue(
            this, "get_creator", {type, version, pluginNamespace, headrace::thisLibrary()}));
    }
    IPluginCreator *const *getPluginCreatorList(int32_t *numCreators) const {
        return headrace::creatorList<IPluginCreator>(this, headrace::kCREATORS_V2, numCreators);
    }
    IPluginCreatorInterface *const *getAllCreators(int32_t *numCreators) const {
        return headrace::creatorList<IPluginCreatorInterface>(this, headrace::kCREATORS,
                                                              numCreators);
    }
    // Those of the registries in front of this one, too.
    IPluginCreatorInterface *const *getAllCreatorsRecursive(int32_t *numCreators) {
        return headrace::creatorList<IPluginCreatorInterface>(this, headrace::kCREATORS_RECURSIVE,
                                                              numCreators);
    }
    bool isParentSearchEnabled() const {
        return headrace::get<bool>(this, "parent_search_enabled");
    }
    void setParentSearchEnabled(bool enabled) {
        headrace::set(this, "parent_search_enabled", enabled);
    }
    PluginLibraryHandle loadLibrary(const AsciiChar *pluginPath) {
        return headrace::call<headrace::Object *>(this, "load_library", {pluginPath});
    }
    // The creators of the library; the library itself stays loaded while plugins of it live.
    void deregisterLibrary(PluginLibraryHandle handle) {
        headrace::call<bool>(this, "deregister_library", {static_cast<headrace::Object *>(handle)});
    }
    HEADRACE_RECORDER

    // Shared between all plugins of a process by their key; counted.
    IPluginResource *acquirePluginResource(const AsciiChar *key, IPluginResource *resource) {
        void *held = resourceOf(headrace::callValue(nullptr, "resource_acquire", {key}));
        if (held || !resource) return static_cast<IPluginResource *>(held);
        IPluginResource *made = resource->clone();
        if (made)
            headrace::call<void>(nullptr, "resource_keep", {key, headrace::Value::address(made)});
        return made;
    }
    int32_t releasePluginResource(const AsciiChar *key) {
        const headrace_value last = headrace::callValue(nullptr, "resource_release", {key});
        if (last.kind == HEADRACE_ADDRESS && last.data)
            return static_cast<IPluginResource *>(const_cast<void *>(last.data))->release();
        return last.kind == HEADRACE_BOOL && last.number ? 0 : -1;
    }

private:
    IPluginRegistry() = delete;
    static void *resourceOf(const headrace_value &value) {
        return value.kind == HEADRACE_ADDRESS ? const_cast<void *>(value.data) : nullptr;
    }
};

inline IPluginRegistry *headraceGetPluginRegistry() {
    return headrace::call<IPluginRegistry *>(nullptr, "get_plugin_registry");
}

// Registers a creator while the library is loaded, and takes it back when it is unloaded.
template <typename T>
class PluginRegistrar {
public:
    PluginRegistrar() {
        IPluginRegistry *registry = headraceGetPluginRegistry();
        registered_ = registry && registry->registerCreator(instance_, "");
    }
    ~PluginRegistrar() {
        if (!registered_) return;
        if (IPluginRegistry *registry = headraceGetPluginRegistry())
            registry->deregisterCreator(instance_);
    }

private:
    T instance_{};
    bool registered_ = false;
};

}  // namespace nvinfer1

static inline nvinfer1::IPluginRegistry *getPluginRegistry() {
    return nvinfer1::headraceGetPluginRegistry();
}

namespace nvinfer1 {
static inline IPluginRegistry *getBuilderPluginRegistry(EngineCapability capability) {
    return capability == EngineCapability::kSTANDARD ? headraceGetPluginRegistry() : nullptr;
}
}  // namespace nvinfer1

// The logger of the program that loads the library, as TensorRT's own function of that name.
static inline nvinfer1::ILogger *getLogger() { return headrace::programLogger(); }

#define REGISTER_TENSORRT_PLUGIN(name) \
    static nvinfer1::PluginRegistrar<name> pluginRegistrar##name {}

#endif  // HEADRACE_TRT_REGISTRY_H
