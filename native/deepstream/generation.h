// Whether code that calls was compiled with headers of this library's generation.
#pragma once

namespace headrace::deepstream {

// True where the structures of the code at an address have this library's layout, or may have it.
// The first call from an object that is not known to have it writes a sentence to standard error.
bool same_layout(const void *caller);

}  // namespace headrace::deepstream

#define HEADRACE_SAME_LAYOUT headrace::deepstream::same_layout(__builtin_return_address(0))
