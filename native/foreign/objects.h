// The host's objects that compiled libraries of TensorRT hold: which pointer of theirs is which.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/host_abi.h"

namespace headrace::foreign {

// In the high byte of a V2 plugin's getTensorRTVersion: it stands for one of the host.
constexpr int32_t kHostPlugin = 0x7E;

// From now on `shown` is what libraries of a line know an object by. It is never freed: a late use
// is an error then, and not a crash.
void remember(void *shown, headrace_object *object, int line);
// What libraries of a line know an object by; null before `remember`.
void *shown_for(const headrace_object *object, int line);
// The object behind a pointer of a library. Throws std::invalid_argument for null, for one that was
// deleted, and for one that the host never gave.
headrace_object *object_behind(const void *shown);
// A library deletes an object: the host's is let go.
void release(void *shown) noexcept;

// Makes what libraries of a line know an object of the host by: an IBuilder, an IBuilderConfig, an
// INetworkDefinition. Throws std::invalid_argument for a line without builders.
void *show(int line, const char *of_class, headrace_object *object);

}  // namespace headrace::foreign
