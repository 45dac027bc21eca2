// Data that is lent to a library for one call alone.
//
// While `lend_pages` is on (checks of plugins, in a process of their own) such data ends where a
// page ends that cannot be accessed, and is itself out of reach after the call: code that reads on,
// or that keeps the pointer, is ended where it does so.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "guard/crash.h"

namespace headrace::hosting {

inline bool &lend_pages() {
    static bool on = false;
    return on;
}

class Lent {
public:
    // A copy of the bytes, for reading; `what` names it in the report of a crash.
    const void *copy(const void *data, size_t bytes, const std::string &what) {
        const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        const size_t kept = (bytes + page - 1) / page * page + (bytes ? 0 : page);
        void *at =
            mmap(nullptr, kept + kGap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) throw std::bad_alloc();
        char *place = static_cast<char *>(at) + (kept - bytes);
        std::memcpy(place, data, bytes);
        mprotect(at, kept, PROT_READ);
        mprotect(static_cast<char *>(at) + kept, kGap, PROT_NONE);
        const auto start = reinterpret_cast<uintptr_t>(place);
        guard::set_region(kFirst + next() % kSlots, start, start + bytes, what.c_str(), -1, 0);
        pages_.push_back({at, kept});
        return place;
    }
    ~Lent() {  // the address space stays taken: nothing else gets these addresses
        for (const auto &[at, bytes] : pages_) mprotect(at, bytes, PROT_NONE);
    }
    Lent() = default;
    Lent(const Lent &) = delete;
    Lent &operator=(const Lent &) = delete;

private:
    static constexpr size_t kGap = size_t{1} << 16;
    static constexpr size_t kFirst = 100, kSlots = 60;  // of the regions that a report names
    static size_t next() {
        static size_t number = 0;
        return number++;
    }
    struct Pages {
        void *at;
        size_t bytes;
    };
    std::vector<Pages> pages_;
};

}  // namespace headrace::hosting
