// The host as the faces for compiled libraries of TensorRT call it. Nothing here throws: the inline
// code of those libraries is noexcept, so what left it would end the process. Reasons are told to
// the host, which keeps them for the error of the call that was under way.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "headrace/host_abi.h"

namespace headrace::foreign {

headrace_value number(int64_t value);
headrace_value text(const char *value);
headrace_value object(headrace_object *value);
headrace_value enumerator(const char *type, int64_t value);
headrace_value pointer(int32_t kind, const void *self, const void *calls);

// Calls a method of an object of the host, of null a function; the result's kind is HEADRACE_NONE
// where it failed.
headrace_value call(headrace_object *target, const char *method,
                    std::initializer_list<headrace_value> arguments) noexcept;

headrace_object *as_object(const headrace_value &value);

// Tells the host that a function failed, and why.
void fail(const char *function, const char *why) noexcept;

// The same of the exception that is being handled.
void thrown(const char *of_class, const char *function) noexcept;

[[noreturn]] void refuse_number(int number);
[[noreturn]] void refuse_axes(int axes);

// Severity is that of ILogger: 0 internal error, 1 error, 2 warning, 3 info, 4 verbose.
void tell(int32_t severity, const char *message) noexcept;

}  // namespace headrace::foreign
