#include "call_lock.h"

#include <new>
#include <stdexcept>

#include "module.h"

namespace nb = nanobind;

CallLock::CallLock() : lock_(PyThread_allocate_lock()) {
    if (!lock_) throw std::bad_alloc();
}

CallLock::~CallLock() { PyThread_free_lock(lock_); }

void CallLock::take() {
    owner_ = PyThread_get_thread_ident();
    depth_ = 1;
}

void CallLock::let_go() {
    owner_ = 0;
    depth_ = 0;
    PyThread_release_lock(lock_);
}

void CallLock::enter() {
    if (depth_ && owner_ == PyThread_get_thread_ident()) {
        ++depth_;
    } else {
        while (!PyThread_acquire_lock(lock_, NOWAIT_LOCK)) {
            PyLockStatus status;
            {
                nb::gil_scoped_release unlocked;
                status = PyThread_acquire_lock_timed(lock_, -1, 1);
            }
            if (status == PY_LOCK_ACQUIRED) break;
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        }
        take();
    }
    ++entries_;
}

void CallLock::leave() {
    if (!depth_ || owner_ != PyThread_get_thread_ident())
        throw std::runtime_error("this thread has not entered the lock");
    if (--depth_ == 0) let_go();
}

CallLock::Call::Call(CallLock &lock)
    : lock_(lock), has_it_(PyThread_acquire_lock(lock.lock_, NOWAIT_LOCK)) {
    if (!has_it_) return;
    lock_.take();
    lock_.inside = true;
}

CallLock::Call::~Call() {
    if (!has_it_) return;
    lock_.inside = false;
    lock_.let_go();
}

void bind_call_lock(nb::module_ &m) {
    using namespace nb::literals;
    nb::class_<CallLock>(m, "CallLock",
                         "Who may call a user's code now: a lock that its thread may enter again.")
        .def(nb::init<>())
        .def("__enter__", &CallLock::enter)
        .def(
            "__exit__",
            [](CallLock &lock, nb::handle, nb::handle, nb::handle) { lock.leave(); },
            "kind"_a.none(), "error"_a.none(), "trace"_a.none())
        .def_rw("inside", &CallLock::inside,
                "The user's code is being called, by the thread that has the lock.");
}
