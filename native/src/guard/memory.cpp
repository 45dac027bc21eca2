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

constexpr int kPopulate = 23;  // MADV_POPULATE_WRITE, since Linux 5.14

// The right to write to a file of at most so many bytes, which later mappings take from here: the
// file can then be sealed against new writers. No memory is taken, nor need the file be that long.
class GuardWriter {
public:
    GuardWriter(int file, size_t bytes) : bytes_(bytes) {
        void *at =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
        if (at == MAP_FAILED) throw std::runtime_error(std::strerror(errno));
        start_ = static_cast<char *>(at);
    }
    ~GuardWriter() { munmap(start_, bytes_); }
    GuardWriter(const GuardWriter &) = delete;
    GuardWriter &operator=(const GuardWriter &) = delete;

    // Maps a piece of the file at `place`, too, for writing.
    void *map(uint64_t offset, size_t bytes, void *place) const {
        if (offset > bytes_ || bytes > bytes_ - offset) {
            errno = EINVAL;
            return MAP_FAILED;
        }
        void *at = mremap(start_ + offset, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
        if (at != MAP_FAILED && madvise(at, bytes, kPopulate) != 0) errno = 0;  // when written to
        return at;
    }

private:
    char *start_;
    size_t bytes_;
};

// A piece of a file, mapped as long as this lives, with a gap behind it. All pages are there from
// the start.
class GuardMapping {
public:
    // `offset` and `bytes` are whole pages. Without a writer it can only be read. Throws
    // std::runtime_error if it cannot be mapped.
    GuardMapping(int file, uint64_t offset, size_t bytes, const GuardWriter *writer)
        : bytes_(bytes) {
        void *place = reinterpret_cast<void *>(reserve(offset, bytes));
        void *at = writer ? writer->map(offset, bytes, place)
                          : mmap(place, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE | MAP_FIXED,
                                 file, static_cast<off_t>(offset));
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
    nanobind::class_<GuardWriter>(m, "GuardWriter", "The right to write to a file.")
        .def(nanobind::init<int, size_t>(), "file"_a, "bytes"_a);
    nanobind::class_<GuardMapping>(m, "GuardMapping", "Whole pages of a file in shared memory.")
        .def(nanobind::init<int, uint64_t, size_t, const GuardWriter *>(), "file"_a, "offset"_a,
             "bytes"_a, "writer"_a.none() = nanobind::none())
        .def_prop_ro("address", &GuardMapping::address);
    m.attr("GUARD_HUGE_PAGE") = kHugePage;
    m.attr("GUARD_GAP") = kGap;
    m.def("guard_protect", &protect, "address"_a, "bytes"_a, "readable"_a, "writable"_a,
          "Change the rights of whole pages.");
}

}  // namespace headrace::guard
