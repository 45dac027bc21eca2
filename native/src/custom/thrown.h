// Exceptions of a user's code.
#pragma once

#include <stdexcept>

namespace headrace::custom {

// Code of the user threw: `what()` is its text.
struct CustomCodeError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Throws CustomCodeError, or MissingFunctionError, in place of the exception that is being handled.
[[noreturn]] void translate_current_exception();

}  // namespace headrace::custom
