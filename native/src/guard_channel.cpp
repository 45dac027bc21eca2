#include "guard_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <thread>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#define NORIA_PAUSE() _mm_pause()
#elif defined(__aarch64__)
#define NORIA_PAUSE() asm volatile("yield")
#else
#define NORIA_PAUSE() ((void)0)
#endif

namespace {

using Clock = std::chrono::steady_clock;
constexpr int max_spin_us = 80;
constexpr int coming_spin_us = 3000;  // longer than copying any usual tensor takes
constexpr unsigned int probe_every = 32;

void drain(int event) {
    uint64_t count;
    while (read(event, &count, sizeof count) < 0 && errno == EINTR) {
    }
}

bool several_cores() {
    static const bool several = std::thread::hardware_concurrency() > 1;
    return several;
}

}  // namespace

GuardChannel::GuardChannel(int page, int my_event, int other_event)
    : my_event_(my_event), other_event_(other_event) {
    void *at = mmap(nullptr, guard_control_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    if (at == MAP_FAILED) throw std::runtime_error(std::strerror(errno));
    control_ = static_cast<GuardControl *>(at);
    served_ = control_->response.load();
}

GuardChannel::~GuardChannel() { munmap(control_, guard_control_bytes); }

void GuardChannel::wake(std::atomic<uint32_t> &sleeps, int event) {
    if (!sleeps.exchange(0)) return;
    const uint64_t one = 1;
    while (write(event, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

void GuardChannel::post(const std::vector<GuardCopy> &copies) {
    const uint32_t number = control_->request.load() + 1;
    if (several_cores() && !copies.empty()) {  // it wakes up while the tensors are copied
        control_->coming.store(number);
        wake(control_->worker_sleeps, other_event_);
    }
    for (const GuardCopy &copy : copies) std::memcpy(copy.to, copy.from, copy.bytes);
    control_->request.store(number);
    wake(control_->worker_sleeps, other_event_);
}

bool GuardChannel::spin_for_answer() {
    if (!several_cores()) return false;
    int budget = spin_us_;
    if (budget == 0 && ++calls_ % probe_every == 0) budget = max_spin_us / 2;
    if (budget == 0) return false;
    const uint32_t wanted = control_->request.load();
    const auto end = Clock::now() + std::chrono::microseconds(budget);
    do {
        for (int i = 0; i < 32; ++i) {
            if (control_->response.load(std::memory_order_acquire) == wanted) {
                spin_us_ = std::min(2 * budget, max_spin_us);
                return true;
            }
            NORIA_PAUSE();
        }
    } while (Clock::now() < end);
    spin_us_ = budget / 2;
    return false;
}

GuardAnswer GuardChannel::wait(double timeout_s, int process) {
    const uint32_t wanted = control_->request.load();
    const auto answered = [&] { return control_->response.load() == wanted; };
    if (answered() || spin_for_answer()) return GuardAnswer::given;
    const auto end = Clock::now() + std::chrono::duration<double>(timeout_s);
    while (true) {
        control_->parent_sleeps.store(1);
        if (answered()) return GuardAnswer::given;
        const double left = std::chrono::duration<double>(end - Clock::now()).count();
        pollfd waiting[] = {{my_event_, POLLIN, 0}, {process, POLLIN, 0}};
        const int ready = poll(waiting, 2, left <= 0 ? 0 : static_cast<int>(std::ceil(left * 1e3)));
        if (ready < 0 && errno == EINTR) return answered() ? GuardAnswer::given : GuardAnswer::interrupted;
        if (ready < 0) throw std::runtime_error(std::strerror(errno));
        if (waiting[0].revents) drain(my_event_);
        if (answered()) return GuardAnswer::given;
        if (waiting[1].revents) return GuardAnswer::died;
        if (left <= 0) return GuardAnswer::late;
    }
}

// Items of one batch follow each other at once; between batches there is nothing to wait for.
bool GuardChannel::spin_for_request() {
    if (!several_cores() || served_ == 0) return false;
    int budget = spin_us_;
    if (budget == 0 && ++calls_ % probe_every == 0) budget = max_spin_us / 2;
    const auto end = Clock::now() + std::chrono::microseconds(budget);
    while (budget && Clock::now() < end)
        for (int i = 0; i < 32; ++i) {
            if (control_->request.load(std::memory_order_acquire) != served_ ||
                control_->coming.load(std::memory_order_acquire) == served_ + 1) {
                spin_us_ = std::min(2 * budget, max_spin_us);
                return control_->request.load(std::memory_order_acquire) != served_;
            }
            NORIA_PAUSE();
        }
    spin_us_ = budget / 2;
    return false;
}

bool GuardChannel::next() {
    const auto posted = [&] { return control_->request.load(std::memory_order_acquire) != served_; };
    while (true) {
        if (spin_for_request()) break;
        if (control_->coming.load() == served_ + 1) {
            const auto end = Clock::now() + std::chrono::microseconds(coming_spin_us);
            for (int round = 0; !posted() && Clock::now() < end; ++round) {
                for (int i = 0; i < 64 && !posted(); ++i) NORIA_PAUSE();
                if (round > 8) sched_yield();
            }
        }
        if (posted()) break;
        control_->worker_sleeps.store(1);
        if (posted()) break;
        // A request that is coming is not slept through: its announcement may precede the flag.
        pollfd waiting{my_event_, POLLIN, 0};
        const int ready = poll(&waiting, 1, -1);
        if (ready < 0 && errno != EINTR) return false;
        if (ready > 0 && !(waiting.revents & POLLIN)) return false;  // the library closed it
        if (ready > 0) drain(my_event_);
    }
    served_ = control_->request.load();
    return true;
}

bool GuardChannel::answer() {
    if (fcntl(my_event_, F_GETFD) < 0 || fcntl(other_event_, F_GETFD) < 0) return false;
    control_->response.store(served_);
    wake(control_->parent_sleeps, other_event_);
    return true;
}
