// Who may call a user's code now.
#include <nanobind/nanobind.h>
#include <pthread.h>

#include <cstdint>
#include <new>
#include <stdexcept>

#include "core/unlocked.h"
#include "module.h"

namespace nb = nanobind;

namespace headrace::core {
namespace {

int forks = 0;               // that this process is behind the first one
unsigned long survivor = 0;  // the one thread that the last of them left

void count_fork() {
    ++forks;
    survivor = PyThread_get_thread_ident();
}

// A lock that its thread may enter again. All is done with the GIL, which is released while
// waiting; signals are handled meanwhile. In a forked process only the thread that forked can still
// have it.
class CallLock {
public:
    CallLock() : lock_(PyThread_allocate_lock()), forks_(forks) {
        if (!lock_) throw std::bad_alloc();
    }
    ~CallLock() { PyThread_free_lock(lock_); }
    CallLock(const CallLock &) = delete;
    CallLock &operator=(const CallLock &) = delete;

    void enter() {
        renew_in_child();
        if (depth_ && owner_ == PyThread_get_thread_ident()) {
            ++depth_;
            return;
        }
        while (!PyThread_acquire_lock(lock_, NOWAIT_LOCK)) {
            PyLockStatus status;
            {
                Unlocked unlocked;
                status = PyThread_acquire_lock_timed(lock_, -1, 1);
            }
            if (status == PY_LOCK_ACQUIRED) break;
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        }
        owner_ = PyThread_get_thread_ident();
        depth_ = 1;
    }

    void leave() {
        if (!depth_ || owner_ != PyThread_get_thread_ident())
            throw std::runtime_error("this thread has not entered the lock");
        if (--depth_) return;
        owner_ = 0;
        inside = false;
        PyThread_release_lock(lock_);
    }

    bool inside = false;  // the user's code is being called, by the thread that has the lock

private:
    // What another thread had when this process was forked stays taken for ever.
    void renew_in_child() {
        if (forks_ == forks) return;
        if (depth_ == 0 || owner_ != survivor) {
            const PyThread_type_lock fresh = PyThread_allocate_lock();
            if (!fresh) throw std::bad_alloc();
            lock_ = fresh;  // the other one is left: it may not be freed while it is taken
            owner_ = 0;
            depth_ = 0;
            inside = false;
        }
        forks_ = forks;
    }

    PyThread_type_lock lock_;
    unsigned long owner_ = 0;
    uint64_t depth_ = 0;
    int forks_;  // of this process before it was held last
};

}  // namespace

void bind_call_lock(nb::module_ &m) {
    using namespace nb::literals;
    pthread_atfork(nullptr, nullptr, count_fork);
    nb::class_<CallLock>(m, "CallLock",
                         "Who may call a user's code now: a lock that its thread may enter again.")
        .def(nb::init<>())
        .def("__enter__", &CallLock::enter)
        .def(
            "__exit__", [](CallLock &lock, nb::handle, nb::handle, nb::handle) { lock.leave(); },
            "kind"_a.none(), "error"_a.none(), "trace"_a.none())
        .def_rw("inside", &CallLock::inside,
                "The user's code is being called, by the thread that has the lock.");
}

}  // namespace headrace::core
