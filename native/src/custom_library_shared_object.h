// A user's shared object, open for as long as something of it may be called.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

class SharedObject {
public:
    // Opens with RTLD_NOW | RTLD_LOCAL: an unresolved symbol is an error here rather than the end
    // of the process inside a static initialiser. Throws std::runtime_error with dlerror's text.
    explicit SharedObject(const std::string &path);
    ~SharedObject();
    SharedObject(const SharedObject &) = delete;
    SharedObject &operator=(const SharedObject &) = delete;

    // What dlopen gave; good as long as this object lives.
    uintptr_t handle() const { return reinterpret_cast<uintptr_t>(handle_); }

    // Address of an exported symbol, or null.
    void *symbol(const std::string &name) const;

    // One lock per loaded image, however often the file was opened: existing parsers keep state in
    // function statics and were written for one call at a time.
    std::mutex &call_lock() const { return *call_lock_; }

private:
    void *handle_ = nullptr;
    std::shared_ptr<std::mutex> call_lock_;
};
