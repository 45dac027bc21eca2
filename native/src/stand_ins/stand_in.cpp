#include "stand_ins/stand_in.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "guard/crash.h"

namespace headrace::stand_ins {

extern "C" {
// The record comes in a register that no calling convention uses for arguments.
__attribute__((visibility("hidden"), used)) uint64_t headrace_stand_in_called(const Record *record);
#ifdef __x86_64__
void headrace_stand_in_entry();
asm(R"(
    .text
    .hidden headrace_stand_in_entry
    .globl headrace_stand_in_entry
    .type headrace_stand_in_entry, @function
headrace_stand_in_entry:
    endbr64
    mov %r11, %rdi
    jmp headrace_stand_in_called
    .size headrace_stand_in_entry, . - headrace_stand_in_entry
)");
#elif defined(__aarch64__)
void headrace_stand_in_entry();
asm(R"(
    .text
    .hidden headrace_stand_in_entry
    .globl headrace_stand_in_entry
    .type headrace_stand_in_entry, %function
headrace_stand_in_entry:
    mov x0, x16
    b headrace_stand_in_called
    .size headrace_stand_in_entry, . - headrace_stand_in_entry
)");
#endif
}

namespace {

thread_local Scope *innermost = nullptr;
thread_local Watch *watching = nullptr;

std::mutex notes_lock;
std::vector<std::pair<std::string, std::string>> notes;
std::unordered_map<std::string, std::string> exporters;
constexpr size_t kMostNotes = 1000;

std::string message(const char *function, const std::string &library) {
    return std::string(function) + " of " + library;
}

std::terminate_handler terminate_before = nullptr;
Provider provider = nullptr;

// std::terminate because a refused call had to leave a function that may not throw.
[[noreturn]] void on_terminate() {
    Scope *scope = innermost;
    if (scope && std::current_exception()) {
        bool refused = false;
        try {
            throw;
        } catch (const MissingFunction &call) {
            refused = true;
            scope->refused = call.what();
        } catch (...) {
        }
        if (refused) {
            abi::__cxa_end_catch();
            std::longjmp(scope->jump, 1);
        }
    }
    if (terminate_before) terminate_before();
    std::abort();
}

// A library that was loaded later may have put its own handler there.
void take_terminate() {
    const std::terminate_handler now = std::get_terminate();
    if (now == on_terminate) return;
    terminate_before = now;
    std::set_terminate(on_terminate);
}

[[noreturn]] void refuse(const std::string &call) {
    take_terminate();
    throw MissingFunction(call);
}

// Whether results are wrong where a function of that name did nothing.
bool computes(const char *function) {
    constexpr const char *kBegins[] = {"cublas",   "cudnn",    "cufft", "curand",
                                       "cusolver", "cusparse", "npp",   "cudaMem"};
    return std::any_of(std::begin(kBegins), std::end(kBegins), [function](const char *begin) {
        return std::strncmp(function, begin, std::strlen(begin)) == 0;
    });
}

}  // namespace

Watch::Watch() : outer_(watching) { watching = this; }
Watch::~Watch() { watching = outer_; }

void not_done(const std::string &call) {
    if (watching && watching->first_.empty()) watching->first_ = call;
    guard::set_refused(call.c_str());
}

void provide(Provider one) { provider = one; }

uintptr_t target_of(const std::string &function, const std::string &library) {
    {
        std::lock_guard<std::mutex> hold(notes_lock);
        exporters[function] = library;
    }
    void *answer = provider ? provider(function, library) : nullptr;
    if (!answer) answer = cuda_stand_in(function);
    if (!answer) answer = infer_stand_in(function);
    if (!answer) answer = blas_stand_in(function);
    if (!answer) answer = dnn_stand_in(function);
#if defined(__x86_64__) || defined(__aarch64__)
    if (!answer) answer = reinterpret_cast<void *>(&headrace_stand_in_entry);
#endif
    return reinterpret_cast<uintptr_t>(answer);
}

std::vector<std::pair<std::string, std::string>> take_notes() {
    std::lock_guard<std::mutex> hold(notes_lock);
    return std::move(notes);
}

uint64_t headrace_stand_in_called(const Record *record) {
    refuse_or_note(record->function, record->library);
    return 0;
}

Scope::Scope() : outer_(innermost) { innermost = this; }
Scope::~Scope() { innermost = outer_; }

void refuse_or_note(const char *function, const char *library) {
    if (innermost) refuse(message(function, library));
    if (watching && computes(function)) not_done(message(function, library));
    std::lock_guard<std::mutex> hold(notes_lock);
    if (notes.size() < kMostNotes) notes.emplace_back(function, library);
}

void refuse_in_scope(const char *function) {
    if (!innermost) return;
    std::string library;
    {
        std::lock_guard<std::mutex> hold(notes_lock);
        library = exporters[function];
    }
    refuse(message(function, library));
}

}  // namespace headrace::stand_ins
