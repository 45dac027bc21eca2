// Python face of the custom-library host: what all functions of a library have in common.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cxxabi.h>

#include <cstdlib>

#include "custom_library_tensors.h"
#include "module.h"
#include "unlocked.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

std::string demangle(const std::string &name) {
    int status = 0;
    std::unique_ptr<char, void (*)(void *)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
    return text ? text.get() : name;
}

bool call_initializer(InputInitializer &function, const nb::list &tensors,
                      const std::vector<int> &data_types, unsigned int width, unsigned int height,
                      unsigned int channels, unsigned int max_batch) {
    BoundTensors bound(function, tensors, data_types);
    Unlocked unlocked;
    return function.call(NvDsInferNetworkInfo{width, height, channels}, max_batch);
}

}  // namespace

void bind_custom_library(nb::module_ &m) {
    nb::exception<CustomCodeError>(m, "CustomCodeError");
    nb::exception<CustomResultError>(m, "CustomResultError");

    nb::class_<SharedObject>(m, "SharedObject", "A shared object opened with RTLD_NOW | RTLD_LOCAL.")
        .def(nb::init<const std::string &>(), "path"_a, nb::call_guard<Unlocked>())
        .def_prop_ro("handle", &SharedObject::handle)
        .def("has", [](const SharedObject &self, const std::string &name) {
            return self.symbol(name) != nullptr;
        });

    nb::class_<CustomFunction>(m, "CustomFunction", "A function of a custom library.")
        .def("set_layers", &CustomFunction::set_layers, "names"_a, "bindings"_a,
             "inputs"_a = false);

    nb::class_<InputInitializer, CustomFunction>(m, "InputInitializer",
                                                 "NvDsInferInitializeInputLayers of a library.")
        .def(nb::init<std::shared_ptr<SharedObject>, const std::string &>(), "library"_a, "name"_a)
        .def("call", &call_initializer, "tensors"_a, "data_types"_a, "width"_a, "height"_a,
             "channels"_a, "max_batch"_a,
             "What the function said. The tensors are the first entries of batches to fill.");

    bind_custom_library_detector(m);
    bind_custom_library_items(m);

    m.def("demangle", &demangle, "name"_a, "The C++ name behind a linker symbol.");
}
