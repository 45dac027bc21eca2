// How an application and the worker that runs a user's library hand work to each other.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

// The start of the shared control page. What a request is about stands behind it, from byte 64 on.
struct GuardControl {
    std::atomic<uint32_t> request;        // number of the last request
    std::atomic<uint32_t> response;       // number of the last one answered
    std::atomic<uint32_t> parent_sleeps;  // wake it by its event
    std::atomic<uint32_t> worker_sleeps;
    std::atomic<uint32_t> worker_bound;   // to the application's core, until it frees itself
    std::atomic<uint64_t> worker_ns;      // from taking the last request to answering it
};

constexpr size_t guard_control_bytes = 4096;
constexpr size_t guard_words_at = 64;
// Words from here on tell, three for a tensor, where it is: 0 for where it was prepared to be, else
// its offset in the memory of outputs + 1; offset and size of the slot that it is in.
constexpr size_t guard_places_at = 64;
// Words of a request (the first three) and of an answer.
constexpr size_t guard_op = 0, guard_message_bytes = 1, guard_input_size = 2;
constexpr size_t guard_status = 16, guard_side_start = 17, guard_side_bytes = 18,
                 guard_output_size = 19, guard_values = 20, guard_wrote = 40;
constexpr uint64_t guard_message = 1, guard_call = 2;  // guard_op
constexpr uint64_t guard_has_angles = 1, guard_has_masks = 2;  // second value of boxes
constexpr size_t guard_max_places = ((guard_control_bytes - guard_words_at) / 8 - guard_places_at) / 3;

struct GuardCopy {
    void *to;
    const void *from;
    size_t bytes;
};

// closed: nothing can come any more, although the worker lives.
enum class GuardAnswer { given, died, late, interrupted, closed };

using GuardClock = std::chrono::steady_clock;

// One side's view of the page. The other side may write anything into it at any time: no number
// from there is used as a size or an index.
class GuardChannel {
public:
    // Maps the page. `link` is this side's end of a pair of sockets, over which the sides wake each
    // other; it stays the caller's. Throws std::runtime_error if the page cannot be mapped.
    GuardChannel(int page, int link);
    ~GuardChannel();
    GuardChannel(const GuardChannel &) = delete;
    GuardChannel &operator=(const GuardChannel &) = delete;

    // What requests and answers are written into.
    uint64_t *words() const {
        return reinterpret_cast<uint64_t *>(reinterpret_cast<char *>(control_) + guard_words_at);
    }

    // The application: a request is under way, from before it is posted until its answer was read;
    // and the worker was ended: no thread waits for an answer any more.
    bool busy = false, closed = false;

    // The application: copy tensors, say where the others are, then post a request.
    void post(const std::vector<GuardCopy> &copies, const std::vector<uint64_t> &places);
    // The application: wait for its answer. `process` is a pidfd. After `interrupted` wait again.
    GuardAnswer wait(GuardClock::time_point end, int process);

    // The worker: wait for a request; false if the application or the link is gone.
    bool next();
    // The worker: say that the request is answered; false if its descriptors are closed.
    bool answer();

    // The application, around post and wait: for as long as this lives, it and the worker may share
    // the core that it is on. Waking each other up on different ones takes longer where idle cores
    // sleep deeply (virtual machines), and less where another process wants this one: what took
    // less lately is done, and the other way tried now and then. The worker takes back its freedom
    // before it does anything else, so that threads of a library are where they want to be.
    class Together {
    public:
        Together(GuardChannel &channel, int worker);
        ~Together();
        Together(const Together &) = delete;
        Together &operator=(const Together &) = delete;

    private:
        GuardChannel &channel_;
        cpu_set_t before_;
        bool one_core_ = false;
        uint32_t number_;
    };

    // Ends the process if it is a copy that a library forked: it must neither answer in the worker's
    // place nor write where the worker answers. Called when code of the library returns.
    void leave_if_forked() const;

private:
    void wake(std::atomic<uint32_t> &sleeps);
    GuardControl *control_ = nullptr;
    int link_;
    int owner_;             // process id
    uint32_t served_ = 0;   // worker: number of the last request taken
    cpu_set_t cores_;       // that this process may use
    GuardClock::time_point taken_, posted_;
    double cost_us_[2] = {0, 0};  // of a call beside the worker's own time: where it likes, here
    unsigned int calls_ = 0;
};
