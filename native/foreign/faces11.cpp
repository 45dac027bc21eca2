// Builders, networks and engines for libraries of line 11.
#define NV_TENSORRT_MAJOR 11
#define HEADRACE_LINE Line11
#define HEADRACE_FACES "foreign/generated_faces11.h"
#define HEADRACE_FUNCTIONS function11
#include "foreign/line11.h"

#include "foreign/facing.h"

namespace headrace::foreign {

void *show11(const char *of_class, headrace_object *object) {
    return faces11::show_object(of_class, object);
}

void *maker11(const std::string &name) { return faces11::maker(name); }

}  // namespace headrace::foreign
