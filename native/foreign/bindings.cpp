// What stand-ins for libnvinfer give to libraries that were compiled against TensorRT's headers.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "custom/library.h"
#include "foreign/known.h"
#include "foreign/registry.h"
#include "module.h"
#include "stand_ins/stand_in.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::foreign {
namespace {

// Registers the creators that getCreators or getPluginCreators of a library gives; how many.
int register_exported(const custom::SharedObject &library, int line) {
    const Exports exports = line == 11 ? exports11() : line == 10 ? exports10() : exports8();
    void *get = library.symbol("getCreators");
    if (!get) get = library.symbol("getPluginCreators");
    if (!get) return 0;
    nb::gil_scoped_release unlocked;
    if (void *set = library.symbol("setLoggerFinder"))
        reinterpret_cast<void (*)(void *)>(set)(exports.finder());
    int32_t count = 0, added = 0;
    void *const *list = reinterpret_cast<void *const *(*)(int32_t &)>(get)(count);
    for (int32_t i = 0; list && i < count; ++i) added += list[i] && exports.add(list[i], "");
    return added;
}

}  // namespace

void bind(nb::module_ &m) {
    m.def(
        "foreign_serve", [] { stand_ins::provide(&function); },
        "From now on, stand-ins of libnvinfer that are filled have the host's registry.");
    m.def(
        "foreign_expect", [](int line) { expected_line() = line; }, "line"_a,
        "The line of the library that this thread loads next, 78 if it is 7 or 8; 0 afterwards.");
    m.def("foreign_register_exported", &register_exported, "library"_a, "line"_a,
          "Register the creators that getCreators or getPluginCreators of a library gives.");
    m.def(
        "foreign_origin",
        [](uintptr_t address) {
            const Origin from = origin(reinterpret_cast<const void *>(address));
            return nb::make_tuple(from.line, from.release);
        },
        "address"_a,
        "(line, release) of the library of TensorRT's own headers that an address is in; zeros for "
        "any other. A release is packed as getTensorRTVersion has it, 0 where it is not told.");
    m.def("foreign_release_text", &release_text, "line"_a, "release"_a,
          "How a release is written: TensorRT 8.6.1 of 8601.");
}

}  // namespace headrace::foreign
