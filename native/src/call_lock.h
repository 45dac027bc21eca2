// Who may call a user's code now.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>

// A lock that the thread which has it may enter again, and that a call without Python can try for.
// All is done with the GIL, which is let go of while waiting; signals are handled meanwhile. In a
// forked process nobody has it but the thread that forked.
class CallLock {
public:
    CallLock();
    ~CallLock();
    CallLock(const CallLock &) = delete;
    CallLock &operator=(const CallLock &) = delete;

    void enter();
    void leave();  // std::runtime_error: this thread has not entered

    // How often it was entered so far. What a call needs to know can have changed since another
    // number.
    uint64_t entries() const { return entries_; }

    bool inside = false;  // the user's code is being called, by the thread that has the lock

    // One call by a thread that need not wait for others, and is in no call. It is no entry.
    class Call {
    public:
        explicit Call(CallLock &lock);
        ~Call();
        Call(const Call &) = delete;
        Call &operator=(const Call &) = delete;

        explicit operator bool() const { return has_it_; }
        void end() { lock_.inside = false; }  // of the user's code; the lock is kept

    private:
        CallLock &lock_;
        bool has_it_;
    };

private:
    void renew_in_child();
    void take();
    void let_go();

    PyThread_type_lock lock_;
    unsigned long owner_ = 0;
    uint64_t depth_ = 0, entries_ = 0;
    int forks_;  // of this process before it was held last
};
