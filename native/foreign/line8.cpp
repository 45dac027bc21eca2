// Libraries of TensorRT 8.0 to 9.3.
#include "foreign/line8.h"

#include "foreign/faces.h"
#include "foreign/registry.h"

namespace headrace::foreign {
namespace {

class Registry final : public RegistryV2<Line8> {
public:
    bool registerCreator(void *creator, const char *name_space) override {
        try {
            auto *asked = static_cast<Line8::IPluginCreator *>(creator);
            if (expected_line() == 78 && asked && asked->getTensorRTVersion() < 8000)
                return add7(creator, name_space);
        } catch (...) {  // told below
        }
        return add(creator, name_space);
    }
};

}  // namespace

Exports exports8() { return {&logger_finder<Line8>, &Registry::add}; }

void *function8(const std::string &name) {
    if (void *made = kFaces8.function(name)) return made;
    return function_of<Line8, Registry>(name);
}

}  // namespace headrace::foreign
