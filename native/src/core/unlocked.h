// Work without the GIL, and with it in threads of others.
#pragma once
#include <Python.h>
#include <unistd.h>

#include <cstddef>

namespace headrace::core {

// A thread that wants the GIL while the interpreter exits is ended by Python (before 3.14) by
// unwinding its stack, which no C++ function that cleans up after itself survives: it stays where
// it is instead.
template <typename Do>
auto or_stay(Do act) {
    try {
        return act();
    } catch (...) {  // C functions throw nothing else
        for (;;) pause();
    }
}

// Work on so few objects takes less time than a thread needs to give the GIL up and get it back.
constexpr std::size_t kFew = 256;

class Unlocked {
public:
    explicit Unlocked(bool worthwhile = true)
        : state_(worthwhile ? PyEval_SaveThread() : nullptr) {}
    ~Unlocked() {
        if (state_) or_stay([&] { PyEval_RestoreThread(state_); });
    }
    Unlocked(const Unlocked &) = delete;
    Unlocked &operator=(const Unlocked &) = delete;

private:
    PyThreadState *state_;
};

inline bool has_gil() {
    if (!Py_IsInitialized()) return false;
#ifdef Py_LIMITED_API  // it lacks the function below; its threads have states of their own
    return PyThreadState_GetDict() != nullptr;
#else
    return PyGILState_Check() != 0;
#endif
}

// For calls that take the dynamic loader's lock. A thread that loads a library holds that lock
// while initialisers run, and those may wait for the GIL: who has the GIL must not wait for the
// lock.
class UnlockedForLoader : public Unlocked {
public:
    UnlockedForLoader() : Unlocked(has_gil()) {}
};

class Locked {
public:
    Locked() : state_(or_stay([] { return PyGILState_Ensure(); })) {}
    ~Locked() { PyGILState_Release(state_); }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;

private:
    PyGILState_STATE state_;
};

}  // namespace headrace::core
