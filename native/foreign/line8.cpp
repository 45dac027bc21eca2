// Libraries of TensorRT 8.0 to 9.3.
#include "foreign/line8.h"

#include "foreign/registry.h"

namespace headrace::foreign {

void *function8(const std::string &name) {
    using Version = int (*)();
    return function_of<Line8, RegistryV2<Line8>>(
        name, reinterpret_cast<void *>(static_cast<Version>([] { return 9300; })));
}

}  // namespace headrace::foreign
