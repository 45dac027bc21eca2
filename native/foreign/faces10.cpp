// Builders, networks and engines for libraries of line 10.
#define NV_TENSORRT_MAJOR 10
#define HEADRACE_LINE Line10
#define HEADRACE_FACES "foreign/generated_faces10.h"
#define HEADRACE_FUNCTIONS function10
#include "foreign/line10.h"

#include "foreign/facing.h"

namespace headrace::foreign {

void *show10(const char *of_class, headrace_object *object) {
    return faces10::show_object(of_class, object);
}

void *maker10(const std::string &name) { return faces10::maker(name); }

}  // namespace headrace::foreign
