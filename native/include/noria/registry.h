// The registry of plugin creators, and how a library's creators get into it.
//
// Part of noria, Apache-2.0. Valid C++11.
#ifndef NORIA_TRT_REGISTRY_H
#define NORIA_TRT_REGISTRY_H

#include "plugin_legacy.h"

namespace noria {
inline namespace NORIA_GENERATION {

struct CreatorCalls {
    using V2 = nvinfer1::IPluginCreator;
    using V3 = nvinfer1::IPluginCreatorV3One;
    using Fields = nvinfer1::PluginFieldCollection;

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
    static const noria_fields *fieldNames(void *self) {
        return reinterpret_cast<const noria_fields *>(as<T>(self)->getFieldNames());
    }
    static void createV2(void *self, const char *name, const noria_fields *fields, int32_t,
                         noria_plugin *made) {
        *made = describe(as<V2>(self)->createPlugin(name, reinterpret_cast<const Fields *>(fields)));
    }
    static void createV3(void *self, const char *name, const noria_fields *fields, int32_t phase,
                         noria_plugin *made) {
        *made = describe(as<V3>(self)->createPlugin(name, reinterpret_cast<const Fields *>(fields),
                                                    static_cast<nvinfer1::TensorRTPhase>(phase)));
    }
    static void deserialize(void *self, const char *name, const void *data, size_t size,
                            noria_plugin *made) {
        *made = describe(as<V2>(self)->deserializePlugin(name, data, size));
    }
    template <typename T>
    static noria_creator_calls common(int32_t generation) {
        noria_creator_calls c = {};
        c.size = sizeof(c);
        c.generation = generation;
        c.class_name = &className<T>;
        c.name = &name<T>, c.version = &version<T>, c.get_namespace = &getNamespace<T>;
        c.field_names = &fieldNames<T>;
        return c;
    }
    static noria_creator_calls table(V2 *) {
        noria_creator_calls c = common<V2>(NORIA_PLUGIN_V2);
        c.set_namespace = &setNamespace, c.create = &createV2, c.deserialize = &deserialize;
        return c;
    }
    static noria_creator_calls table(V3 *) {
        noria_creator_calls c = common<V3>(NORIA_PLUGIN_V3);
        c.create = &createV3;
        return c;
    }
};

template <typename T>
bool registerCreator(const Object *registry, T *creator, const char *text) {
    const noria_creator_calls calls = CreatorCalls::table(creator);
    return call<bool>(registry, "register_creator",
                      {Value::foreign(NORIA_PLUGINS_CREATOR, creator, &calls), text ? text : ""});
}

// Tells the host which library asks: only its own creators go to it as they are.
inline Value thisLibrary() {
    return Value::address(reinterpret_cast<const void *>(&CreatorCalls::setNamespace));
}

inline nvinfer1::IPluginCreator *creatorFrom(const noria_value &value) {
    if (value.kind == NORIA_PLUGINS_CREATOR)
        return static_cast<nvinfer1::IPluginCreator *>(const_cast<void *>(value.data));
    if (value.kind != NORIA_OBJECT) return nullptr;
    return standIn<HostCreator>(static_cast<noria_object *>(const_cast<void *>(value.data)));
}

// The creators of a registry, until the next call.
template <typename T>
static inline T *const *creatorList(const Object *registry, bool all, int32_t *count) {
    static Items<T *> list(0);
    const int32_t number = call<int32_t>(nullptr, "count_creators", {Value(registry), all});
    Items<T *> found(number);
    int32_t size = 0;
    for (int32_t i = 0; i < number; ++i) {
        nvinfer1::IPluginCreator *one = creatorFrom(
            callValue(nullptr, "creator_at", {Value(registry), all, i, thisLibrary()}));
        if (one) found[size++] = one;
    }
    list.swap(found);
    if (count) *count = size;
    return list.data();
}

}  // namespace NORIA_GENERATION
}  // namespace noria

namespace nvinfer1 {

inline noria_creator_calls IPluginCreator::noriaCalls(void **self) {
    *self = this;
    return noria::CreatorCalls::table(this);
}
inline noria_creator_calls IPluginCreatorV3One::noriaCalls(void **self) {
    *self = this;
    return noria::CreatorCalls::table(this);
}

class IPluginRegistry : public noria::Object {
public:
    using PluginLibraryHandle = void *;

    bool registerCreator(IPluginCreator &creator, const AsciiChar *pluginNamespace) {
        return noria::registerCreator(this, &creator, pluginNamespace);
    }
    bool registerCreator(IPluginCreatorInterface &creator, const AsciiChar *pluginNamespace) {
        const char *kind = creator.getInterfaceInfo().kind;
        if (std::strcmp(kind, "PLUGIN CREATOR_V3ONE") == 0)
            return noria::registerCreator(this, static_cast<IPluginCreatorV3One *>(&creator),
                                          pluginNamespace);
        if (std::strcmp(kind, "PLUGIN CREATOR_V1") == 0)
            return noria::registerCreator(this, static_cast<IPluginCreator *>(&creator),
                                          pluginNamespace);
        return false;
    }
    bool deregisterCreator(const IPluginCreator &creator) {
        return noria::call<bool>(this, "deregister_creator", {noria::Value::address(&creator)});
    }
    bool deregisterCreator(const IPluginCreatorInterface &creator) {
        return noria::call<bool>(this, "deregister_creator", {noria::Value::address(&creator)});
    }
    IPluginCreator *getPluginCreator(const AsciiChar *type, const AsciiChar *version,
                                     const AsciiChar *pluginNamespace = "") {
        return noria::creatorFrom(
            noria::callValue(this, "get_plugin_creator",
                             {type, version, pluginNamespace, noria::thisLibrary()}));
    }
    IPluginCreatorInterface *getCreator(const AsciiChar *type, const AsciiChar *version,
                                        const AsciiChar *pluginNamespace = "") {
        return noria::creatorFrom(noria::callValue(
            this, "get_creator", {type, version, pluginNamespace, noria::thisLibrary()}));
    }
    IPluginCreator *const *getPluginCreatorList(int32_t *numCreators) const {
        return noria::creatorList<IPluginCreator>(this, false, numCreators);
    }
    IPluginCreatorInterface *const *getAllCreators(int32_t *numCreators) const {
        return noria::creatorList<IPluginCreatorInterface>(this, true, numCreators);
    }
    bool isParentSearchEnabled() const {
        return noria::get<bool>(this, "parent_search_enabled");
    }
    void setParentSearchEnabled(bool enabled) {
        noria::set(this, "parent_search_enabled", enabled);
    }
    PluginLibraryHandle loadLibrary(const AsciiChar *pluginPath) {
        return noria::call<noria::Object *>(this, "load_library", {pluginPath});
    }
    // The creators of the library; the library itself stays loaded while plugins of it live.
    void deregisterLibrary(PluginLibraryHandle handle) {
        noria::call<bool>(this, "deregister_library", {static_cast<noria::Object *>(handle)});
    }
    void setErrorRecorder(IErrorRecorder *) {}
    IErrorRecorder *getErrorRecorder() const { return nullptr; }

    // Shared between all plugins of a process by their key; counted.
    IPluginResource *acquirePluginResource(const AsciiChar *key, IPluginResource *resource) {
        void *held = resourceOf(noria::callValue(nullptr, "resource_acquire", {key}));
        if (held || !resource) return static_cast<IPluginResource *>(held);
        IPluginResource *made = resource->clone();
        if (made)
            noria::call<void>(nullptr, "resource_keep", {key, noria::Value::address(made)});
        return made;
    }
    int32_t releasePluginResource(const AsciiChar *key) {
        const noria_value last = noria::callValue(nullptr, "resource_release", {key});
        if (last.kind == NORIA_ADDRESS && last.data)
            return static_cast<IPluginResource *>(const_cast<void *>(last.data))->release();
        return last.kind == NORIA_BOOL && last.number ? 0 : -1;
    }

private:
    IPluginRegistry() = delete;
    static void *resourceOf(const noria_value &value) {
        return value.kind == NORIA_ADDRESS ? const_cast<void *>(value.data) : nullptr;
    }
};

inline IPluginRegistry *noriaGetPluginRegistry() {
    return noria::call<IPluginRegistry *>(nullptr, "get_plugin_registry");
}

// Registers a creator while the library is loaded, and takes it back when it is unloaded.
template <typename T>
class PluginRegistrar {
public:
    PluginRegistrar() {
        IPluginRegistry *registry = noriaGetPluginRegistry();
        registered_ = registry && registry->registerCreator(instance_, "");
    }
    ~PluginRegistrar() {
        if (!registered_) return;
        if (IPluginRegistry *registry = noriaGetPluginRegistry())
            registry->deregisterCreator(instance_);
    }

private:
    T instance_{};
    bool registered_ = false;
};

}  // namespace nvinfer1

static inline nvinfer1::IPluginRegistry *getPluginRegistry() {
    return nvinfer1::noriaGetPluginRegistry();
}

namespace nvinfer1 {
static inline IPluginRegistry *getBuilderPluginRegistry(EngineCapability capability) {
    return capability == EngineCapability::kSTANDARD ? noriaGetPluginRegistry() : nullptr;
}
}  // namespace nvinfer1

#define REGISTER_TENSORRT_PLUGIN(name) \
    static nvinfer1::PluginRegistrar<name> pluginRegistrar##name {}

#endif  // NORIA_TRT_REGISTRY_H
