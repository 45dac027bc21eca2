// What is said when a library in this process ends it by a signal or by exit(): which plugin ran,
// and, by the program of the command line, which libraries are loaded.
#include "guard/crash_note.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>

#include "guard/crash.h"
#include "module.h"
#include "plugins/lent.h"

namespace headrace::guard {
namespace {

struct Fatal {
    int number;
    const char *name;
};
constexpr int kLibraryFailed = 5;  // `CustomLibraryError.exit_code`
constexpr Fatal kFatal[] = {{SIGSEGV, "SIGSEGV"},
                            {SIGBUS, "SIGBUS"},
                            {SIGFPE, "SIGFPE"},
                            {SIGILL, "SIGILL"},
                            {SIGABRT, "SIGABRT"}};

std::atomic<const std::string *> note{nullptr};
std::atomic<bool> written{false};
std::atomic<int> failure{kLibraryFailed};
std::atomic<bool> writing{false};

void say(const char *text, size_t size) {
    while (size) {
        const ssize_t count = write(STDERR_FILENO, text, size);
        if (count <= 0) return;
        text += count;
        size -= static_cast<size_t>(count);
    }
}

void say_note() {
    say(": ", 2);
    if (const std::string *text = note) say(text->data(), text->size());
    say("\n", 1);
}

void on_fatal(int number, siginfo_t *info, void *) {
    const bool by_plugin = plugins::runs_here();
    if ((by_plugin || note.load()) && !writing.exchange(true)) {
        say("\nheadrace: ", 11);
        for (const Fatal &one : kFatal)
            if (one.number == number) say(one.name, std::strlen(one.name));
        if (by_plugin)
            plugins::say_call(info->si_code > 0 ? info->si_addr : nullptr, say);
        else
            say_note();
        written = true;
    }
    // A thread of a plugin may be writing, or about to: give it the time, but never wait for ever.
    for (int i = 0; i < 100 && (writing || plugins::runs_anywhere()) && !written; ++i) {
        const timespec moment{0, 1000 * 1000};
        nanosleep(&moment, nullptr);
    }
    signal(number, SIG_DFL);
    // A fault happens again where it did, and abort() goes on; what was sent must be sent again.
    if (info->si_code <= 0 && number != SIGABRT) raise(number);
}

#ifdef __GLIBC__
// The interpreter ends before the program does, unless something else ends the program.
void on_exit_call(int status, void *) {
    const bool by_plugin = plugins::runs_here();
    if (report_of().first >= 0) return;  // a worker reports its end
    if (!by_plugin && !(note.load() && Py_IsInitialized())) return;
    if (writing.exchange(true)) return;
    const std::string called = "\nheadrace: exit(" + std::to_string(status) + ")";
    say(called.data(), called.size());
    if (by_plugin)
        plugins::say_call(nullptr, say);
    else
        say_note();
    _exit(status ? status : failure.load());  // a run that was cut off has not succeeded
}
#endif

void install() {
    static const bool done = [] {
#ifdef __GLIBC__
        on_exit(on_exit_call, nullptr);
#endif
        for (const Fatal &one : kFatal) {
            struct sigaction action{};
            if (sigaction(one.number, nullptr, &action) != 0) continue;
            if ((action.sa_flags & SA_SIGINFO) || action.sa_handler != SIG_DFL) continue;
            action = {};
            action.sa_sigaction = on_fatal;
            action.sa_flags = SA_SIGINFO | SA_ONSTACK;
            sigemptyset(&action.sa_mask);
            sigaction(one.number, &action, nullptr);
        }
        return true;
    }();
    (void)done;
}

// Fatal signals that nothing handles yet write "headrace: SIGNAL: " and the text to standard error,
// and end the process as they would have: with the same signal, at the same place. A handler that
// is installed later is not disturbed. exit() does the same, and becomes `exit_status` where it was
// 0. Another call replaces the text.
void note_crashes(const std::string &text, int exit_status) {
    failure = exit_status;
    note = new std::string(text);  // a handler may read the last
    install();
}

}  // namespace

void note_plugins() { install(); }

void bind_crash_note(nanobind::module_ &m) {
    m.def(
        "note_crashes", &note_crashes, nanobind::arg("text"), nanobind::arg("exit_status"),
        "Have exit() and fatal signals that nothing handles say this before they end the process.");
}

}  // namespace headrace::guard
