// Python face of the guard: a user's library in a process of its own.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "array_view.h"
#include "crash_note.h"
#include "custom_library.h"
#include "guard_channel.h"
#include "guard_crash.h"
#include "guard_memory.h"
#include "guard_request.h"
#include "guard_sandbox.h"
#include "module.h"
#include "unlocked.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

const char *ask(GuardChannel &channel, const nb::list &arrays, const std::vector<uintptr_t> &to,
                const std::vector<size_t> &sizes, double timeout_s, int worker, int process,
                const GuardSlots *slots) {
    const ArrayViews views(new ArrayView[arrays.size()]);
    GuardRequest request(arrays.size());
    for (size_t i = 0; i < arrays.size(); ++i) {
        if (!views[i].open(arrays[i], PyBUF_ND)) throw nb::python_error();
        if (static_cast<size_t>(views[i]->len) != sizes.at(i))
            throw std::invalid_argument("an array has another size than before");
        request.add(*views[i], to.at(i), slots);
    }
    return request.ask(channel, worker, process, timeout_s);
}

void protect(uintptr_t address, size_t bytes, bool readable, bool writable) {
    const int rights = (readable ? PROT_READ : 0) | (writable ? PROT_WRITE : 0);
    if (mprotect(reinterpret_cast<void *>(address), bytes, rights) != 0)
        throw std::runtime_error(std::strerror(errno));
}

}  // namespace

void bind_guard(nb::module_ &m) {
    nb::class_<GuardChannel>(m, "GuardChannel", "One side of the page that requests go through.")
        .def(nb::init<int, int>(), "page"_a, "link"_a)
        .def("ask", &ask, "arrays"_a, "to"_a, "sizes"_a, "timeout_s"_a, "worker"_a, "process"_a,
             "slots"_a = nb::none(),
             "Copy arrays of so many bytes to addresses, but those that are in slots, post a request "
             "and wait: 'answered', 'died', 'late', 'nonsense' or 'closed'.")
        .def_ro("busy", &GuardChannel::busy, "A request is under way, or its answer is not read.")
        .def("__enter__", [](GuardChannel &channel) { channel.busy = true; })
        .def(
            "__exit__",
            [](GuardChannel &channel, nb::handle, nb::handle, nb::handle) { channel.busy = false; },
            "kind"_a.none(), "error"_a.none(), "trace"_a.none())
        .def_rw("closed", &GuardChannel::closed, "The worker was ended: no answer is waited for.")
        .def("next", &GuardChannel::next, nb::call_guard<Unlocked>())
        .def("leave_if_forked", &GuardChannel::leave_if_forked,
             "End this process if it is a copy of the worker: what it shares is the worker's.")
        .def("answer", &GuardChannel::answer);

    nb::class_<GuardMapping>(m, "GuardMapping", "Whole pages of a file in shared memory.")
        .def(nb::init<int, uint64_t, size_t, bool>(), "file"_a, "offset"_a, "bytes"_a,
             "writable"_a)
        .def_prop_ro("address", &GuardMapping::address);
    nb::class_<GuardSlots>(m, "GuardSlots", "Addresses that are parts of a file in shared memory.")
        .def(nb::init<>())
        .def(
            "add",
            [](GuardSlots &slots, uintptr_t start, size_t bytes, uint64_t offset, size_t mapped) {
                slots.add({start, bytes, offset, mapped});
            },
            "start"_a, "bytes"_a, "offset"_a, "mapped"_a);
    m.attr("GUARD_HUGE_PAGE") = guard_huge_page;
    m.attr("GUARD_GAP") = guard_gap;
    nb::dict words;
    words["OP"] = guard_op;
    words["MESSAGE_BYTES"] = guard_message_bytes;
    words["INPUT_SIZE"] = guard_input_size;
    words["STATUS"] = guard_status;
    words["SIDE_START"] = guard_side_start;
    words["SIDE_BYTES"] = guard_side_bytes;
    words["OUTPUT_SIZE"] = guard_output_size;
    words["VALUES"] = guard_values;
    words["WROTE"] = guard_wrote;
    words["MESSAGE"] = guard_message;
    words["CALL"] = guard_call;
    words["HAS_ANGLES"] = guard_has_angles;
    words["HAS_MASKS"] = guard_has_masks;
    m.attr("GUARD_WORDS") = words;
    m.attr("GUARD_MAX_PLACES") = guard_max_places;
    m.attr("GUARD_PLACES_AT") = guard_places_at;

    m.def("guard_boxes", &copied_boxes, "address"_a, "size"_a, "count"_a, "with_angles"_a,
          "Copies of a worker's boxes: (what decode_boxes gives, bytes that they take); None if there "
          "are not as many bytes.");

    m.def("guard_sandbox", &guard_sandbox, "memory_bytes"_a, "gpu"_a = false,
          "Give up what a library does not need, for good; what could not be done, in words. `gpu`: "
          "a driver of NVIDIA shall work in it.");
    m.def("guard_report_to", &guard_report_to, "fd"_a, "hang_signal"_a,
          "Report fatal signals, std::terminate and exit of this process to a file descriptor.");
    m.def("note_crashes", &note_crashes, "text"_a,
          "Have fatal signals of this process that nothing handles say this before they end it.");
    m.def("guard_set_function", &guard_set_function, "name"_a, "What is called from now on.");
    m.def("guard_give_up", &guard_give_up, "function"_a, "why"_a,
          "End this process, in which a function has left the GPU unusable.");
    m.def("guard_set_region", &guard_set_region, "slot"_a, "start"_a, "end"_a, "name"_a,
          "file"_a = -1, "offset"_a = 0,
          "Name memory that a protected page follows; memory of a file can only be read, and becomes "
          "a copy of its own when it is written to. `offset`: of the page that `start` is in.");
    m.def("guard_take_back", &guard_take_back,
          "Share again what became a copy; whether anything had.");
    m.def("guard_protect", &protect, "address"_a, "bytes"_a, "readable"_a, "writable"_a,
          "Change the rights of whole pages.");
    m.def(
        "guard_signal_main_thread",
        [](int process, int number) { return syscall(SYS_tgkill, process, process, number) == 0; },
        "process"_a, "number"_a, "Send a signal to the first thread of another process.");
}
