// The host of the emulated program: it keeps the creators of plugins that libraries register, and
// asks headrace for builders. Libraries of TensorRT's own headers find it through foreign/, those
// of headrace's by its name.
#include "emulated/creators.h"

#include <algorithm>
#include <vector>

#include "core/readable.h"
#include "emulated/asking.h"
#include "emulated/expressions.h"
#include "foreign/known.h"
#include "foreign/registry.h"
#include "guard/crash.h"
#include "headrace/host_abi.h"
#include "stand_ins/stand_in.h"

namespace headrace::emulated {
namespace {

struct Creator {
    void *self;
    headrace_creator_calls calls;
};

std::vector<Creator> creators;
Handle registry{kRegistry};
std::vector<std::string> refused;

std::string text_of(const headrace_value &value) {
    return value.kind == HEADRACE_TEXT && value.data ? static_cast<const char *>(value.data) : "";
}

int32_t answer(headrace_object *object, const char *method, const headrace_value *arguments,
               int32_t count, headrace_value *result) {
    if (object && object->kind != headrace_object::kHost)
        return Expressions::answer(object, method, arguments, count, result);
    const std::string name = method;
    *result = {};
    if (name == "get_plugin_registry") {
        result->kind = HEADRACE_OBJECT, result->data = &registry;
        return 1;
    }
    result->kind = HEADRACE_BOOL;
    if (name == "register_creator" && count && arguments[0].kind == HEADRACE_PLUGINS_CREATOR) {
        creators.push_back({const_cast<void *>(arguments[0].data),
                            *static_cast<const headrace_creator_calls *>(arguments[0].extra)});
        result->number = 1;
        return 1;
    }
    if (name == "deregister_creator") return 1;  // the program ends with its library
    if (asks()) return ask_call(object, method, arguments, count, result);
    if ((name == "fail_foreign" || name == "refuse_foreign") && count == 2)
        refused.push_back(text_of(arguments[0]) + ": " + text_of(arguments[1]));
    result->kind = HEADRACE_NONE;
    return 0;
}

void *peer_of(const headrace_object *object) {
    if (!object || object->kind != headrace_object::kHost) return nullptr;
    return static_cast<const Handle *>(object)->peer;
}

const headrace_host host{
    sizeof(headrace_host),
    [](headrace_object *object, const char *method, const headrace_value *arguments, int32_t count,
       headrace_value *result) { return answer(object, method, arguments, count, result); },
    [](headrace_object *object, const char *name, headrace_value *result) -> int32_t {
        return ask_get(object, name, result);
    },
    [](headrace_object *object, const char *name, const headrace_value *value) -> int32_t {
        return ask_set(object, name, value);
    },
    [](headrace_object *object) { ask_release(object); },
    [](headrace_object *object) -> void * { return peer_of(object); },
    [](headrace_object *object, void *peer) {
        if (object && object->kind == headrace_object::kHost)
            static_cast<Handle *>(object)->peer = peer;
    },
    [](int32_t severity, const char *text) { ask_tell(severity, text); },
};

const char *or_empty(const char *text) { return text ? text : ""; }

}  // namespace

std::pair<void *, const headrace_creator_calls *> creator(uint32_t index) {
    const Creator &one = creators.at(index);
    return {one.self, &one.calls};
}

void serve_creators() { stand_ins::provide(&foreign::function); }

void tell_creators(Body &to) {
    to.add(static_cast<uint32_t>(creators.size()));
    for (const Creator &one : creators) {
        const foreign::Origin from = foreign::origin(*static_cast<void *const *>(one.self));
        to.text(core::readable(one.calls.class_name(one.self)))
            .text(std::string(or_empty(one.calls.name(one.self))))
            .text(std::string(or_empty(one.calls.version(one.self))))
            .text(std::string(or_empty(one.calls.get_namespace(one.self))))
            .add<uint32_t>(one.calls.generation == HEADRACE_PLUGIN_V3)
            .add(static_cast<uint32_t>(from.release));
        const headrace_fields *fields = one.calls.field_names(one.self);
        const int32_t count = fields && fields->fields ? std::max(fields->count, 0) : 0;
        to.add(static_cast<uint32_t>(count));
        for (int32_t i = 0; i < count; ++i)
            to.text(std::string(or_empty(fields->fields[i].name))).add(fields->fields[i].type);
    }
    to.add(static_cast<uint32_t>(refused.size()));
    for (const std::string &text : refused) to.text(text);
}

}  // namespace headrace::emulated

extern "C" __attribute__((visibility("default"))) const headrace_host *headrace_host_api_1(void) {
    return &headrace::emulated::host;
}
