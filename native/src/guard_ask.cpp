#include "guard_ask.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "array_view.h"
#include "custom_library_boxes.h"

namespace nb = nanobind;

namespace {

constexpr double most_seconds = 1e9;  // a limit beyond is none, and the clock has no number for it

}  // namespace

const char *guard_wait(GuardChannel &channel, double timeout_s, int process) {
    const std::chrono::duration<double> limit(std::min(timeout_s, most_seconds));
    const auto end =
        GuardClock::now() + std::chrono::duration_cast<GuardClock::duration>(limit);
    while (true) {
        GuardAnswer answer;
        {
            nb::gil_scoped_release unlocked;
            answer = channel.wait(end, process);
        }
        if (answer == GuardAnswer::given) return "given";
        if (answer == GuardAnswer::died) return "died";
        if (answer == GuardAnswer::late) return "late";
        if (answer == GuardAnswer::closed) return "nonsense";
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
}

// The worker could not tell whose page it is when it is written to.
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

const char *GuardRequest::ask(const GuardWorker &worker, double timeout_s) {
    const GuardChannel::Together together(worker.channel, worker.id);
    {
        nb::gil_scoped_release unlocked;
        worker.channel.post(copies_, places_);
    }
    return guard_wait(worker.channel, timeout_s, worker.process);
}

nb::object guard_boxes(uintptr_t address, size_t size, size_t count, bool with_angles) {
    if (count > size / 24) return nb::none();
    if (BoxBlock(nullptr, count, with_angles).bytes > size) return nb::none();
    const NumpyBoxes found(count, with_angles);
    std::memcpy(found.start(), reinterpret_cast<const void *>(address), found.bytes());
    return nb::make_tuple(found.boxes(), found.scores(), found.ids(), found.angles(),
                          sound_boxes(found.arrays(), count), found.bytes());
}

GuardAsk::GuardAsk(const GuardWorker &worker, const nb::dict &layers,
                   const std::vector<size_t> &offsets, const GuardSlots *slots)
    : worker_(worker), slots_(slots) {
    if (layers.size() != offsets.size())
        throw std::invalid_argument("there must be an offset for each layer");
    for (const auto &[name_, layer] : layers) {
        const nb::object name = nb::borrow(name_);
        ArrayView view;
        if (!view.open_layer(layer, PyBUF_FORMAT)) throw nb::python_error();
        if (tensors_.size() == offsets.size()) throw std::invalid_argument("the layers changed");
        tensors_.push_back({name, view->format, {view->shape, view->shape + view->ndim},
                            offsets[tensors_.size()]});
    }
}

bool GuardAsk::is(const Tensor &tensor, nb::handle name, const Py_buffer &buffer) {
    return (name.is(tensor.name) || name.equal(tensor.name)) && tensor.format == buffer.format &&
           std::equal(tensor.shape.begin(), tensor.shape.end(), buffer.shape,
                      buffer.shape + buffer.ndim);
}

nb::object GuardAsk::boxes(const nb::dict &layers, double timeout_s, uintptr_t in, uintptr_t out,
                           size_t size, size_t most) {
    const nb::bool_ others(false);
    if (layers.size() != tensors_.size()) return others;
    const ArrayViews views(new ArrayView[tensors_.size()]);
    GuardRequest request(tensors_.size());
    size_t i = 0;
    for (const auto &[name_, layer] : layers) {
        const nb::object name = nb::borrow(name_);
        if (i == tensors_.size()) return others;
        if (!views[i].open_layer(layer, PyBUF_FORMAT)) {
            PyErr_Clear();
            return others;
        }
        if (!is(tensors_[i], name, *views[i])) return others;
        request.add(*views[i], in + tensors_[i].offset, slots_);
        ++i;
    }
    if (i != tensors_.size()) return others;
    uint64_t *const words = worker_.channel.words();
    words[guard_op] = guard_call;
    const char *const ending = request.ask(worker_, timeout_s);
    // Each word is read once: the worker can change it at any time.
    const volatile uint64_t *const said = words;
    const uint64_t count = said[guard_values], flags = said[guard_values + 1];
    if (!std::strcmp(ending, "given") && !said[guard_status] && !said[guard_side_bytes] &&
        !said[guard_wrote] && said[guard_output_size] <= size && count <= most &&
        (flags & ~guard_has_angles) == 0) {
        const nb::object found = guard_boxes(out, size, count, flags & guard_has_angles);
        if (!found.is_none() && nb::cast<bool>(found[4])) return found;
    }
    return nb::str(ending);
}
