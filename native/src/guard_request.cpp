#include "guard_request.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "unlocked.h"

namespace nb = nanobind;

namespace {

constexpr double most_seconds = 1e9;  // a limit beyond is none, and the clock has no number for it

}  // namespace

// The worker could not tell which tensor a page belongs to when the page is written to.
bool GuardRequest::on_pages_of_others(uintptr_t start, size_t bytes) const {
    static const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    for (const auto &[from, to] : shared_)
        if (start / page <= (to - 1) / page && from / page <= (start + bytes - 1) / page) return true;
    return false;
}

void GuardRequest::add(const Py_buffer &tensor, uintptr_t to, const GuardSlots *slots) {
    const auto start = reinterpret_cast<uintptr_t>(tensor.buf);
    const auto bytes = static_cast<size_t>(tensor.len);
    const size_t i = count_++;
    const GuardSlots::Slot *slot = nullptr;
    if (slots && i < guard_max_places) slot = slots->find(start, bytes);
    if (slot && !on_pages_of_others(start, bytes)) {
        shared_.emplace_back(start, start + bytes);
        places_[3 * i] = slot->offset + (start - slot->start) + 1;
        places_[3 * i + 1] = slot->offset;
        places_[3 * i + 2] = slot->mapped;
    } else {
        copies_.push_back({reinterpret_cast<void *>(to), tensor.buf, bytes});
    }
}

const char *GuardRequest::ask(GuardChannel &channel, int worker, int process, double timeout_s) {
    const GuardChannel::Together together(channel, worker);
    const std::chrono::duration<double> limit(std::min(timeout_s, most_seconds));
    const auto end = GuardClock::now() + std::chrono::duration_cast<GuardClock::duration>(limit);
    for (bool posted = false;; posted = true) {
        GuardAnswer answer;
        {
            Unlocked unlocked;
            if (!posted) channel.post(copies_, places_);
            answer = channel.wait(end, process);
        }
        if (answer == GuardAnswer::given) return "answered";
        if (answer == GuardAnswer::died) return "died";
        if (answer == GuardAnswer::late) return "late";
        if (answer == GuardAnswer::closed) return "nonsense";
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (channel.closed) return "closed";  // by a handler
    }
}
