// Libraries of TensorRT 5.1 to 7.2.
#include "foreign/line7.h"

#include "foreign/faces.h"
#include "foreign/registry.h"

namespace headrace::foreign {

bool add7(void *creator, const char *name_space) noexcept {
    return RegistryV2<Line7>::add(creator, name_space);
}

void *function7(const std::string &name) {
    if (void *made = kFaces7.function(name)) return made;
    return function_of<Line7, RegistryV2<Line7>>(name);
}

}  // namespace headrace::foreign
