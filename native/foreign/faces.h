// Builders, networks and engines of a line, for what is of no line itself.
#pragma once

#include <string>

#include "headrace/host_abi.h"

namespace headrace::foreign {

// What libraries of a line know an object of the host by; null for a class that has no face.
void *show7(const char *of_class, headrace_object *object);
void *show8(const char *of_class, headrace_object *object);
void *show10(const char *of_class, headrace_object *object);
void *show11(const char *of_class, headrace_object *object);

// createInferBuilder_INTERNAL and others of a line; null for another name.
void *maker7(const std::string &name);
void *maker8(const std::string &name);
void *maker10(const std::string &name);
void *maker11(const std::string &name);

}  // namespace headrace::foreign
