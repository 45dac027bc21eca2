// The table behind headrace_host_api_1: everything a library can ask.
#include <dlfcn.h>

#include <mutex>

#include "host/foreign.h"
#include "host/world.h"

namespace nb = nanobind;

namespace headrace::hosting {
namespace {

// Results of functions that belong to no object.
headrace_object *functions() {
    static headrace_object *one = headrace_object::alone(nb::none());
    return one;
}

template <typename Body>
int32_t answered(const char *what, Body body) {
    if (!python_is_there()) return 0;
    nb::gil_scoped_acquire gil;
    try {
        body();
        return 1;
    } catch (...) {
        tell_failure(what);
        return 0;
    }
}

int32_t call(headrace_object *object, const char *method, const headrace_value *arguments,
             int32_t count, headrace_value *result) {
    return answered(method, [&] {
        const nb::object target = object ? headrace_object::behind(object) : nb::none();
        // the bytes of an object do not change: their address stays good between two questions
        if (object && object->bytes.is_valid() && std::string_view(method) == "__bytes__") {
            *result = from_python(nb::object(object->bytes), object);
            return;
        }
        nb::list given;
        for (int32_t i = 0; i < count; ++i) given.append(to_python(arguments[i]));
        const nb::object answer = world().attr("call")(target, method, given);
        *result = from_python(answer, object ? object : functions());
    });
}

int32_t get(headrace_object *object, const char *name, headrace_value *result) {
    return answered(name, [&] {
        const nb::object target = object ? headrace_object::behind(object) : nb::none();
        *result = from_python(world().attr("get")(target, name), object ? object : functions());
    });
}

int32_t set(headrace_object *object, const char *name, const headrace_value *value) {
    return answered(name, [&] {
        const nb::object target = object ? headrace_object::behind(object) : nb::none();
        world().attr("set")(target, name, to_python(*value));
    });
}

void release(headrace_object *object) {
    answered("release", [&] { headrace_object::release(object); });
}

void *peer(headrace_object *object) { return object->peer; }

void set_peer(headrace_object *object, void *peer) { object->peer = peer; }

void tell(int32_t severity, const char *text) {
    answered("tell", [&] { world().attr("tell")(severity, text); });
}

const headrace_host kHost = {sizeof(headrace_host), call, get, set, release, peer, set_peer, tell};

}  // namespace

extern "C" __attribute__((visibility("default"))) const headrace_host *headrace_host_api_1(void) {
    return &kHost;
}

void show_host_to_libraries() {
    static std::once_flag once;
    std::call_once(once, [] {
        // Python loads modules for themselves; libraries look for the host among what is global.
        Dl_info here{};
        if (dladdr(reinterpret_cast<void *>(&headrace_host_api_1), &here) && here.dli_fname)
            dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    });
}

}  // namespace headrace::hosting
