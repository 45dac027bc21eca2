// What stand-ins of libnvinfer give a library, by the line that their name tells.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>

#include "foreign/known.h"
#include "foreign/registry.h"

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

}  // namespace

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

}  // namespace headrace::foreign
