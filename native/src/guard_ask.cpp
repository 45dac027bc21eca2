#include "guard_ask.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "custom_library_boxes.h"
#include "unlocked.h"

namespace nb = nanobind;

namespace {

constexpr double most_seconds = 1e9;  // a limit beyond is none, and the clock has no number for it

// `first` is done before the wait, both without the GIL.
template <typename First>
const char *wait_after(First first, GuardChannel &channel, double timeout_s, int process) {
    const std::chrono::duration<double> limit(std::min(timeout_s, most_seconds));
    const auto end =
        GuardClock::now() + std::chrono::duration_cast<GuardClock::duration>(limit);
    for (bool begun = false;; begun = true) {
        GuardAnswer answer;
        {
            Unlocked unlocked;
            if (!begun) first();
            answer = channel.wait(end, process);
        }
        if (answer == GuardAnswer::given) return "given";
        if (answer == GuardAnswer::died) return "died";
        if (answer == GuardAnswer::late) return "late";
        if (answer == GuardAnswer::closed) return "nonsense";
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (channel.closed) return "closed";  // by a handler
    }
}

}  // namespace

const char *guard_wait(GuardChannel &channel, double timeout_s, int process) {
    return wait_after([] {}, channel, timeout_s, process);
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
    const auto post = [&] { worker.channel.post(copies_, places_); };
    return wait_after(post, worker.channel, timeout_s, worker.process);
}

namespace {

class GuardBusy {
public:
    explicit GuardBusy(GuardChannel &channel) : channel_(channel) { channel_.busy = true; }
    ~GuardBusy() { channel_.busy = false; }
    GuardBusy(const GuardBusy &) = delete;
    GuardBusy &operator=(const GuardBusy &) = delete;

private:
    GuardChannel &channel_;
};

// Copies of a worker's boxes; false if there is no room for as many.
bool copy_boxes(uintptr_t address, size_t size, size_t count, bool with_angles,
                std::optional<NumpyBoxes> &found) {
    if (count > size / 24 || BoxBlock(nullptr, count, with_angles).bytes > size) return false;
    found.emplace(count, with_angles);
    std::memcpy(found->start(), reinterpret_cast<const void *>(address), found->bytes());
    return true;
}

}  // namespace

nb::object guard_boxes(uintptr_t address, size_t size, size_t count, bool with_angles) {
    std::optional<NumpyBoxes> found;
    if (!copy_boxes(address, size, count, with_angles, found)) return nb::none();
    return nb::make_tuple(found->boxes(), found->scores(), found->ids(), found->angles(),
                          sound_boxes(found->arrays(), count), found->bytes());
}

void GuardAsk::learn(nb::object network, nb::object params, const nb::dict &layers,
                     const std::vector<size_t> &offsets, const std::vector<size_t> &sizes,
                     const GuardPrepared &prepared,
                     nb::object owner) {
    prepared_.reset();
    tensors_.clear();
    const size_t count = std::min(offsets.size(), sizes.size());
    for (const auto &[name_, layer] : layers) {
        const nb::object name = nb::borrow(name_);
        ArrayView view;
        const size_t i = tensors_.size();
        if (!view.open_layer(nb::borrow(layer), PyBUF_FORMAT)) {
            PyErr_Clear();
            return;
        }
        if (i == count || static_cast<size_t>(view->len) != sizes[i]) return;
        tensors_.push_back({name, view->format, {view->shape, view->shape + view->ndim}, offsets[i]});
    }
    if (tensors_.size() != count) return;
    network_ = std::move(network);
    params_ = std::move(params);
    owner_ = std::move(owner);
    prepared_.emplace(prepared);
    process_ = getpid();
    learned_ = lock_.entries();
}

bool GuardAsk::is_learned(nb::handle layers, nb::handle network, nb::handle params) const {
    return prepared_ && prepared_->calls && is_current() && network.is(network_) &&
           params.is(params_) && PyDict_CheckExact(layers.ptr()) && process_ == getpid();
}

bool GuardAsk::is(const Tensor &tensor, nb::handle name, const Py_buffer &buffer) {
    return (name.is(tensor.name) || name.equal(tensor.name)) && tensor.format == buffer.format &&
           std::equal(tensor.shape.begin(), tensor.shape.end(), buffer.shape,
                      buffer.shape + buffer.ndim);
}

// False if the layers are others.
bool GuardAsk::bind(const nb::dict &layers, ArrayView *views, GuardRequest &request) const {
    if (layers.size() != tensors_.size()) return false;
    size_t i = 0;
    for (const auto &[name_, layer] : layers) {
        const nb::object name = nb::borrow(name_);
        if (i == tensors_.size()) return false;
        if (!views[i].open_layer(nb::borrow(layer), PyBUF_FORMAT)) {
            PyErr_Clear();
            return false;
        }
        if (!is(tensors_[i], name, *views[i])) return false;
        request.add(*views[i], prepared_->in + tensors_[i].offset, prepared_->slots);
        ++i;
    }
    return i == tensors_.size();
}

// Of an answer that is nothing but sound boxes; else invalid.
nb::object GuardAsk::detections(const char *ending) const {
    // Each word is read once: the worker can change it at any time.
    const volatile uint64_t *const said = prepared_->worker.channel.words();
    const uint64_t count = said[guard_values], flags = said[guard_values + 1];
    const size_t size = prepared_->out_size;
    if (std::strcmp(ending, "given") || said[guard_status] || said[guard_side_bytes] ||
        said[guard_wrote] || said[guard_output_size] > size || count > prepared_->most ||
        (flags & ~guard_has_angles))
        return {};
    std::optional<NumpyBoxes> found;
    if (!copy_boxes(prepared_->out, size, count, flags & guard_has_angles, found)) return {};
    return sound_boxes(found->arrays(), count) ? found->detections() : nb::object();
}

nb::object GuardAsk::call(nb::handle checked, nb::handle layers, nb::handle network,
                          nb::handle params) {
    if (!is_learned(layers, network, params)) return call_further(checked, layers, network, params);
    CallLock::Call call(lock_);
    if (!call) return call_further(checked, layers, network, params);
    const ArrayViews views(new ArrayView[tensors_.size()]);
    GuardRequest request(tensors_.size());
    if (!bind(nb::borrow<nb::dict>(layers), views.get(), request) || !is_current()) {
        call.end();
        return call_further(checked, layers, network, params);
    }
    const nb::object owner = owner_;
    const GuardWorker worker = prepared_->worker;
    const GuardBusy busy(worker.channel);
    worker.channel.words()[guard_op] = guard_call;
    const char *ending;
    try {
        ending = request.ask(worker, prepared_->timeout_s);
    } catch (const nb::python_error &) {  // Ctrl-C: its answer would be taken for the next one's
        call_method("break_off", checked);
        throw;
    }
    const nb::object found = detections(ending);
    if (found.is_valid()) {
        --prepared_->calls;
        worker.channel.count_answered();
        return found;
    }
    return call_method("finish", checked, layers, network, params, nb::str(ending));
}
