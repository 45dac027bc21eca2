// Libraries of TensorRT 11.
#include "foreign/line11.h"

#include "foreign/faces.h"
#include "foreign/registry.h"

namespace headrace::foreign {
namespace {

class Registry final : public RegistryBase<Line11> {
public:
    bool registerCreator(void *creator, const char *name_space) override {
        return add_by_kind(creator, name_space);
    }
    void *const *getAllCreators(int *count) override {
        return list(count, true, __builtin_return_address(0));
    }
    void *const *getAllCreatorsRecursive(int *count) override {
        return list(count, true, __builtin_return_address(0));
    }
    void *getCreator(const char *name, const char *version, const char *space) override {
        return find(name, version, space, true, __builtin_return_address(0));
    }
    bool deregisterCreator(const void *creator) override { return give_back(creator); }
    void *acquirePluginResource(const char *key, void *resource) override {
        return resources_.acquire(key, resource);
    }
    int releasePluginResource(const char *key) override { return resources_.release(key); }

private:
    Resources<Line11> resources_;
};

}  // namespace

Exports exports11() { return {&logger_finder<Line11>, &Registry::add_by_kind}; }

void *function11(const std::string &name) {
    if (void *made = kFaces11.function(name)) return made;
    using Version = int (*)();
    if (name == "getInferLibMajorVersion")
        return reinterpret_cast<void *>(static_cast<Version>([] { return 11; }));
    if (name == "getInferLibMinorVersion")
        return reinterpret_cast<void *>(static_cast<Version>([] { return 1; }));
    if (name == "getInferLibPatchVersion" || name == "getInferLibBuildVersion")
        return reinterpret_cast<void *>(static_cast<Version>([] { return 0; }));
    return function_of<Line11, Registry>(name);
}

}  // namespace headrace::foreign
