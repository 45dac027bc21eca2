// Libraries of TensorRT 5.1 to 7.2.
#include "foreign/line7.h"

#include "foreign/registry.h"

namespace headrace::foreign {

void *function7(const std::string &name) {
    using Version = int (*)();
    return function_of<Line7, RegistryV2<Line7>>(
        name, reinterpret_cast<void *>(static_cast<Version>([] { return 7201; })));
}

}  // namespace headrace::foreign
