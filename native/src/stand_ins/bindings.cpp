// Python face of what stands in for libraries that are not installed.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <typeinfo>

#include "module.h"
#include "stand_ins/stand_in.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::stand_ins {
namespace {

struct Plain {};

}  // namespace

void bind(nb::module_ &m) {
    nb::exception<MissingFunctionError> missing_function(m, "MissingFunctionError");
    m.def("stand_in_target", &target_of, "function"_a, "library"_a,
          "Address of what a stand-in's function jumps to; 0 where there are no stand-ins.");
    m.def("stand_in_calls", &take_notes,
          "(function, library) of calls that were answered with 0 since the last time.");
    // The word that every type_info of a class without bases begins with.
    m.def("class_type_info", [] { return *reinterpret_cast<const uintptr_t *>(&typeid(Plain)); });
}

}  // namespace headrace::stand_ins
