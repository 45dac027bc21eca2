#include "custom_library_shared_object.h"

#include <dlfcn.h>

#include <map>
#include <stdexcept>

namespace {

std::shared_ptr<std::mutex> lock_of_image(void *handle) {
    static std::mutex guard;
    static std::map<void *, std::weak_ptr<std::mutex>> locks;
    std::lock_guard<std::mutex> hold(guard);
    auto &entry = locks[handle];
    auto lock = entry.lock();
    if (!lock) {
        lock = std::make_shared<std::mutex>();
        entry = lock;
    }
    return lock;
}

}  // namespace

SharedObject::SharedObject(const std::string &path) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) {
        const char *why = dlerror();
        throw std::runtime_error(why ? why : "dlopen failed without a reason");
    }
    call_lock_ = lock_of_image(handle_);
}

SharedObject::~SharedObject() {
    if (handle_) dlclose(handle_);
}

void *SharedObject::symbol(const std::string &name) const { return dlsym(handle_, name.c_str()); }
