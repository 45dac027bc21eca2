// How an application and the worker that runs a user's library hand work to each other.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::guard {

// The start of the shared control page. What a request is about stands behind it, from byte 64 on.
struct Control {
    std::atomic<uint32_t> request;        // number of the last request
    std::atomic<uint32_t> response;       // number of the last one answered
    std::atomic<uint32_t> parent_sleeps;  // wake it by its event
    std::atomic<uint32_t> worker_sleeps;
    std::atomic<uint32_t> worker_bound;  // to the application's core, until it frees itself
    std::atomic<uint64_t> worker_ns;     // from taking the last request to answering it
};

constexpr size_t kControlBytes = 4096;
constexpr size_t kWordsAt = 64;
// Words from here on tell, three for a tensor, where it is: 0 for where it was prepared to be, else
// its offset in the memory of outputs + 1; offset and size of the slot that it is in.
constexpr size_t kPlacesAt = 64;
// Words of a request (the first three) and of an answer.
constexpr size_t kOp = 0, kMessageBytes = 1, kInputSize = 2;
constexpr size_t kStatus = 16, kSideStart = 17, kSideBytes = 18, kOutputSize = 19, kValues = 20,
                 kWrote = 40;
constexpr uint64_t kMessage = 1, kCall = 2;        // kOp
constexpr uint64_t kHasAngles = 1, kHasMasks = 2;  // second value of boxes
constexpr size_t kMaxPlaces = ((kControlBytes - kWordsAt) / 8 - kPlacesAt) / 3;

struct Copy {
    void *to;
    const void *from;
    size_t bytes;
};

// closed: nothing can come any more, although the worker lives.
enum class Answer { kGiven, kDied, kLate, kInterrupted, kClosed };

using Clock = std::chrono::steady_clock;

// One side's view of the page. The other side may write anything into it at any time: no number
// from there is used as a size or an index.
class Channel {
public:
    // Maps the page. `link` is this side's end of a pair of sockets, over which the sides wake each
    // other; it stays the caller's. Throws std::runtime_error if the page cannot be mapped.
    Channel(int page, int link);
    ~Channel();
    Channel(const Channel &) = delete;
    Channel &operator=(const Channel &) = delete;

    // What requests and answers are written into.
    uint64_t *words() const {
        return reinterpret_cast<uint64_t *>(reinterpret_cast<char *>(control_) + kWordsAt);
    }

    // The application: a request is under way, from before it is posted until its answer was read;
    // and the worker was ended: no thread waits for an answer any more.
    bool busy = false, closed = false;

    // The application: copy tensors, say where the others are, then post a request.
    void post(const std::vector<Copy> &copies, const std::vector<uint64_t> &places);
    // The application: wait for its answer. `process` is a pidfd. After `interrupted` wait again.
    Answer wait(Clock::time_point end, int process);

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
        Together(Channel &channel, int worker);
        ~Together();
        Together(const Together &) = delete;
        Together &operator=(const Together &) = delete;

    private:
        Channel &channel_;
        cpu_set_t before_;
        bool one_core_ = false;
        uint32_t number_;
    };

    // Ends the process if it is a copy that a library forked: it must neither answer in the
    // worker's place nor write where the worker answers. Called when code of the library returns.
    void leave_if_forked() const;

private:
    void wake(std::atomic<uint32_t> &sleeps);
    Control *control_ = nullptr;
    int link_;
    int owner_;            // process id
    uint32_t served_ = 0;  // worker: number of the last request taken
    cpu_set_t cores_;      // that this process may use
    Clock::time_point taken_, posted_;
    double cost_us_[2] = {0, 0};  // of a call beside the worker's own time: where it likes, here
    unsigned int calls_ = 0;
};

}  // namespace headrace::guard
