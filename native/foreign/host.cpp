#include "foreign/host.h"

#include <cstdio>
#include <stdexcept>
#include <string>

#include "foreign/known.h"
#include "foreign/refused.h"
#include "guard/crash.h"

namespace headrace::foreign {

headrace_value number(int64_t value) {
    headrace_value v{};
    v.kind = HEADRACE_INT, v.number = value;
    return v;
}

headrace_value text(const char *value) {
    headrace_value v{};
    v.kind = value ? HEADRACE_TEXT : HEADRACE_NONE, v.data = value;
    return v;
}

headrace_value object(headrace_object *value) { return pointer(HEADRACE_OBJECT, value, nullptr); }

headrace_value enumerator(const char *type, int64_t value) {
    headrace_value v{};
    v.kind = HEADRACE_ENUM, v.number = value, v.extra = type;
    return v;
}

headrace_value pointer(int32_t kind, const void *self, const void *calls) {
    headrace_value v{};
    v.kind = self ? kind : static_cast<int32_t>(HEADRACE_NONE), v.data = self, v.extra = calls;
    return v;
}

headrace_value call(headrace_object *target, const char *method,
                    std::initializer_list<headrace_value> arguments) noexcept {
    headrace_value result{};
    headrace_host_api_1()->call(target, method, arguments.begin(),
                                static_cast<int32_t>(arguments.size()), &result);
    return result;
}

headrace_object *as_object(const headrace_value &value) {
    if (value.kind != HEADRACE_OBJECT) return nullptr;
    return static_cast<headrace_object *>(const_cast<void *>(value.data));
}

void tell(int32_t severity, const char *message) noexcept {
    headrace_host_api_1()->tell(severity, message);
}

void fail(const char *function, const char *why) noexcept {
    guard::set_refused(function);
    call(nullptr, "fail_foreign", {text(function), text(why)});
}

void thrown(const char *of_class, const char *function) noexcept {
    const std::string name = std::string(of_class) + "::" + function;
    try {
        throw;
    } catch (const std::exception &error) {
        fail(name.c_str(), error.what());
    } catch (...) {
        fail(name.c_str(), "it threw something of no standard class");
    }
}

void refuse_number(int number) {
    throw std::invalid_argument("it was given a number that means nothing here: " +
                                std::to_string(number));
}

void refuse_axes(int axes) {
    throw std::invalid_argument("it was given dimensions of " + std::to_string(axes) + " axes");
}

void null_answer(const char *of_class, const char *function) noexcept {
    char said[200];
    std::snprintf(said, sizeof said, "%s::%s of %s", of_class, function, last_release());
    guard::set_refused(said);
}

void refused(const char *of_class, const char *function) noexcept {
    null_answer(of_class, function);
    call(nullptr, "refuse_foreign", {text(of_class), text(function)});
}

}  // namespace headrace::foreign
