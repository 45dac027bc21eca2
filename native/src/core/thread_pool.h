#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace headrace::core {

// Threads that wait for work, shared by every kernel of the process.
//
// The caller always works along, so a call makes progress even if every helper is busy with other
// callers or could not be started. Safe to call from several threads at once and after fork().
class ThreadPool {
public:
    static ThreadPool &shared();

    // Runs task(0) ... task(count - 1), each once, on at most `threads` threads including the
    // caller's; returns when all are done and rethrows the first exception of a task.
    void run(int threads, int count, const std::function<void(int)> &task);

private:
    struct Batch;

    int helpers_for(int wanted);
    void work();

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::shared_ptr<Batch>> queue_;
    int started_ = 0;
};

}  // namespace headrace::core
