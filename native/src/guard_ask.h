// Requests of the application: tensors on their way to the worker, and boxes on their way back.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "guard_channel.h"
#include "guard_memory.h"

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

    // Posts it and waits: "given", "died", "late" or "nonsense". Signals of the application are
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

// Calls of the detector parser that the worker was prepared for last.
class GuardAsk {
public:
    // `layers`: a dict of noria.Layer as it will be given; `offsets`: of the input region, where
    // tensors are copied to that are in none of `slots`.
    GuardAsk(const GuardWorker &worker, const nanobind::dict &layers,
             const std::vector<size_t> &offsets, const GuardSlots *slots);

    // False if the layers are others: nothing was asked then. What `guard_boxes` gives if boxes are
    // all that the worker has to say, and they are sound and no more than `most`. Else how the
    // request ended, for Python to see to. The input region begins at `in`, the output region has
    // `size` bytes from `out` on.
    nanobind::object boxes(const nanobind::dict &layers, double timeout_s, uintptr_t in,
                           uintptr_t out, size_t size, size_t most);

private:
    struct Tensor {
        nanobind::object name;
        std::string format;
        std::vector<Py_ssize_t> shape;
        size_t offset;
    };

    static bool is(const Tensor &tensor, nanobind::handle name, const Py_buffer &buffer);

    GuardWorker worker_;
    std::vector<Tensor> tensors_;
    const GuardSlots *slots_;
};
