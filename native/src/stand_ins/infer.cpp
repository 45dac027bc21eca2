// What stands in for libnvinfer while a library is loaded.

#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <mutex>

#include "stand_ins/stand_in.h"

namespace headrace::stand_ins {
namespace {

struct Registered {
    void **creator;  // an object: its first word is its vtable
    std::string name_space;
    bool v3;
};

std::mutex lock;
std::vector<Registered> registered;

// A registry by hand: places in its vtable matter, its class is of a library that is not there.
// Place 0 takes creators since 7.2, place 12 those of IPluginCreatorInterface since 10.
using Slot = uintptr_t (*)();

uintptr_t nothing() { return 0; }

bool keep(void *creator, const char *name_space, bool v3) {
    if (!creator) return false;
    std::lock_guard<std::mutex> hold(lock);
    registered.push_back({static_cast<void **>(creator), name_space ? name_space : "", v3});
    return true;
}

bool register_creator(void *, void *creator, const char *name_space) {
    return keep(creator, name_space, false);
}

bool register_interface(void *, void *creator, const char *name_space) {
    return keep(creator, name_space, true);
}

struct Registry {
    const Slot *vtable;
};

constexpr size_t kSlots = 64;  // the real one has fewer than 24
Slot vtable[kSlots];
Registry registry{vtable};

void *get_plugin_registry() {
    refuse_in_scope("getPluginRegistry");
    static std::once_flag once;
    std::call_once(once, [] {
        std::fill(std::begin(vtable), std::end(vtable), &nothing);
        vtable[0] = reinterpret_cast<Slot>(&register_creator);
        vtable[12] = reinterpret_cast<Slot>(&register_interface);
    });
    return &registry;
}

const char *text_at(void **creator, size_t slot) {
    using Getter = const char *(*)(void *);
    auto functions = static_cast<void **>(*creator);
    const char *text = reinterpret_cast<Getter>(functions[slot])(static_cast<void *>(creator));
    return text ? text : "";
}

}  // namespace

std::vector<std::tuple<std::string, std::string, std::string>> creators_registered(
    bool version_10) {
    std::lock_guard<std::mutex> hold(lock);
    std::vector<std::tuple<std::string, std::string, std::string>> found;
    for (const Registered &one : registered) {
        Dl_info image;
        if (!dladdr(static_cast<void *>(one.creator), &image))
            continue;  // its library was unloaded
        const size_t name = !version_10 ? 1 : one.v3 ? 6 : 4;
        found.emplace_back(text_at(one.creator, name), text_at(one.creator, name + 1),
                           one.name_space);
    }
    return found;
}

void *infer_stand_in(const std::string &function) {
    if (function == "getPluginRegistry") return reinterpret_cast<void *>(&get_plugin_registry);
    return nullptr;
}

}  // namespace headrace::stand_ins
