// Builders, networks, engines and standard plugins of a line, for what is of no line itself.
#pragma once

#include <string>

#include "headrace/host_abi.h"

namespace headrace::foreign {

struct Faces {
    // What libraries of the line know an object of the host by; null for a class without a face.
    void *(*show)(const char *of_class, headrace_object *object);
    // createInferBuilder_INTERNAL, createReorgPlugin and others; null for another name.
    void *(*function)(const std::string &name);
    // What stands for a creator of the host; null without one, which the host tells of.
    void *(*creator)(const char *name, const char *version, const char *name_space);
};
extern const Faces kFaces7, kFaces8, kFaces10, kFaces11;

inline const Faces &faces_of(int line) {
    return line == 7 ? kFaces7 : line == 8 ? kFaces8 : line == 10 ? kFaces10 : kFaces11;
}

}  // namespace headrace::foreign
