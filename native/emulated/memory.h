// Tensors of calls: pages of a file that headrace writes, each followed by a page out of reach.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "guard/crash.h"

namespace headrace::emulated {

constexpr size_t kMostRegions = 159;  // the next one is the class map

inline size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
inline size_t whole_pages(size_t size) {
    return (size + page_bytes() - 1) / page_bytes() * page_bytes();
}

struct Place {
    uint64_t offset, bytes;
    bool operator==(const Place &other) const {
        return offset == other.offset && bytes == other.bytes;
    }
};

class Tensors {
public:
    explicit Tensors(int file) : file_(file) {}

    // Maps the file so that the page behind each tensor cannot be touched. `names`: of the layers.
    void map(uint64_t size, const std::vector<Place> &places, const std::vector<std::string> &names,
             const char *what) {
        if (size == size_ && places == places_ && names == names_) return;
        if (memory_) munmap(memory_, size_);
        memory_ =
            static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
        if (memory_ == MAP_FAILED) {
            memory_ = nullptr;
            throw std::runtime_error(std::string("no memory for tensors: ") + std::strerror(errno));
        }
        size_ = size;
        places_ = places;
        names_ = names;
        for (size_t i = 0; i < kMostRegions; ++i) guard::set_region(i, 0, 0, "", -1, 0);
        for (size_t i = 0; i < places.size(); ++i) {
            const auto start = reinterpret_cast<uintptr_t>(memory_) + places[i].offset;
            const uintptr_t end = start + places[i].bytes;
            mprotect(reinterpret_cast<void *>(whole_pages(end)), page_bytes(), PROT_NONE);
            if (i < kMostRegions)
                guard::set_region(i, start, end, (what + names[i]).c_str(), -1, 0);
        }
    }
    char *at(uint64_t offset) const { return memory_ + offset; }

    // The tensor that an address is in, and how far; -1 if none.
    int find(const void *address, uint64_t &inside) const {
        for (size_t i = 0; i < places_.size(); ++i) {
            const char *start = memory_ + places_[i].offset;
            if (address < start || address >= start + places_[i].bytes) continue;
            inside = static_cast<uint64_t>(static_cast<const char *>(address) - start);
            return static_cast<int>(i);
        }
        return -1;
    }

private:
    int file_;
    char *memory_ = nullptr;
    uint64_t size_ = 0;
    std::vector<Place> places_;
    std::vector<std::string> names_;
};

// Memory that ends with a page out of reach.
class Guarded {
public:
    explicit Guarded(size_t size) : room_(whole_pages(size)), size_(size) {
        memory_ = mmap(nullptr, room_ + page_bytes(), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory_ == MAP_FAILED) throw std::runtime_error("no memory for the class map");
        mprotect(static_cast<char *>(memory_) + room_, page_bytes(), PROT_NONE);
    }
    ~Guarded() { munmap(memory_, room_ + page_bytes()); }
    Guarded(const Guarded &) = delete;
    Guarded &operator=(const Guarded &) = delete;
    char *start() const { return static_cast<char *>(memory_) + room_ - size_; }

private:
    size_t room_, size_;
    void *memory_;
};

}  // namespace headrace::emulated
