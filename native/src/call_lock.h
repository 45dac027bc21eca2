// Who may call a user's code now.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>

// A lock that its thread may enter again. All is done with the GIL, which is released while waiting;
// signals are handled meanwhile. In a forked process only the thread that forked can still have it.
class CallLock {
public:
    CallLock();
    ~CallLock();
    CallLock(const CallLock &) = delete;
    CallLock &operator=(const CallLock &) = delete;

    void enter();
    void leave();  // std::runtime_error: this thread has not entered

    bool inside = false;  // the user's code is being called, by the thread that has the lock

private:
    void renew_in_child();
    void take();
    void let_go();

    PyThread_type_lock lock_;
    unsigned long owner_ = 0;
    uint64_t depth_ = 0;
    int forks_;  // of this process before it was held last
};
