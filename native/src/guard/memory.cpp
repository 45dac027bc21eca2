// Memory of a file that application and worker have mapped.
#include <nanobind/nanobind.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "module.h"

namespace headrace::guard {
namespace {

constexpr size_t kHugePage = size_t{1} << 21;
// Address space behind a tensor that nothing can be read from or written to: code that runs past
// the end by more than a page meets it before anything else.
constexpr size_t kGap = size_t{1} << 20;

constexpr int kCollapse = 25;  // MADV_COLLAPSE, since Linux 6.1

// Address space for bytes and the gap. The start of large ones has the same place in a huge page as
// the bytes have in the file.
uintptr_t reserve(uint64_t offset, size_t bytes) {
    const size_t spare = bytes >= kHugePage ? kHugePage : 0, kept = bytes + kGap;
    const size_t room = kept + spare;
    void *at = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error(std::strerror(errno));
    const auto first = reinterpret_cast<uintptr_t>(at);
    if (!spare) return first;
    const uintptr_t start = first + (offset - first) % kHugePage;
    if (start > first) munmap(at, start - first);
    if (start + kept < first + room)
        munmap(reinterpret_cast<void *>(start + kept), first + room - start - kept);
    return start;
}

// A piece of a file, mapped as long as this lives, with a gap behind it. All pages are there from
// the start.
class GuardMapping {
public:
    // `offset` and `bytes` are whole pages. Throws std::runtime_error if it cannot be mapped.
    GuardMapping(int file, uint64_t offset, size_t bytes, bool writable) : bytes_(bytes) {
        const int rights = writable ? PROT_READ | PROT_WRITE : PROT_READ;
        void *place = reinterpret_cast<void *>(reserve(offset, bytes));
        void *at = mmap(place, bytes, rights, MAP_SHARED | MAP_POPULATE | MAP_FIXED, file,
                        static_cast<off_t>(offset));
        if (at == MAP_FAILED) {
            const int why = errno;
            munmap(place, bytes + kGap);
            throw std::runtime_error(std::strerror(why));
        }
        address_ = reinterpret_cast<uintptr_t>(at);
        // A parser that goes through columns touches a page with each number. Without huge pages,
        // or in an older kernel, it works as well and takes longer.
        const size_t before = (kHugePage - address_ % kHugePage) % kHugePage;
        const size_t whole = before < bytes ? (bytes - before) / kHugePage * kHugePage : 0;
        if (whole) madvise(static_cast<char *>(at) + before, whole, kCollapse);
    }
    ~GuardMapping() { munmap(reinterpret_cast<void *>(address_), bytes_ + kGap); }
    GuardMapping(const GuardMapping &) = delete;
    GuardMapping &operator=(const GuardMapping &) = delete;

    uintptr_t address() const { return address_; }

private:
    uintptr_t address_;
    size_t bytes_;
};

void protect(uintptr_t address, size_t bytes, bool readable, bool writable) {
    const int rights = (readable ? PROT_READ : 0) | (writable ? PROT_WRITE : 0);
    if (mprotect(reinterpret_cast<void *>(address), bytes, rights) != 0)
        throw std::runtime_error(std::strerror(errno));
}

}  // namespace

void bind_memory(nanobind::module_ &m) {
    using namespace nanobind::literals;
    nanobind::class_<GuardMapping>(m, "GuardMapping", "Whole pages of a file in shared memory.")
        .def(nanobind::init<int, uint64_t, size_t, bool>(), "file"_a, "offset"_a, "bytes"_a,
             "writable"_a)
        .def_prop_ro("address", &GuardMapping::address);
    m.attr("GUARD_HUGE_PAGE") = kHugePage;
    m.attr("GUARD_GAP") = kGap;
    m.def("guard_protect", &protect, "address"_a, "bytes"_a, "readable"_a, "writable"_a,
          "Change the rights of whole pages.");
}

}  // namespace headrace::guard
