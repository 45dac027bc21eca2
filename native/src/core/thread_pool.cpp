#include "core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>

namespace headrace::core {

#endif

namespace {

constexpr int kMaxHelpers = 63;
constexpr int kSpins = 64;  // yields before sleeping: the last band is about to finish

// Never destroyed: helpers may still wait on it while the process exits.
std::atomic<ThreadPool *> pool{nullptr};

}  // namespace

struct ThreadPool::Batch {
    const std::function<void(int)> &task;
    const int count;
    int seats;  // helpers that may still join; guarded by the pool's mutex
    std::atomic<int> next{0};
    std::atomic<int> done{0};
    std::mutex mutex;
    std::condition_variable finished;
    std::exception_ptr error;

    Batch(const std::function<void(int)> &task, int count, int seats)
        : task(task), count(count), seats(seats) {}

    void help() {
        for (int i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
            try {
                task(i);
            } catch (...) {
                std::lock_guard lock(mutex);
                if (!error) error = std::current_exception();
            }
            if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
                std::lock_guard lock(mutex);
                finished.notify_all();
            }
        }
    }

    bool complete() const { return done.load(std::memory_order_acquire) == count; }
};

ThreadPool &ThreadPool::shared() {
    static const bool once = [] {
        pool = new ThreadPool;
#if defined(__unix__) || defined(__APPLE__)
        // The child has none of the threads and perhaps a locked mutex: it starts afresh.
        pthread_atfork(nullptr, nullptr, [] { pool = new ThreadPool; });
#endif
        return true;
    }();
    (void)once;
    return *pool;
}

int ThreadPool::helpers_for(int wanted) {
    wanted = std::min(wanted, kMaxHelpers);
    std::lock_guard lock(mutex_);
    try {
        for (; started_ < wanted; ++started_) std::thread([this] { work(); }).detach();
    } catch (const std::system_error &) {
        // No more threads to be had: those there are, and the caller, do the work.
    }
    return std::min(wanted, started_);
}

void ThreadPool::work() {
    for (;;) {
        std::shared_ptr<Batch> batch;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this] { return !queue_.empty(); });
            batch = queue_.front();
            if (--batch->seats == 0) queue_.pop_front();
        }
        batch->help();
    }
}

void ThreadPool::run(int threads, int count, const std::function<void(int)> &task) {
    const int helpers = count > 1 && threads > 1 ? helpers_for(std::min(threads, count) - 1) : 0;
    if (helpers == 0) {
        for (int i = 0; i < count; ++i) task(i);
        return;
    }
    auto batch = std::make_shared<Batch>(task, count, helpers);
    {
        std::lock_guard lock(mutex_);
        queue_.push_back(batch);
    }
    for (int i = 0; i < helpers; ++i) wake_.notify_one();
    batch->help();
    {
        std::lock_guard lock(mutex_);
        auto at = std::find(queue_.begin(), queue_.end(), batch);
        if (at != queue_.end()) queue_.erase(at);
    }
    for (int i = 0; i < kSpins && !batch->complete(); ++i) std::this_thread::yield();
    if (!batch->complete()) {
        std::unique_lock lock(batch->mutex);
        batch->finished.wait(lock, [&] { return batch->complete(); });
    }
    if (batch->error) std::rethrow_exception(batch->error);
}

}  // namespace headrace::core
