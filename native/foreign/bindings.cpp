// What stand-ins for libnvinfer give to libraries that were compiled against TensorRT's headers.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>

#include "custom/library.h"
#include "foreign/known.h"
#include "foreign/registry.h"
#include "module.h"
#include "stand_ins/stand_in.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::foreign {
namespace {

// The line of a library's name, libnvinfer.so.8 or libnvinfer_plugin.so.10.3; 0 for any other.
// By hand: templates of std::regex are shared with every other library of the process, and those of
// another compiler's standard library crash here.
int line_of(const std::string &soname) {
    const size_t dot = soname.find(".so.");
    if (dot == std::string::npos) return 0;
    const std::string name = soname.substr(0, dot);
    constexpr const char *kNames[] = {"libnvinfer",           "libnvinfer_plugin",
                                      "libnvinfer_vc_plugin", "libnvinfer_lean",
                                      "libnvinfer_dispatch",  "libnvonnxparser"};
    if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) return 0;
    const std::string version = soname.substr(dot + 4, soname.find('.', dot + 4) - dot - 4);
    int major = 0;
    const char *end = version.data() + version.size();
    const auto read = std::from_chars(version.data(), end, major);
    if (read.ec != std::errc() || read.ptr != end) return 0;
    if (major >= 5 && major <= 7) return 7;
    if (major == 8 || major == 9) return 8;
    return major == 10 || major == 11 ? major : 0;
}

// For libraries that name no libnvinfer, and, as it is found by all that are loaded later, for
// those that do: the line is that which the file told, while it is loaded; later its creators tell.
void *registry_of_caller() {
    const int expected = expected_line() == 78 ? 8 : expected_line();
    const int line = expected ? expected : origin(__builtin_return_address(0)).line;
    void *get = line == 7    ? function7("getPluginRegistry")
                : line == 10 ? function10("getPluginRegistry")
                : line == 11 ? function11("getPluginRegistry")
                             : function8("getPluginRegistry");
    return reinterpret_cast<void *(*)()>(get)();
}

void *function(const std::string &name, const std::string &library) {
    if (library == "libnvinfer.so" && name == "getPluginRegistry")
        return reinterpret_cast<void *>(&registry_of_caller);
    switch (line_of(library)) {
    case 7: return function7(name);
    case 8: return function8(name);
    case 10: return function10(name);
    case 11: return function11(name);
    default: return nullptr;
    }
}

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
