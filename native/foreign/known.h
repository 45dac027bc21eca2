// What compiled libraries of TensorRT have registered, and the releases that they name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/host_abi.h"

namespace headrace::foreign {

// A creator that a library of a line gave the registry.
struct Registered {
    void *creator;
    int line;
    int32_t release;             // as getTensorRTVersion packs it: 8601, 101600; 0: not told
    bool third;                  // an IPluginCreatorV3One
    const void *base = nullptr;  // where its library begins in memory
    bool first = true;           // false: another library has its name, and it serves its own alone
};

// Gives the process's registry a creator; false if it is refused or its name is taken.
bool take(Registered one, const headrace_creator_calls &calls, const char *name_space);
// Takes it back; false if it is not there.
bool give_back(const void *creator) noexcept;
// Those of a line that are registered, as code at an address sees them: those of its own library,
// then the others in their order.
std::vector<Registered> registered(int line, const void *caller);

// The line of the library that this thread is loading, which names no libnvinfer; 0 for any other.
// Of line 8 its creators may be of line 7: they tell.
int &expected_line();

// Throws std::invalid_argument unless a release is one of a line, or 0; `what` gave it.
void require_line(int line, int32_t release, const char *what);
// Remembers the release that code of the library of an object names.
void note_release(const void *object, int32_t release) noexcept;
// The same of code: a function of the library called the host from that address.
void note_caller(const void *code, int line, int32_t release) noexcept;
// Line and release of the library that an address is in; zeros for any other.
struct Origin {
    int line = 0;
    int32_t release = 0;
};
Origin origin(const void *address) noexcept;

// The release of the library that named one last, as `release_text` writes it.
const char *last_release() noexcept;

// "TensorRT 8.6.1" of 8601; "TensorRT 5.1 to 7.2" of line 7 where the release is not told.
std::string release_text(int line, int32_t release);

}  // namespace headrace::foreign
