// Creators of plugins that libraries register in the emulated program.
#pragma once

#include "emulated/messages.h"

namespace headrace::emulated {

// From now on stand-ins of libnvinfer have a registry that keeps creators.
void serve_creators();

// Writes names and fields of the creators that are registered, and what was refused.
void tell_creators(Body &to);

}  // namespace headrace::emulated
