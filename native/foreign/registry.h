// The registry of plugin creators, as libraries of a line know it, and what else they ask by name.
#pragma once

#include <map>
#include <mutex>

#include "foreign/creators.h"
#include "foreign/faces.h"

namespace headrace::foreign {

// The kind that an interface of lines 10 and 11 says it is of.
inline bool says(const char *kind, const char *wanted) {
    return kind && std::strcmp(kind, wanted) == 0;
}

template <typename L>
class RegistryBase : public L::IPluginRegistry {
public:
    void setErrorRecorder(void *recorder) override { recorder_ = recorder; }
    void *getErrorRecorder() override { return recorder_; }
    bool isParentSearchEnabled() { return true; }
    void setParentSearchEnabled(bool) {}
    void *loadLibrary(const char *path) { return as_object(ask("load_library", {text(path)})); }
    void deregisterLibrary(void *handle) {
        if (handle) ask("deregister_library", {object(static_cast<headrace_object *>(handle))});
    }

    // Registers a creator of the V2 line.
    static bool add(void *creator, const char *name_space) noexcept {
        if (!creator) return false;
        try {
            using Creator = typename L::IPluginCreator;
            int32_t release = 0;
            auto *asked = static_cast<Creator *>(creator);
            if constexpr (L::number < 10) {
                release = asked->getTensorRTVersion();
                // of lines 10 and 11 the language, 0, stands there, then the interface's kind
                const char *const second = release ? nullptr : asked->getPluginName();
                if (second && std::strncmp(second, "PLUGIN CREATOR_", 15) == 0) release = 100000;
            } else {
                const int language = asked->getAPILanguage();
                release = language >= 1000 ? language : 0;
            }
            require_line(L::number, release, "its creator");
            if constexpr (L::number >= 10) release = 0;
            return take({creator, L::number, release, false}, CreatorCalls<L>::v2(), name_space);
        } catch (const std::exception &error) {
            fail("registerCreator", error.what());
        } catch (...) {
            fail("registerCreator", "the creator threw something of no standard class");
        }
        return false;
    }

    // Registers a creator by the kind that it says: lines 10 and 11.
    static bool add_by_kind(void *creator, const char *name_space) noexcept {
        if (!creator) return false;
        try {
            using Interface = typename L::IPluginCreatorInterface;
            const char *const kind = static_cast<Interface *>(creator)->getInterfaceInfo().kind;
            if (says(kind, "PLUGIN CREATOR_V1")) return add(creator, name_space);
            if (says(kind, "PLUGIN CREATOR_V3ONE"))
                return take({creator, L::number, 0, true}, CreatorV3Calls<L>::v3(), name_space);
            const std::string said = kind ? kind : "null";
            fail("registerCreator", ("creators of kind " + said + " are not known").c_str());
        } catch (const std::exception &error) {
            fail("registerCreator", error.what());
        } catch (...) {
            fail("registerCreator", "the creator threw something of no standard class");
        }
        return false;
    }

protected:
    static headrace_value ask(const char *method,
                              std::initializer_list<headrace_value> arguments) noexcept {
        headrace_object *registry = as_object(call(nullptr, "get_plugin_registry", {}));
        return registry ? call(registry, method, arguments) : headrace_value{};
    }
    // The creator itself if a library of this line registered it, the caller's own before others;
    // else what stands for one of the host; or null, which the host tells of.
    static void *find(const char *name, const char *version, const char *name_space, bool third,
                      const void *caller) noexcept {
        if (!name) return nullptr;
        try {
            for (const Registered &one : registered(L::number, caller)) {
                if (one.third && !third) continue;
                const auto &calls = calls_of(one);
                if (same(calls.name(one.creator), name) &&
                    same(calls.version(one.creator), version ? version : "") &&
                    same(calls.get_namespace(one.creator), name_space ? name_space : ""))
                    return one.creator;
            }
            return faces_of(L::number).creator(name, version, name_space);
        } catch (...) {
            fail("getPluginCreator", "a creator threw");
        }
        return nullptr;
    }
    // A list that stays as it is until the next question.
    void *const *list(int *count, bool third, const void *caller) noexcept {
        try {
            std::lock_guard<std::mutex> hold(lock_);
            listed_.clear();
            for (const Registered &one : registered(L::number, caller))
                if (third || !one.third) listed_.push_back(one.creator);
            if (count) *count = static_cast<int>(listed_.size());
            return listed_.data();
        } catch (...) {
            if (count) *count = 0;
            return nullptr;
        }
    }

private:
    static bool same(const char *a, const char *b) { return a && std::strcmp(a, b) == 0; }
    static headrace_creator_calls calls_of(const Registered &one) {
        if constexpr (L::number >= 10)
            if (one.third) return CreatorV3Calls<L>::v3();
        return CreatorCalls<L>::v2();
    }
    void *recorder_ = nullptr;
    std::mutex lock_;
    std::vector<void *> listed_;
};

// Lines 7 and 8, and the half of 10 that they have in common.
template <typename L>
class RegistryV2 : public RegistryBase<L> {
public:
    bool registerCreator(void *creator, const char *name_space) override {
        return this->add(creator, name_space);
    }
    void *const *getPluginCreatorList(int *count) override {
        return this->list(count, false, __builtin_return_address(0));
    }
    void *getPluginCreator(const char *name, const char *version, const char *space) override {
        return this->find(name, version, space, false, __builtin_return_address(0));
    }
    bool deregisterCreator(const void *creator) { return give_back(creator); }
};

// Resources that plugins share by a key, with the number of their holders.
template <typename L>
class Resources {
public:
    void *acquire(const char *key, void *resource) noexcept {
        if (!key) return nullptr;
        try {
            std::lock_guard<std::mutex> hold(lock_);
            auto known = held_.find(key);
            if (known == held_.end()) {
                if (!resource) return nullptr;
                void *copy = static_cast<typename L::IPluginResource *>(resource)->clone();
                if (!copy) return nullptr;
                known = held_.emplace(key, Held{copy, 0}).first;
            }
            ++known->second.holders;
            return known->second.resource;
        } catch (...) {
            fail("acquirePluginResource", "the resource's clone threw");
            return nullptr;
        }
    }
    int release(const char *key) noexcept {
        if (!key) return -1;
        try {
            std::lock_guard<std::mutex> hold(lock_);
            const auto known = held_.find(key);
            if (known == held_.end()) return -1;
            if (--known->second.holders) return 0;
            void *gone = known->second.resource;
            held_.erase(known);
            return static_cast<typename L::IPluginResource *>(gone)->release();
        } catch (...) {
            fail("releasePluginResource", "the resource's release threw");
            return -1;
        }
    }

private:
    struct Held {
        void *resource;
        int holders;
    };
    std::mutex lock_;
    std::map<std::string, Held> held_;
};

// What libnvinfer exports for a line.
template <typename L>
struct LoggerFace final : L::ILogger {
    void log(int severity, const char *message) override { tell(severity, message); }
};

template <typename L>
void *logger() {
    static auto *one = new LoggerFace<L>;  // libraries keep it
    return static_cast<typename L::ILogger *>(one);
}

template <typename L>
void *logger_finder() {
    struct Finder final : L::ILoggerFinder {
        void *findLogger() override { return logger<L>(); }
    };
    static auto *one = new Finder;  // libraries keep it
    return static_cast<typename L::ILoggerFinder *>(one);
}

// What libraries of a line that export a list of creators are given, and how one is registered.
struct Exports {
    void *(*finder)();
    bool (*add)(void *creator, const char *name_space);
};
Exports exports8();
Exports exports10();
Exports exports11();

// Registers a creator of line 7 through the registry of line 8, which has the same place for that.
bool add7(void *creator, const char *name_space) noexcept;

// A function of a library of TensorRT, as stand-ins ask for it; null for others.
void *function(const std::string &name, const std::string &library);

// The functions of a line by their names; null for others.
void *function7(const std::string &name);
void *function8(const std::string &name);
void *function10(const std::string &name);
void *function11(const std::string &name);

template <typename L, typename Registry>
void *function_of(const std::string &name) {
    static auto *registry = new Registry;  // libraries keep it
    using Get = void *(*)();
    if (name == "getPluginRegistry")
        return reinterpret_cast<void *>(static_cast<Get>([] {
            return static_cast<void *>(static_cast<typename L::IPluginRegistry *>(registry));
        }));
    if (name == "getBuilderPluginRegistry")
        return reinterpret_cast<void *>(static_cast<void *(*)(int)>([](int capability) {
            return capability
                       ? nullptr
                       : static_cast<void *>(static_cast<typename L::IPluginRegistry *>(registry));
        }));
    if (name == "getLogger") return reinterpret_cast<void *>(&logger<L>);
    if (name == "getInferLibVersion")
        return reinterpret_cast<void *>(static_cast<int (*)()>([] { return L::newest; }));
    if (name == "initLibNvInferPlugins")
        return reinterpret_cast<void *>(
            static_cast<bool (*)(void *, const char *)>([](void *, const char *name_space) {
                const headrace_value done =
                    call(nullptr, "init_libnvinfer_plugins", {text(name_space ? name_space : "")});
                return done.kind == HEADRACE_BOOL && done.number != 0;
            }));
    return nullptr;
}

}  // namespace headrace::foreign
