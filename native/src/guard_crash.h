// What a worker writes about its own end, from inside signal handlers. Lines of text:
//
//   noria-crash 1
//   signal NUMBER CODE ADDRESS read|write|-    or: exit STATUS, or: hang, or: gpu WHY
//   function NAME                              what was being called
//   release FIELD                              what of its result was being released
//   message TEXT                               of an exception or a failed assertion
//   stack-overflow
//   region START END NAME                      memory whose end is guarded
//   pc ADDRESS
//   frame ADDRESS                              innermost first
//   map LINE                                   of /proc/self/maps
//   symbol ADDRESS OFFSET NAME
//   end
//
// What comes after is written by the handler that was there before (Python's faulthandler).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// Installs the handlers in this thread: fatal signals, std::terminate, exit, and `hang_signal`,
// which only reports. The report goes to `fd`.
void guard_report_to(int fd, int hang_signal);

// What is called from now on; null or "": nothing of the user's.
void guard_set_function(const char *name);

// Ends this process, in which a function has left the GPU unusable.
[[noreturn]] void guard_give_up(const char *function, const char *why);

// While it lives, memory that a function gave is released: that function's `field`, a literal.
class GuardReleasing {
public:
    explicit GuardReleasing(const char *field);
    ~GuardReleasing();
    GuardReleasing(const GuardReleasing &) = delete;
    GuardReleasing &operator=(const GuardReleasing &) = delete;
};

// Memory that a page follows which cannot be written, or of a file, which can only be read.
struct GuardRegion {
    uintptr_t start, end;
    std::string name;
    int file;         // or -1
    uint64_t offset;  // of the page that `start` is in
};

// Names the memory that an inaccessible page follows; `slot` is 0 to 159. Empty name: no longer.
// With a `file`, its pages are mapped there for reading, from `offset` on: the first write into them
// makes them a private copy of this process.
void guard_set_region(size_t slot, uintptr_t start, uintptr_t end, const char *name, int file,
                      uint64_t offset);

// Drops such copies, and maps the file's pages again; whether there were any.
bool guard_take_back();
