#include "guard_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace {

#ifndef MADV_COLLAPSE
constexpr int MADV_COLLAPSE = 25;  // Linux 6.1
#endif

// Address space for bytes and the gap. The start of large ones has the same place in a huge page as
// the bytes have in the file.
uintptr_t reserve(uint64_t offset, size_t bytes) {
    const size_t spare = bytes >= guard_huge_page ? guard_huge_page : 0, kept = bytes + guard_gap;
    const size_t room = kept + spare;
    void *at = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error(std::strerror(errno));
    const auto first = reinterpret_cast<uintptr_t>(at);
    if (!spare) return first;
    const uintptr_t start = first + (offset - first) % guard_huge_page;
    if (start > first) munmap(at, start - first);
    if (start + kept < first + room)
        munmap(reinterpret_cast<void *>(start + kept), first + room - start - kept);
    return start;
}

}  // namespace

GuardMapping::GuardMapping(int file, uint64_t offset, size_t bytes, bool writable)
    : bytes_(bytes) {
    const int rights = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *place = reinterpret_cast<void *>(reserve(offset, bytes));
    void *at = mmap(place, bytes, rights, MAP_SHARED | MAP_POPULATE | MAP_FIXED, file,
                    static_cast<off_t>(offset));
    if (at == MAP_FAILED) {
        const int why = errno;
        munmap(place, bytes + guard_gap);
        throw std::runtime_error(std::strerror(why));
    }
    address_ = reinterpret_cast<uintptr_t>(at);
    // A parser that goes through columns touches a page with each number. Without huge pages, or in
    // an older kernel, it works as well and takes longer.
    const size_t before = (guard_huge_page - address_ % guard_huge_page) % guard_huge_page;
    const size_t whole = before < bytes ? (bytes - before) / guard_huge_page * guard_huge_page : 0;
    if (whole) madvise(static_cast<char *>(at) + before, whole, MADV_COLLAPSE);
}

GuardMapping::~GuardMapping() { munmap(reinterpret_cast<void *>(address_), bytes_ + guard_gap); }

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
