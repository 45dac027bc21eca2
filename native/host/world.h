// Python's side of the host: one object whose methods answer what C++ libraries call.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>

#include "host/object.h"

namespace headrace::hosting {

// The object set by set_world; throws std::runtime_error if there is none.
nanobind::object world();
void set_world(nanobind::object object);

// Tells the world why a call of a library failed: the exception that is being handled.
void tell_failure(const char *what) noexcept;

// Makes headrace_host_api_1 of this module known to libraries that are opened from now on.
void show_host_to_libraries();

// Whether Python can be called: not while the process ends.
bool python_is_there();

// Values of a call, in and out. `owner` keeps what a result points to.
nanobind::object to_python(const headrace_value &value);
headrace_value from_python(nanobind::handle value, headrace_object *owner);

// Fields as a list of (name, type, length, bytes or None), and back.
nanobind::list fields_to_python(const headrace_fields *fields);
void fields_from_python(nanobind::handle fields, FieldStore &store);

// A plugin that a library made or passed; `owned` ones are destroyed with their wrapper.
nanobind::object plugin_to_python(const headrace_plugin &plugin, bool owned,
                                  const std::shared_ptr<void> &keeper = {});

}  // namespace headrace::hosting
