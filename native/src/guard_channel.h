// How an application and the worker that runs a user's library hand work to each other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

// The start of the shared control page. What a request is about stands behind it, from byte 64 on.
struct GuardControl {
    std::atomic<uint32_t> request;        // number of the last request
    std::atomic<uint32_t> response;       // number of the last one answered
    std::atomic<uint32_t> coming;         // number of a request whose tensors are being copied
    std::atomic<uint32_t> parent_sleeps;  // wake it by its event
    std::atomic<uint32_t> worker_sleeps;
};

constexpr size_t guard_control_bytes = 4096;

struct GuardCopy {
    void *to;
    const void *from;
    size_t bytes;
};

enum class GuardAnswer { given, died, late, interrupted };

// One side's view of the page. The other side may write anything into it at any time: no number
// from there is used as a size or an index.
class GuardChannel {
public:
    // Maps the page. `my_event` wakes this side, `other_event` the other: file descriptors of
    // eventfd, which stay the caller's. Throws std::runtime_error if the page cannot be mapped.
    GuardChannel(int page, int my_event, int other_event);
    ~GuardChannel();
    GuardChannel(const GuardChannel &) = delete;
    GuardChannel &operator=(const GuardChannel &) = delete;

    // The application: copy tensors, then post a request. The worker is woken before the copy.
    void post(const std::vector<GuardCopy> &copies);
    // The application: wait for its answer. `process` is a pidfd. After `interrupted` wait again.
    GuardAnswer wait(double timeout_s, int process);

    // The worker: wait for a request; false if there is nobody to wait for.
    bool next();
    // The worker: say that the request is answered; false if its descriptors are closed.
    bool answer();

private:
    static void wake(std::atomic<uint32_t> &sleeps, int event);
    bool spin_for_answer();
    bool spin_for_request();

    GuardControl *control_ = nullptr;
    int my_event_, other_event_;
    uint32_t served_ = 0;   // worker: number of the last request taken
    int spin_us_ = 40;      // halved by every wait that it did not shorten
    unsigned int calls_ = 0;
};
