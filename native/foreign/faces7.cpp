// Builders, networks and engines for libraries of line 7.
#define NV_TENSORRT_MAJOR 7
#define HEADRACE_LINE Line7
#define HEADRACE_FACES "foreign/generated_faces7.h"
#define HEADRACE_FUNCTIONS function7
#include "foreign/line7.h"

#include "foreign/facing.h"

namespace headrace::foreign {

void *show7(const char *of_class, headrace_object *object) {
    return faces7::show_object(of_class, object);
}

void *maker7(const std::string &name) { return faces7::maker(name); }

}  // namespace headrace::foreign
