// What a process that runs a user's library gives up before it loads it.

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "module.h"

namespace headrace::guard {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kThisArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kThisArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kThisArchitecture = 0;
#endif

std::string reason() { return std::strerror(errno); }

// Calls that are refused with EACCES, as a firewall would: pairs of sockets stay possible.
constexpr uint32_t kRefusedCalls[] = {
    __NR_connect,
    __NR_accept4,
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
#ifdef __NR_accept
    __NR_accept,
#endif
#ifdef __NR_io_uring_setup
    __NR_io_uring_setup,
#endif
#ifdef __NR_pidfd_send_signal
    __NR_pidfd_send_signal,
#endif
};

// These are CUDA's, too, which makes itself reachable for other processes when it starts.
constexpr uint32_t kCallsOfDrivers[] = {__NR_bind, __NR_listen};

// Signals go to this process only. Source: man 2 seccomp, the filter language of the kernel.
constexpr uint32_t kSignalCalls[] = {
    __NR_kill, __NR_tgkill, __NR_tkill, __NR_rt_sigqueueinfo, __NR_rt_tgsigqueueinfo,
};

bool filter_calls(bool gpu) {
    constexpr auto kNumber = static_cast<uint32_t>(offsetof(seccomp_data, nr));
    constexpr auto kArchitecture = static_cast<uint32_t>(offsetof(seccomp_data, arch));
    constexpr auto kFirstArgument = static_cast<uint32_t>(offsetof(seccomp_data, args));
    constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EACCES;
    std::vector<sock_filter> code = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kArchitecture),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kThisArchitecture, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, kRefuse),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
#if defined(__x86_64__)
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1),  // the x32 interface
        BPF_STMT(BPF_RET | BPF_K, kRefuse),
#endif
    };
    std::vector<uint32_t> refused(std::begin(kRefusedCalls), std::end(kRefusedCalls));
    if (!gpu) refused.insert(refused.end(), std::begin(kCallsOfDrivers), std::end(kCallsOfDrivers));
    for (uint32_t call : refused) {
        code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
        code.push_back(BPF_STMT(BPF_RET | BPF_K, kRefuse));
    }
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 4));
    code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFirstArgument));
    code.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, static_cast<uint8_t>(gpu ? 1 : 0), 0));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, kRefuse));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    for (uint32_t call : kSignalCalls) {
        code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));
        code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFirstArgument));
        code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(getpid()), 1, 0));
        code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
        code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// What counts for RLIMIT_AS, or for RLIMIT_DATA: "VmSize", "VmData".
uint64_t memory_now(const char *what) {
    unsigned long long kib = 0;
    if (FILE *file = std::fopen("/proc/self/status", "r")) {
        char line[256];
        const size_t length = std::strlen(what);
        while (std::fgets(line, sizeof line, file)) {
            if (std::strncmp(line, what, length) == 0 && line[length] == ':')
                kib = std::strtoull(line + length + 1, nullptr, 10);
        }
        std::fclose(file);
    }
    return static_cast<uint64_t>(kib) * 1024;
}

// Out of memory, this process goes first, and not the application.
void go_first() {
    const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    if (write(file, "1000", 4) < 0) errno = 0;
    close(file);
}

// Gives up, in this process and for good: new privileges, core files, address space beyond
// `memory_bytes` more than now (0: no limit), sockets to others, and signals to other processes.
// Its parent's death ends it. Returns what could not be done, in words; never throws.
// With `gpu` a driver of NVIDIA works in it: unix sockets can be made, bound and listened at, but
// not connected, and the limit is one of private writable memory, not of addresses, of which CUDA
// reserves as many as both memories have.
std::vector<std::string> sandbox(uint64_t memory_bytes, bool gpu) {
    std::vector<std::string> left;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        left.push_back("it may outlive the application (" + reason() + ")");
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_CORE, &none) != 0)
        left.push_back("core files are not switched off (" + reason() + ")");
    go_first();
    const bool bound = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    if (!bound) left.push_back("new privileges are not ruled out (" + reason() + ")");
    if (!kThisArchitecture || !bound || !filter_calls(gpu))
        left.push_back("the network is not closed to it (" +
                       (kThisArchitecture ? reason() : "no filter for this processor") + ")");
    if (memory_bytes) {
        const uint64_t limit = memory_now(gpu ? "VmData" : "VmSize") + memory_bytes;
        const rlimit memory{limit, limit};
        if (setrlimit(gpu ? RLIMIT_DATA : RLIMIT_AS, &memory) != 0)
            left.push_back("its memory is not limited (" + reason() + ")");
    }
    return left;
}

}  // namespace

void bind_sandbox(nanobind::module_ &m) {
    using namespace nanobind::literals;
    m.def(
        "guard_sandbox", &sandbox, "memory_bytes"_a, "gpu"_a = false,
        "Give up what a library does not need, for good; what could not be done, in words. `gpu`: "
        "a driver of NVIDIA shall work in it.");
}

}  // namespace headrace::guard
