// What a worker writes about its own end, from inside signal handlers. Lines of text:
//
//   headrace-crash 1
//   signal NUMBER CODE ADDRESS read|write|-    or: exit STATUS, or: hang, or: gpu WHY
//   function NAME                              what was being called
//   release FIELD                              what of its result was being released
//   message TEXT                               of an exception or a failed assertion
//   stack-overflow
//   region START END NAME                      memory whose end is guarded
//   pc ADDRESS
//   frame ADDRESS                              innermost first
//   map LINE                                   of /proc/self/maps
//   symbol ADDRESS OFFSET NAME
//   end
//
// What comes after is written by the handler that was there before (Python's faulthandler).
#include "guard/crash.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace headrace::guard {
namespace {

constexpr int kMaxFrames = 96;
constexpr size_t kHandlerStackBytes = 512 * 1024;
constexpr size_t kRegions = 160;
constexpr int kFatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

const uintptr_t kPage = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));

struct Region {
    uintptr_t start, end;
    char name[64];
    int file = -1;
    off_t offset = 0;
    std::atomic<bool> own{false};  // written to: no longer the file's pages

    uintptr_t first_page() const { return start & ~(kPage - 1); }
    size_t pages() const { return ((end + kPage - 1) & ~(kPage - 1)) - first_page(); }
};

int report = -1;
int hang = 0;
char function[512], message[1024], refused[256];
std::atomic<const char *> releasing{nullptr};
uintptr_t stack_low = 0;
Region guarded[kRegions];
std::atomic<int> copies{0};  // regions that are their own
struct sigaction before[65];
std::atomic_flag reporting = ATOMIC_FLAG_INIT;
bool exits = false;

// Text without stdio: everything below may run in a signal handler.
struct Line {
    char text[1400];
    size_t size = 0;

    Line &add(const char *words) {
        for (; *words && size < sizeof text - 1; ++words)
            text[size++] = *words == '\n' ? ' ' : *words;
        return *this;
    }
    Line &number(unsigned long long value, unsigned int base = 10) {
        char digits[24];
        size_t count = 0;
        do digits[count++] = "0123456789abcdef"[value % base];
        while (value /= base);
        while (count && size < sizeof text - 1) text[size++] = digits[--count];
        return *this;
    }
    Line &hex(uintptr_t value) { return add("0x").number(value, 16); }
    void end() {
        text[size++] = '\n';
        size_t done = 0;
        while (done < size) {
            const ssize_t count = write(report, text + done, size - done);
            if (count <= 0) break;
            done += static_cast<size_t>(count);
        }
        size = 0;
    }
};

void write_maps() {
    const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    char block[4096];
    Line line;
    line.add("map ");
    ssize_t count;
    while ((count = read(file, block, sizeof block)) > 0)
        for (ssize_t i = 0; i < count; ++i)
            if (block[i] == '\n') {
                line.end();
                line.add("map ");
            } else if (line.size < sizeof line.text - 1) {
                line.text[line.size++] = block[i];
            }
    close(file);
}

#ifdef __GLIBC__
// What assert and the heap's own checks said last; glibc keeps it for debuggers.
const char *abort_message() {
    struct Kept {
        unsigned int size;
        char text[];
    };
    static Kept **const kept =
        static_cast<Kept **>(dlvsym(RTLD_DEFAULT, "__abort_msg", "GLIBC_PRIVATE"));
    return kept && *kept ? (*kept)->text : nullptr;
}
#endif

void write_report(const ucontext_t *context, bool aborted) {
    Line line;
    if (function[0]) line.add("function ").add(function).end();
    if (refused[0]) line.add("refused ").add(refused).end();
    if (const char *field = releasing) line.add("release ").add(field).end();
    const char *said = message[0] ? message : nullptr;
#ifdef __GLIBC__
    if (!said && aborted) said = abort_message();
#endif
    if (said) line.add("message ").add(said).end();
    for (const Region &region : guarded)
        if (region.name[0])
            line.add("region ")
                .hex(region.start)
                .add(" ")
                .hex(region.end)
                .add(" ")
                .add(region.name)
                .end();
    uintptr_t pc = 0;
#if defined(__x86_64__)
    if (context) pc = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    if (context) pc = context->uc_mcontext.pc;
#else
    (void)context;
#endif
    if (pc) line.add("pc ").hex(pc).end();
    void *frames[kMaxFrames];
    const int count = backtrace(frames, kMaxFrames);
    for (int i = 0; i < count; ++i)
        line.add("frame ").hex(reinterpret_cast<uintptr_t>(frames[i])).end();
    write_maps();
    const auto name = [&line](void *address, size_t back) {
        Dl_info info;
        if (!dladdr(static_cast<char *>(address) - back, &info) || !info.dli_sname) return;
        line.add("symbol ")
            .hex(reinterpret_cast<uintptr_t>(address))
            .add(" ")
            .number(static_cast<char *>(address) - static_cast<char *>(info.dli_saddr))
            .add(" ")
            .add(info.dli_sname)
            .end();
    };
    if (pc) name(reinterpret_cast<void *>(pc), 0);
    for (int i = 0; i < count; ++i) name(frames[i], 1);  // a return address is behind its call
    line.add("end").end();
}

bool overflowed(const siginfo_t *info, const ucontext_t *context) {
    if (info->si_signo != SIGSEGV || !stack_low) return false;
    constexpr uintptr_t kReach = 16 << 20;  // one frame may be large
    const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
    uintptr_t top = address;
#if defined(__x86_64__)
    top = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
    top = context->uc_mcontext.sp;
#else
    (void)context;
#endif
    const auto near_end = [](uintptr_t value) {
        return value > stack_low - kReach && value < stack_low + (64 << 10);
    };
    return near_end(address) && near_end(top);
}

// A parser that decodes in place: its tensor becomes a copy of its own, and the write is repeated.
bool made_writable(const siginfo_t *info) {
    static std::atomic_flag busy = ATOMIC_FLAG_INIT;
    if (info->si_signo != SIGSEGV || info->si_code != SEGV_ACCERR) return false;
    const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
    while (busy.test_and_set(std::memory_order_acquire)) {
    }
    bool made = false;
    for (Region &region : guarded) {
        if (region.file < 0 || address < region.start || address >= region.end) continue;
        made = region.own || mmap(reinterpret_cast<void *>(region.first_page()), region.pages(),
                                  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, region.file,
                                  region.offset) != MAP_FAILED;
        if (made && !region.own.exchange(true)) ++copies;
        break;
    }
    busy.clear(std::memory_order_release);
    return made;
}

// The C library's abort ends with this instruction where no signal can be sent.
bool is_end_of_abort(int number, const ucontext_t *context) {
#if defined(__aarch64__)
    constexpr uint32_t kBreak1000 = 0xd4207d00;
    return number == SIGTRAP &&
           *reinterpret_cast<const uint32_t *>(context->uc_mcontext.pc) == kBreak1000;
#else
    (void)number, (void)context;
    return false;
#endif
}

void on_fatal(int number, siginfo_t *info, void *where) {
    if (made_writable(info)) return;
    if (reporting.test_and_set()) {  // another thread is at it; the process ends when that is done
        while (true) pause();
    }
    const auto *context = static_cast<const ucontext_t *>(where);
    if (exits && is_end_of_abort(number, context)) number = SIGABRT;
    const char *access = "-";
#if defined(__x86_64__)
    if (number == SIGSEGV && context->uc_mcontext.gregs[REG_TRAPNO] == 14)
        access = context->uc_mcontext.gregs[REG_ERR] & 2 ? "write" : "read";
#endif
    Line line;
    line.add("headrace-crash 1").end();
    line.add("signal ")
        .number(number)
        .add(" ")
        .number(info->si_code < 0 ? 0 : info->si_code)
        .add(" ")
        .hex(reinterpret_cast<uintptr_t>(info->si_addr))
        .add(" ")
        .add(access)
        .end();
    if (overflowed(info, context)) line.add("stack-overflow").end();
    write_report(context, number == SIGABRT);
    const struct sigaction &old = before[number];
    const bool has_old =
        !(old.sa_flags & SA_SIGINFO) && old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN;
    if (has_old) old.sa_handler(number);
    if (exits) _exit(128 + number);
    signal(number, SIG_DFL);
    raise(number);
}

void on_hang(int, siginfo_t *, void *where) {
    if (reporting.test_and_set()) return;
    Line line;
    line.add("headrace-crash 1").end();
    line.add("hang").end();
    write_report(static_cast<const ucontext_t *>(where), false);
}

void on_terminate() {
    if (const std::type_info *type = abi::__cxa_current_exception_type()) {
        int status = 0;
        char *name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
        const char *what = "";
        try {
            throw;
        } catch (const std::exception &error) {
            what = error.what();
        } catch (...) {
        }
        std::snprintf(message, sizeof message, "uncaught %s%s%s", name ? name : type->name(),
                      *what ? ": " : "", what);
    } else {
        std::snprintf(message, sizeof message, "std::terminate was called");
    }
    std::abort();
}

#ifdef __GLIBC__
void on_exit_call(int status, void *) {
    if (!function[0] || reporting.test_and_set()) return;
    Line line;
    line.add("headrace-crash 1").end();
    line.add("exit ").number(static_cast<unsigned int>(status) & 0xff).end();
    write_report(nullptr, false);
    _exit(status);
}
#endif

bool take_back(Region &region) {
    if (!region.own.exchange(false)) return false;
    if (mmap(reinterpret_cast<void *>(region.first_page()), region.pages(), PROT_READ,
             MAP_SHARED | MAP_FIXED | MAP_POPULATE, region.file, region.offset) == MAP_FAILED)
        std::abort();  // it would show what is no longer there
    return true;
}

}  // namespace

void report_to(int fd, int hang_signal) {
    report = fd;
    hang = hang_signal;
    void *warm[4];
    backtrace(warm, 4);  // loads what it needs now: a handler cannot
#ifdef __GLIBC__
    abort_message();
    on_exit(on_exit_call, nullptr);
#endif
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        void *low = nullptr;
        size_t size = 0;
        pthread_attr_getstack(&attributes, &low, &size);
        stack_low = reinterpret_cast<uintptr_t>(low);
        pthread_attr_destroy(&attributes);
    }
    void *memory = mmap(nullptr, kHandlerStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) {
        stack_t stack{};
        stack.ss_sp = memory;
        stack.ss_size = kHandlerStackBytes;
        sigaltstack(&stack, nullptr);
    }
    struct sigaction action{};
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    action.sa_sigaction = on_fatal;
    for (int number : kFatal) sigaction(number, &action, &before[number]);
    action.sa_flags |= SA_RESTART;
    action.sa_sigaction = on_hang;
    sigaction(hang, &action, nullptr);
    std::set_terminate(on_terminate);
}

std::pair<int, int> report_of() { return {report, hang}; }

void end_as(int code) {
    if (code < 0) {
        signal(-code, SIG_DFL);
        raise(-code);
    }
    _exit(code < 0 ? 128 - code : code);
}

void end_by_exit() { exits = true; }

void set_function(const char *name) {
    std::snprintf(function, sizeof function, "%s", name);
    refused[0] = '\0';
}

void set_refused(const char *call) { std::snprintf(refused, sizeof refused, "%s", call); }

[[noreturn]] void give_up(const char *function_name, const char *why) {
    set_function(function_name);
    if (!reporting.test_and_set()) {
        Line line;
        line.add("headrace-crash 1").end();
        line.add("gpu ").add(why).end();
        write_report(nullptr, false);
    }
    _exit(1);
}

void set_region(size_t slot, uintptr_t start, uintptr_t end, const char *name, int file,
                uint64_t offset) {
    if (slot >= kRegions) return;
    Region &region = guarded[slot];
    take_back(region);
    region.name[0] = 0;
    region.file = file;
    region.offset = static_cast<off_t>(offset);
    region.start = start;
    region.end = end;
    std::snprintf(region.name, sizeof region.name, "%s", name);
}

bool take_back_all() {
    if (!copies.exchange(0)) return false;
    bool any = false;
    for (Region &region : guarded) any |= take_back(region);
    return any;
}

Releasing::Releasing(const char *field) { releasing = field; }

Releasing::~Releasing() { releasing = nullptr; }

}  // namespace headrace::guard
