// Requests of the application: tensors on their way to the worker, and boxes on their way back.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "array_view.h"
#include "call_lock.h"
#include "guard_channel.h"
#include "guard_memory.h"
#include "quick_call.h"

// Who is asked: the channel to it, its process id and a pidfd of it.
struct GuardWorker {
    GuardChannel &channel;
    int id;
    int process;
};

// One request about tensors.
class GuardRequest {
public:
    explicit GuardRequest(size_t tensors) : places_(3 * tensors, 0) {}

    // The next tensor: read by the worker where it is if that is in one of `slots` (or null), copied
    // otherwise.
    void add(const Py_buffer &tensor, uintptr_t to, const GuardSlots *slots);

    // Posts it and waits: "given", "died", "late", "nonsense" or "closed". Signals of the application are
    // handled meanwhile: what their handlers raise is thrown.
    const char *ask(const GuardWorker &worker, double timeout_s);

private:
    bool on_pages_of_others(uintptr_t start, size_t bytes) const;

    std::vector<GuardCopy> copies_;
    std::vector<uint64_t> places_;
    std::vector<std::pair<uintptr_t, uintptr_t>> shared_;
    size_t count_ = 0;
};

// "given", ... of the request that was posted last.
const char *guard_wait(GuardChannel &channel, double timeout_s, int process);

// Boxes that a worker left: (boxes, scores, class ids, angles or None, whether they are sound, bytes
// that they take); None if there is no room for as many.
nanobind::object guard_boxes(uintptr_t address, size_t size, size_t count, bool with_angles);

// What calls of one detector parser need to know, as Python last saw to it.
struct GuardPrepared {
    GuardWorker worker;
    const GuardSlots *slots;
    double timeout_s;
    uintptr_t in;  // the input region
    uintptr_t out;
    size_t out_size;  // of the output region
    size_t most;      // boxes that are no error
    uint64_t calls;   // that may be done before Python is to be asked
};

// Calls of a detector parser that the worker was prepared for, without Python.
class GuardAsk : public QuickCalls {
public:
    explicit GuardAsk(CallLock &lock) : lock_(lock) {}

    // The lock is held, the worker is prepared for calls with these. `layers`: a dict of noria.Layer
    // as it will be given; `offsets`: of the input region, where tensors are copied to that are in
    // none of the slots; `sizes`: their bytes. `owner` keeps what the worker's references are to, and
    // its memory. Layers that cannot be given so are not learned.
    void learn(nanobind::object network, nanobind::object params, const nanobind::dict &layers,
               const std::vector<size_t> &offsets, const std::vector<size_t> &sizes,
               const GuardPrepared &prepared,
               nanobind::object owner);

    // Detections; `checked.further(layers, network, params)` for calls that are not as learned, or
    // after the lock was entered; `checked.finish(layers, network, params, ending)` if there is more
    // to an answer than sound boxes, with the lock held and the channel busy: `ending` is how the
    // request ended. If the wait was broken off, `checked.break_off()` first.
    nanobind::object call(nanobind::handle checked, nanobind::handle layers,
                          nanobind::handle network, nanobind::handle params) override;

private:
    struct Tensor {
        nanobind::object name;
        std::string format;
        std::vector<Py_ssize_t> shape;
        size_t offset;
    };

    static bool is(const Tensor &tensor, nanobind::handle name, const Py_buffer &buffer);
    // Nobody has asked for anything else: what was learned is still there. A signal's handler or a
    // layer's code can, as their thread has the lock.
    bool is_current() const { return learned_ == lock_.entries(); }
    bool is_learned(nanobind::handle layers, nanobind::handle network,
                    nanobind::handle params) const;
    bool bind(const nanobind::dict &layers, ArrayView *views, GuardRequest &request) const;
    nanobind::object detections(const char *ending) const;

    CallLock &lock_;
    std::optional<GuardPrepared> prepared_;
    nanobind::object network_, params_, owner_;
    std::vector<Tensor> tensors_;
    uint64_t learned_ = 0;  // entries of the lock then
    int process_ = 0;       // this one: copies of it have no worker
};
