// Calls of a user's C++ code whose exceptions must not pass functions of C.
#pragma once

#include <exception>
#include <string>

namespace headrace::deepstream {

constexpr int kThrown = -1;

// The sentence of the last exception on this thread.
inline std::string &last_error() {
    static thread_local std::string text;
    return text;
}

// Calls an action; `kThrown` where it raises: the sentence is in `last_error`.
template <typename F>
int guarded(F &&action) {
    try {
        return static_cast<int>(action());
    } catch (const std::exception &error) {
        last_error() = error.what();
    } catch (...) {
        last_error() = "an exception that is no std::exception";
    }
    return kThrown;
}

}  // namespace headrace::deepstream
