// Creators of plugins that libraries register in the emulated program.
#pragma once

#include <utility>

#include "emulated/messages.h"
#include "headrace/host_abi.h"

namespace headrace::emulated {

// From now on stand-ins of libnvinfer have a registry that keeps creators.
void serve_creators();

// The creator of that index, as they are told, and the calls into it.
std::pair<void *, const headrace_creator_calls *> creator(uint32_t index);

// Writes names and fields of the creators that are registered, and what was refused.
void tell_creators(Body &to);

}  // namespace headrace::emulated
