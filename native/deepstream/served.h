// Functions of the elements in Python that this library calls, by the names of their faces in C.
#pragma once

#include "library.h"

namespace headrace::deepstream {

// Returns an element's function; null, and a sentence on standard error, where there is none.
void *served(const char *name);

template <typename F>
F *served_as(const char *name) {
    return reinterpret_cast<F *>(served(name));
}

}  // namespace headrace::deepstream
