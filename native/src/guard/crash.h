// What a library does when its process ends: see guard/crash.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace headrace::guard {

// Installs the handlers in this thread: fatal signals, std::terminate, exit, and `hang_signal`,
// which only reports. The report goes to `fd`.
void report_to(int fd, int hang_signal);

// (what was given to that, or -1; the signal).
std::pair<int, int> report_of();

// Ends this process as another one ended: exit status, or a signal's number, negative.
[[noreturn]] void end_as(int code);

// After a report this process exits with 128 and the signal's number: it may send itself none.
void end_by_exit();

// What is called from now on.
void set_function(const char *name);

// A call of that function that was answered with null, false or zero: it may die of the answer.
void set_refused(const char *call);

// Ends this process, in which a function has left the GPU unusable.
[[noreturn]] void give_up(const char *function_name, const char *why);

// Names memory that an inaccessible page follows; `slot` is 0 to 159. Empty name: no longer. With a
// `file`, its pages are mapped there for reading, from `offset` on: the first write into them makes
// them a private copy of this process.
void set_region(size_t slot, uintptr_t start, uintptr_t end, const char *name, int file,
                uint64_t offset);

// Drops such copies, and maps the file's pages again; whether there were any.
bool take_back_all();

// While it lives, memory that a function gave is released: that function's `field`, a literal.
class Releasing {
public:
    explicit Releasing(const char *field);
    ~Releasing();
    Releasing(const Releasing &) = delete;
    Releasing &operator=(const Releasing &) = delete;
};

}  // namespace headrace::guard
