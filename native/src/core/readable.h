// Names of types and symbols as sources write them.
#pragma once

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace headrace::core {

// What the compiler made a name of; the name itself where it is no such one, "" for null.
inline std::string readable(const char *mangled) {
    if (!mangled) return {};
    int status = 0;
    const std::unique_ptr<char, void (*)(void *)> text(
        abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
    return text ? text.get() : mangled;
}

}  // namespace headrace::core
