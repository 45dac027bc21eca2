// Builders, networks and engines for libraries of line 8.
#define NV_TENSORRT_MAJOR 8
#define HEADRACE_LINE Line8
#define HEADRACE_FACES "foreign/generated_faces8.h"
#define HEADRACE_FUNCTIONS function8
#include "foreign/line8.h"

#include "foreign/facing.h"

namespace headrace::foreign {

void *show8(const char *of_class, headrace_object *object) {
    return faces8::show_object(of_class, object);
}

void *maker8(const std::string &name) { return faces8::maker(name); }

}  // namespace headrace::foreign
