// Requests of the application: tensors on their way to the worker.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "guard_channel.h"
#include "guard_memory.h"

// One call of a function in the worker.
class GuardRequest {
public:
    explicit GuardRequest(size_t tensors) : places_(3 * tensors, 0) {}

    // Adds the next tensor. The worker reads it in place if it is in one of `slots` (or null), else
    // it is copied to `to`.
    void add(const Py_buffer &tensor, uintptr_t to, const GuardSlots *slots);

    // Posts the request and waits for `timeout_s`: "answered", "died", "late", "nonsense" or "closed".
    // `worker`: process id; `process`: a pidfd of it. Runs the application's signal handlers
    // meanwhile; throws what they raise.
    const char *ask(GuardChannel &channel, int worker, int process, double timeout_s);

private:
    bool on_pages_of_others(uintptr_t start, size_t bytes) const;

    std::vector<GuardCopy> copies_;
    std::vector<uint64_t> places_;
    std::vector<std::pair<uintptr_t, uintptr_t>> shared_;
    size_t count_ = 0;
};
