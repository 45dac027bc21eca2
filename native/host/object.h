// Objects of the host as C++ libraries hold them: a handle around a Python object.
#pragma once
#include <nanobind/nanobind.h>

#include <list>
#include <set>
#include <string>
#include <vector>

#include "headrace/host_abi.h"

namespace headrace::hosting {

// Values of fields that a library reads; they live as long as the handle they were asked of.
struct FieldStore {
    std::vector<headrace_field> fields;
    std::list<std::string> texts;  // names and bytes; addresses stay
    headrace_fields view() const { return {static_cast<int32_t>(fields.size()), fields.data()}; }
    void add(const std::string &name, int32_t type, int32_t length, const std::string *bytes);
};

}  // namespace headrace::hosting

// All functions need the GIL. In no namespace: libraries know its name.
struct headrace_object {
    static constexpr uint64_t kAlive = 0x68656164724F626AULL;

    uint64_t magic = kAlive;
    nanobind::object object;
    uint64_t number = 0;          // handles are counted
    std::set<std::string> texts;  // every text it ever gave: sources keep pointers to names
    nanobind::object bytes;       // the last bytes it gave
    headrace::hosting::FieldStore store;
    headrace_fields fields{};
    void *peer = nullptr;

    // The handle of an object; the same one as long as it is not released.
    static headrace_object *of(nanobind::handle object);
    // A handle that nobody shares, for the time of a call.
    static headrace_object *alone(nanobind::handle object);
    // The object behind a handle. Throws std::invalid_argument for one that was deleted.
    static nanobind::object behind(const headrace_object *handle);

    static void release(headrace_object *handle);
    static uint64_t count();
    // Lets go of the objects of handles made since: their C++ pointers are dead.
    static void forget(uint64_t since);
};
