#include "custom/library.h"

#include <dlfcn.h>
#include <pthread.h>

#include <map>
#include <new>
#include <stdexcept>

namespace headrace::custom {
namespace {

// Never freed: processes are forked until the end.
struct ImageLocks {
    std::mutex guard;
    std::map<void *, std::weak_ptr<std::mutex>> of;

    ImageLocks() {
        pthread_atfork([] { all().guard.lock(); }, [] { all().guard.unlock(); }, renew);
    }

    static ImageLocks &all() {
        static ImageLocks *const locks = new ImageLocks;
        return *locks;
    }

private:
    // In a forked process no thread is left that releases the locks of the others.
    static void renew() {
        for (auto &[handle, entry] : all().of)
            if (auto lock = entry.lock()) new (lock.get()) std::mutex;
        all().guard.unlock();
    }
};

std::shared_ptr<std::mutex> lock_of_image(void *handle) {
    ImageLocks &locks = ImageLocks::all();
    std::lock_guard<std::mutex> hold(locks.guard);
    auto &entry = locks.of[handle];
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
    const core::UnlockedForLoader unlocked;
    if (handle_) dlclose(handle_);
}

void *SharedObject::symbol(const std::string &name) const {
    const core::UnlockedForLoader unlocked;
    return dlsym(handle_, name.c_str());
}

}  // namespace headrace::custom
