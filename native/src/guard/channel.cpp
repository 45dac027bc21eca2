#include "guard/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace headrace::guard {
namespace {

constexpr unsigned int kTryEvery = 24;
constexpr double kMostMs = 1e9;   // of one wait
constexpr double kMostUs = 2000;  // of one call: a slice of another process is no more expensive

// Neither of these waits, whatever the other side has done to the socket that it shares.
bool drain(int link) {
    char bytes[256];
    return recv(link, bytes, sizeof bytes, MSG_DONTWAIT) != 0;  // 0: nothing comes any more
}

void knock(int link) {
    const char one = 1;
    while (send(link, &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
}

}  // namespace

Channel::Channel(int page, int link) : link_(link), owner_(getpid()) {
    void *at = mmap(nullptr, kControlBytes, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    if (at == MAP_FAILED) throw std::runtime_error(std::strerror(errno));
    control_ = static_cast<Control *>(at);
    served_ = control_->response.load();
    CPU_ZERO(&cores_);
    sched_getaffinity(0, sizeof cores_, &cores_);
}

Channel::~Channel() { munmap(control_, kControlBytes); }

void Channel::wake(std::atomic<uint32_t> &sleeps) {
    if (sleeps.exchange(0)) knock(link_);
}

void Channel::post(const std::vector<Copy> &copies, const std::vector<uint64_t> &places) {
    const uint32_t number = control_->request.load() + 1;
    for (const Copy &copy : copies) std::memcpy(copy.to, copy.from, copy.bytes);
    const size_t count = std::min(places.size(), 3 * kMaxPlaces);
    std::copy_n(places.begin(), count, words() + kPlacesAt);
    posted_ = Clock::now();
    control_->request.store(number);
    wake(control_->worker_sleeps);
}

Answer Channel::wait(Clock::time_point end, int process) {
    const uint32_t wanted = control_->request.load();
    const auto answered = [&] { return control_->response.load() == wanted; };
    if (answered()) return Answer::kGiven;
    while (true) {
        control_->parent_sleeps.store(1);
        if (answered()) return Answer::kGiven;
        const double left = std::chrono::duration<double>(end - Clock::now()).count();
        pollfd waiting[] = {{link_, POLLIN, 0}, {process, POLLIN, 0}};
        const double wait_ms = std::clamp(std::ceil(left * 1e3), 0.0, kMostMs);
        const int ready = poll(waiting, 2, static_cast<int>(wait_ms));
        if (ready < 0 && errno == EINTR) return answered() ? Answer::kGiven : Answer::kInterrupted;
        if (ready < 0) throw std::runtime_error(std::strerror(errno));
        const bool open = !waiting[0].revents || drain(link_);
        if (answered()) return Answer::kGiven;
        if (waiting[1].revents) return Answer::kDied;
        if (left <= 0) return Answer::kLate;
        if (!open) return Answer::kClosed;
    }
}

Channel::Together::Together(Channel &channel, int worker)
    : channel_(channel), number_(channel.control_->request.load()) {
    const double *cost = channel.cost_us_;
    one_core_ = cost[1] < cost[0];
    if (++channel.calls_ % kTryEvery == 0) one_core_ = !one_core_;
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_ZERO(&before_);
    const int core = one_core_ ? sched_getcpu() : -1;
    one_core_ =
        core >= 0 && core < CPU_SETSIZE && sched_getaffinity(0, sizeof before_, &before_) == 0;
    if (!one_core_) return;
    CPU_SET(core, &here);
    one_core_ = sched_setaffinity(0, sizeof here, &here) == 0;
    if (!one_core_) return;
    channel.control_->worker_bound.store(1);
    sched_setaffinity(worker, sizeof here, &here);
}

Channel::Together::~Together() {
    if (one_core_) sched_setaffinity(0, sizeof before_, &before_);
    Control &control = *channel_.control_;
    if (control.response.load() == number_) return;  // not answered
    const double all =
        std::chrono::duration<double, std::micro>(Clock::now() - channel_.posted_).count();
    const double cost = all - static_cast<double>(control.worker_ns.load()) / 1e3;
    double &mean = channel_.cost_us_[one_core_];
    const double sample = std::min(std::max(cost, 0.0), kMostUs);
    mean = mean == 0 ? sample : mean + (sample - mean) / 8;
}

void Channel::leave_if_forked() const {
    if (getpid() != owner_) _exit(0);
}

bool Channel::next() {
    const auto posted = [&] {
        return control_->request.load() != served_;  // behind the note that this side sleeps
    };
    while (!posted()) {
        control_->worker_sleeps.store(1);
        if (posted()) break;
        pollfd waiting{link_, POLLIN, 0};
        const int ready = poll(&waiting, 1, -1);
        if (ready < 0 && errno != EINTR) return false;
        if (ready > 0 && !(waiting.revents & POLLIN)) return false;  // the library closed it
        if (ready > 0 && !drain(link_)) return false;
    }
    leave_if_forked();
    if (control_->worker_bound.exchange(0)) sched_setaffinity(0, sizeof cores_, &cores_);
    taken_ = Clock::now();
    served_ = control_->request.load();
    return true;
}

bool Channel::answer() {
    leave_if_forked();
    if (fcntl(link_, F_GETFD) < 0) return false;
    const auto took = Clock::now() - taken_;
    control_->worker_ns.store(
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()));
    control_->response.store(served_);
    wake(control_->parent_sleeps);
    return true;
}

}  // namespace headrace::guard
