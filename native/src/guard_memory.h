// Memory of a file that application and worker have mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

constexpr size_t guard_huge_page = size_t{1} << 21;
// Address space behind a tensor that nothing can be read from or written to: code that runs past the
// end by more than a page meets it before anything else.
constexpr size_t guard_gap = size_t{1} << 20;

// A piece of a file, mapped as long as this lives, with a gap behind it. All pages are there from the
// start.
class GuardMapping {
public:
    // `offset` and `bytes` are whole pages. Throws std::runtime_error if it cannot be mapped.
    GuardMapping(int file, uint64_t offset, size_t bytes, bool writable);
    ~GuardMapping();
    GuardMapping(const GuardMapping &) = delete;
    GuardMapping &operator=(const GuardMapping &) = delete;

    uintptr_t address() const { return address_; }

private:
    uintptr_t address_;
    size_t bytes_;
};

// Which addresses of the application are which bytes of the memory that outputs are made in.
class GuardSlots {
public:
    struct Slot {
        uintptr_t start;
        size_t bytes;     // that tensors may have
        uint64_t offset;  // of the first one in the file
        size_t mapped;    // bytes that the worker shall map: a page more
    };

    void add(const Slot &slot);
    // The slot that holds all these bytes, or null.
    const Slot *find(uintptr_t start, size_t bytes) const;

private:
    std::vector<Slot> slots_;  // sorted by start
};
