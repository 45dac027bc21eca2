// The application's requests to a worker: tensors on their way to it, and its answers.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "core/array_view.h"
#include "core/unlocked.h"
#include "custom/library.h"
#include "guard/channel.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::guard {
namespace {

constexpr double kMostSeconds = 1e9;  // a limit beyond is none, and the clock has no number for it

// Which addresses of the application are which bytes of the memory that outputs are made in.
class Slots {
public:
    struct Slot {
        size_t bytes;     // that tensors may have
        uint64_t offset;  // of the first one in the file
        size_t mapped;    // bytes that the worker shall map: a page more
    };

    void add(uintptr_t start, size_t bytes, uint64_t offset, size_t mapped) {
        slots_[start] = {bytes, offset, mapped};
    }

    // (start, slot) of the one that holds all these bytes; its end if there is none.
    auto find(uintptr_t start, size_t bytes) const {
        auto at = slots_.upper_bound(start);
        if (at == slots_.begin()) return slots_.end();
        --at;
        const size_t before = start - at->first, room = at->second.bytes;
        return before <= room && bytes <= room - before ? at : slots_.end();
    }
    auto none() const { return slots_.end(); }

private:
    std::map<uintptr_t, Slot> slots_;
};

// Pages that shared tensors of one request are on.
class SharedPages {
public:
    // False if another tensor is on one of these: the worker could not tell which one a page
    // belongs to when the page is written to.
    bool claim(uintptr_t start, size_t bytes) {
        static const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
        for (const auto &[from, to] : claimed_)
            if (start / page <= (to - 1) / page && from / page <= (start + bytes - 1) / page)
                return false;
        claimed_.emplace_back(start, start + bytes);
        return true;
    }

private:
    std::vector<std::pair<uintptr_t, uintptr_t>> claimed_;
};

// Runs the application's signal handlers while it waits; throws what they raise.
const char *post_and_wait(Channel &channel, const std::vector<Copy> &copies,
                          const std::vector<uint64_t> &places, double timeout_s, int worker,
                          int process) {
    const Channel::Together together(channel, worker);
    const std::chrono::duration<double> limit(std::min(timeout_s, kMostSeconds));
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
    for (bool posted = false;; posted = true) {
        Answer answer;
        {
            core::Unlocked unlocked;
            if (!posted) channel.post(copies, places);
            answer = channel.wait(end, process);
        }
        switch (answer) {
        case Answer::kGiven: return "answered";
        case Answer::kDied: return "died";
        case Answer::kLate: return "late";
        case Answer::kClosed: return "nonsense";
        case Answer::kInterrupted: break;
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (channel.closed) return "closed";  // by a handler
    }
}

// The worker reads a tensor in place if it is in one of `slots` (or null), else it is copied to
// `to`.
const char *ask(Channel &channel, const nb::list &arrays, const std::vector<uintptr_t> &to,
                const std::vector<size_t> &sizes, double timeout_s, int worker, int process,
                const Slots *slots) {
    const core::ArrayViews views(new core::ArrayView[arrays.size()]);
    std::vector<Copy> copies;
    std::vector<uint64_t> places(3 * arrays.size(), 0);
    SharedPages pages;
    for (size_t i = 0; i < arrays.size(); ++i) {
        if (!views[i].open(arrays[i], PyBUF_ND)) throw nb::python_error();
        const auto start = reinterpret_cast<uintptr_t>(views[i]->buf);
        const auto bytes = static_cast<size_t>(views[i]->len);
        if (bytes != sizes.at(i))
            throw std::invalid_argument("an array has another size than before");
        if (slots && i < kMaxPlaces) {
            const auto found = slots->find(start, bytes);
            if (found != slots->none() && pages.claim(start, bytes)) {
                const auto &[from, slot] = *found;
                places[3 * i] = slot.offset + (start - from) + 1;
                places[3 * i + 1] = slot.offset;
                places[3 * i + 2] = slot.mapped;
                continue;
            }
        }
        copies.push_back({reinterpret_cast<void *>(to.at(i)), views[i]->buf, bytes});
    }
    return post_and_wait(channel, copies, places, timeout_s, worker, process);
}

}  // namespace

void bind(nb::module_ &m) {
    nb::class_<Channel>(m, "GuardChannel", "One side of the page that requests go through.")
        .def(nb::init<int, int>(), "page"_a, "link"_a)
        .def("ask", &ask, "arrays"_a, "to"_a, "sizes"_a, "timeout_s"_a, "worker"_a, "process"_a,
             "slots"_a = nb::none(),
             "Copy arrays of so many bytes to addresses, but those that are in slots, post a "
             "request "
             "and wait: 'answered', 'died', 'late', 'nonsense' or 'closed'.")
        .def_ro("busy", &Channel::busy, "A request is under way, or its answer is not read.")
        .def("__enter__", [](Channel &channel) { channel.busy = true; })
        .def(
            "__exit__",
            [](Channel &channel, nb::handle, nb::handle, nb::handle) { channel.busy = false; },
            "kind"_a.none(), "error"_a.none(), "trace"_a.none())
        .def_rw("closed", &Channel::closed, "The worker was ended: no answer is waited for.")
        .def("next", &Channel::next, nb::call_guard<core::Unlocked>())
        .def("leave_if_forked", &Channel::leave_if_forked,
             "End this process if it is a copy of the worker: what it shares is the worker's.")
        .def("answer", &Channel::answer);

    nb::class_<Slots>(m, "GuardSlots", "Addresses that are parts of a file in shared memory.")
        .def(nb::init<>())
        .def("add", &Slots::add, "start"_a, "bytes"_a, "offset"_a, "mapped"_a);
    nb::dict words;
    words["OP"] = kOp;
    words["MESSAGE_BYTES"] = kMessageBytes;
    words["INPUT_SIZE"] = kInputSize;
    words["STATUS"] = kStatus;
    words["SIDE_START"] = kSideStart;
    words["SIDE_BYTES"] = kSideBytes;
    words["OUTPUT_SIZE"] = kOutputSize;
    words["VALUES"] = kValues;
    words["WROTE"] = kWrote;
    words["MESSAGE"] = kMessage;
    words["CALL"] = kCall;
    words["HAS_ANGLES"] = kHasAngles;
    words["HAS_MASKS"] = kHasMasks;
    m.attr("GUARD_WORDS") = words;
    m.attr("GUARD_MAX_PLACES") = kMaxPlaces;
    m.attr("GUARD_PLACES_AT") = kPlacesAt;

    m.def("guard_boxes", &custom::copied_boxes, "address"_a, "size"_a, "count"_a, "with_angles"_a,
          "Copies of a worker's boxes: (what decode_boxes gives, bytes that they take); None if "
          "there "
          "are not as many bytes.");

    m.def(
        "guard_signal_main_thread",
        [](int process, int number) { return syscall(SYS_tgkill, process, process, number) == 0; },
        "process"_a, "number"_a, "Send a signal to the first thread of another process.");
}

}  // namespace headrace::guard
