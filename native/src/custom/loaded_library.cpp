// A library that somebody has loaded. Python's own ctypes keeps the GIL while it waits for the
// loader, which a thread may hold that loads a library whose initialiser wants the GIL.
#include <dlfcn.h>
#include <link.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "core/unlocked.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::custom {
namespace {

struct Search {
    const std::string &prefix;
    std::string path;
};

int look_at(dl_phdr_info *info, size_t, void *given) {
    Search &search = *static_cast<Search *>(given);
    const char *slash = std::strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    if (std::strncmp(name, search.prefix.c_str(), search.prefix.size()) != 0) return 0;
    search.path = info->dlpi_name;
    return 1;
}

unsigned long long loaded_so_far() {
    unsigned long long count = 0;
    dl_iterate_phdr(
        [](dl_phdr_info *info, size_t, void *to) {
            *static_cast<unsigned long long *>(to) = info->dlpi_adds;
            return 1;
        },
        &count);
    return count;
}

uintptr_t again(const std::string &path) {
    core::Unlocked unlocked;
    return reinterpret_cast<uintptr_t>(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD));
}

// Under the GIL: one prefix is asked for, again and again, and mostly in vain.
uintptr_t loaded_library(const std::string &prefix) {
    static std::string asked;
    static unsigned long long when = 0;
    static uintptr_t found = 0;
    if (asked != prefix) asked = prefix, when = 0, found = 0;
    const unsigned long long now = loaded_so_far();
    if (found || when == now) return found;
    Search search{prefix, {}};
    dl_iterate_phdr(look_at, &search);
    const uintptr_t handle = search.path.empty() ? 0 : again(search.path);
    if (asked != prefix) return handle;
    when = now;
    return found = handle;
}

}  // namespace

void bind_loaded_library(nb::module_ &m) {
    m.def("loaded_library", &loaded_library, "prefix"_a,
          "Handle of a library in this process whose file name begins so, which stays loaded; 0 if "
          "there is none.");
}

}  // namespace headrace::custom
