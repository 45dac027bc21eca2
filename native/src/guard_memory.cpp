#include "guard_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

GuardMapping::GuardMapping(int file, uint64_t offset, size_t bytes, bool writable)
    : bytes_(bytes) {
    const int rights = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *at = mmap(nullptr, bytes, rights, MAP_SHARED | MAP_POPULATE, file,
                    static_cast<off_t>(offset));
    if (at == MAP_FAILED) throw std::runtime_error(std::strerror(errno));
    address_ = reinterpret_cast<uintptr_t>(at);
}

GuardMapping::~GuardMapping() { munmap(reinterpret_cast<void *>(address_), bytes_); }

void GuardSlots::add(const Slot &slot) {
    const auto at = std::upper_bound(
        slots_.begin(), slots_.end(), slot,
        [](const Slot &a, const Slot &b) { return a.start < b.start; });
    slots_.insert(at, slot);
}

const GuardSlots::Slot *GuardSlots::find(uintptr_t start, size_t bytes) const {
    auto at = std::upper_bound(slots_.begin(), slots_.end(), start,
                               [](uintptr_t value, const Slot &slot) { return value < slot.start; });
    if (at == slots_.begin()) return nullptr;
    --at;
    const size_t before = start - at->start;
    return before <= at->bytes && bytes <= at->bytes - before ? &*at : nullptr;
}
