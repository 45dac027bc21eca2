// What stand-ins for libnvinfer give to libraries that were compiled against TensorRT's headers.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <regex>

#include "foreign/known.h"
#include "foreign/registry.h"
#include "module.h"
#include "stand_ins/stand_in.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::foreign {
namespace {

// The line of a library's name, libnvinfer.so.8 or libnvinfer_plugin.so.10; 0 for any other.
int line_of(const std::string &soname) {
    static const std::regex kName(
        R"(libnvinfer(_plugin|_vc_plugin|_lean|_dispatch)?\.so\.(\d+)(\..*)?)");
    std::smatch parts;
    if (!std::regex_match(soname, parts, kName) || parts[2].length() > 3) return 0;
    const int major = std::stoi(parts[2]);
    if (major >= 5 && major <= 7) return 7;
    if (major == 8 || major == 9) return 8;
    return major == 10 || major == 11 ? major : 0;
}

void *function(const std::string &name, const std::string &library) {
    switch (line_of(library)) {
    case 7: return function7(name);
    case 8: return function8(name);
    case 10: return function10(name);
    case 11: return function11(name);
    default: return nullptr;
    }
}

}  // namespace

void bind(nb::module_ &m) {
    m.def(
        "foreign_serve", [] { stand_ins::provide(&function); },
        "From now on, stand-ins of libnvinfer that are filled have the host's registry.");
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
