#include "host/object.h"

#include <memory>
#include <stdexcept>
#include <unordered_map>

namespace nb = nanobind;

namespace headrace::hosting {
namespace {

// Handles are never given back to the heap while their pointer may still be known to a library: a
// late use is an error then, and not a crash.
struct Handles {
    std::unordered_map<PyObject *, headrace_object *> alive;
    std::vector<std::unique_ptr<headrace_object>> all;
    uint64_t made = 0;
};

Handles &handles() {
    static auto *one = new Handles;  // outlives the interpreter
    return *one;
}

void let_go(headrace_object &handle) {
    const auto known = handles().alive.find(handle.object.ptr());
    if (known != handles().alive.end() && known->second == &handle) handles().alive.erase(known);
    handle.magic = 0;
    handle.object.reset();
    handle.bytes.reset();
}

}  // namespace

void FieldStore::add(const std::string &name, int32_t type, int32_t length,
                     const std::string *bytes) {
    texts.push_back(name);
    const char *text = texts.back().c_str();
    const void *data = nullptr;
    if (bytes) {
        texts.push_back(*bytes);
        data = texts.back().data();
    }
    fields.push_back(headrace_field{text, data, type, length});
}

}  // namespace headrace::hosting

using headrace::hosting::handles;
using headrace::hosting::let_go;

headrace_object *headrace_object::of(nb::handle object) {
    auto &known = handles().alive[object.ptr()];
    if (!known) {
        handles().all.push_back(std::make_unique<headrace_object>());
        known = handles().all.back().get();
        known->object = nb::borrow(object);
        known->number = ++handles().made;
    }
    return known;
}

headrace_object *headrace_object::alone(nb::handle object) {
    auto *handle = new headrace_object;
    handle->object = nb::borrow(object);
    return handle;
}

nb::object headrace_object::behind(const headrace_object *handle) {
    if (handle->magic != kAlive)
        throw std::invalid_argument("an object of the builder was used after it was deleted");
    return handle->object;
}

void headrace_object::release(headrace_object *handle) {
    if (handle->magic == kAlive) let_go(*handle);
}

uint64_t headrace_object::count() { return handles().made; }

void headrace_object::forget(uint64_t since) {
    for (auto &handle : handles().all)
        if (handle->number > since && handle->magic == kAlive) let_go(*handle);
}
