// Which system calls a process may make that runs a user's library.
// Source: man 2 seccomp, include/uapi/linux/filter.h of the kernel; numbers of calls and their
// arguments: man 2 syscalls.
#include "guard/filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "guard/filter_calls.h"

namespace headrace::guard {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kThisArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kThisArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kThisArchitecture = 0;
#endif

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr uint32_t kAll = 0xffffffff;

constexpr uint32_t refusal(int error) {
    return SECCOMP_RET_ERRNO | (static_cast<uint32_t>(error) & SECCOMP_RET_DATA);
}

// A filter, written from its start to its end. A rule that looks at arguments decides its call.
class Program {
public:
    Program() {
        load(offsetof(seccomp_data, arch));
        jump(BPF_JEQ, kThisArchitecture, 1, 0);
        give(refusal(EACCES));
        load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
        jump(BPF_JGE, 0x40000000u, 0, 1);  // the x32 interface
        give(refusal(EACCES));
#endif
    }

    // These are asked for in each call of a parser: they come first.
    void allow(std::initializer_list<long> calls) {
        for (long call : calls) when(call, [this] { give(kAllow); });
    }
    void refuse(std::initializer_list<long> calls, int error) {
        for (long call : calls) refuse(call, error);
    }
    void refuse(long call, int error) {
        when(call, [&] { give(refusal(error)); });
    }
    void refuse_from(uint32_t call, int error) {
        jump(BPF_JGE, call, 0, 1);
        give(refusal(error));
    }
    // Refused unless the low half of an argument is one of these: the kernel takes an int there.
    void only(long call, unsigned int argument, std::initializer_list<uint32_t> values, int error) {
        when(call, [&] {
            low(argument);
            for (uint32_t value : values) is(value, kAllow);
            give(refusal(error));
        });
    }
    // Refused if the low half, masked, is one of these.
    void never(long call, unsigned int argument, uint32_t mask,
               std::initializer_list<uint32_t> values, int error) {
        when(call, [&] {
            low(argument);
            if (mask != kAll) code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
            for (uint32_t value : values) is(value, refusal(error));
            give(kAllow);
        });
    }
    // Refused if any of these bits is set.
    void none_of(long call, unsigned int argument, uint32_t bits, int error) {
        when(call, [&] {
            low(argument);
            jump(BPF_JSET, bits, 0, 1);
            give(refusal(error));
            give(kAllow);
        });
    }
    // Refused unless the argument, a pointer, is null.
    void null(long call, unsigned int argument, int error) {
        when(call, [&] {
            low(argument);
            jump(BPF_JEQ, 0, 1, 0);
            give(refusal(error));
            load(argument_at(argument) + 4);
            jump(BPF_JEQ, 0, 1, 0);
            give(refusal(error));
            give(kAllow);
        });
    }
    // Refused if the first argument is `first` (or with `otherwise` if it is not) and the second
    // none of these.
    void only_with(long call, uint32_t first, bool otherwise,
                   std::initializer_list<uint32_t> seconds, int error) {
        when(call, [&] {
            low(0);
            jump(BPF_JEQ, first, 1, 0);
            give(otherwise ? refusal(error) : kAllow);
            low(1);
            for (uint32_t second : seconds) is(second, kAllow);
            give(refusal(error));
        });
    }
    // ioctl: what is not named is refused; or with `all_but` only what these letters begin.
    void requests(std::initializer_list<uint32_t> known, bool all_but,
                  std::initializer_list<uint32_t> letters) {
        when(__NR_ioctl, [&] {
            low(1);
            for (uint32_t request : known) is(request, kAllow);
            if (!all_but) {
                give(refusal(ENOTTY));
                return;
            }
            code_.push_back(BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, _IOC_TYPESHIFT));
            code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, _IOC_TYPEMASK));
            for (uint32_t letter : letters) is(letter, refusal(ENOTTY));
            give(kAllow);
        });
    }

    bool install() {
        give(kAllow);
        sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    }

private:
    static constexpr uint32_t argument_at(unsigned int argument) {
        return static_cast<uint32_t>(offsetof(seccomp_data, args)) + 8 * argument;
    }
    void load(size_t offset) {
        code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
    }
    void low(unsigned int argument) { load(argument_at(argument)); }  // of a little-endian machine
    void jump(uint32_t how, uint32_t value, uint8_t yes, uint8_t no) {
        code_.push_back(BPF_JUMP(static_cast<uint16_t>(BPF_JMP | how | BPF_K), value, yes, no));
    }
    void give(uint32_t what) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, what)); }
    void is(uint32_t value, uint32_t what) {
        jump(BPF_JEQ, value, 0, 1);
        give(what);
    }
    template <typename Body>
    void when(long call, Body body) {
        const size_t at = code_.size();
        jump(BPF_JEQ, static_cast<uint32_t>(call), 0, 0);
        body();
        code_[at].jf = static_cast<uint8_t>(code_.size() - at - 1);
    }
    std::vector<sock_filter> code_;
};

constexpr uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

// Of terminals, files and sockets: what a library may ask, and change of its own descriptors.
constexpr std::initializer_list<uint32_t> kRequests = {FIONREAD, FIONBIO,    FIOCLEX,   FIONCLEX,
                                                       TCGETS,   TIOCGWINSZ, TIOCGPGRP, FIOQSIZE};

// First letters of requests that no driver of a GPU knows: of terminals, sockets, disks, and of
// file systems, where a folder that is open for reading is enough to make or remove others in it.
constexpr std::initializer_list<uint32_t> kOfOthers = {'T',  'f',  'X',  'r',  'o',  0x12,
                                                       0x89, 0x94, 0x97, 0xbc, 0xcf, 0xf5};

}  // namespace

bool can_filter() { return kThisArchitecture != 0; }

bool filter_calls(bool gpu, bool shortens) {
    const auto me = static_cast<uint32_t>(getpid());
    Program program;
    program.allow({__NR_futex, __NR_recvfrom, __NR_read, __NR_write, __NR_ppoll,
#ifdef __NR_poll
                   __NR_poll,
#endif
                   __NR_clock_gettime, __NR_mmap, __NR_munmap, __NR_madvise});
    // As a firewall would: pairs of sockets stay possible, to which nobody else is connected.
    program.null(__NR_sendto, 4, EACCES);
    program.refuse(kNetwork, EACCES);
    if (!gpu) program.refuse({__NR_bind, __NR_listen}, EACCES);
    if (gpu)
        program.only(__NR_socket, 0, {AF_UNIX}, EACCES);
    else
        program.refuse(__NR_socket, EACCES);
    program.only(__NR_socketpair, 0, {AF_UNIX}, EACCES);
    program.refuse(kIpc, EACCES);

    // Other processes. Signals go to this one only.
    for (long call :
         {__NR_kill, __NR_tgkill, __NR_tkill, __NR_rt_sigqueueinfo, __NR_rt_tgsigqueueinfo})
        program.only(call, 0, {me}, EPERM);
    program.refuse(kProcesses, EPERM);
    program.refuse(kWatching, EPERM);
    for (long call :
         {__NR_prlimit64, __NR_sched_setaffinity, __NR_sched_setscheduler, __NR_sched_setparam,
          __NR_sched_setattr, __NR_move_pages, __NR_get_robust_list})
        program.only(call, 0, {0, me}, EPERM);
    program.only_with(__NR_setpriority, PRIO_PROCESS, true, {0, me}, EPERM);
    program.only_with(__NR_ioprio_set, 1, true, {0, me}, EPERM);  // IOPRIO_WHO_PROCESS
    // The kernel would send signals for it; leases stop others; watching tells what they do; the
    // room of pipes is that of all processes of a user; seals are set once.
    program.never(__NR_fcntl, 1, kAll,
                  {F_SETOWN, F_SETOWN_EX, F_SETSIG, F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ,
                   1033 /* F_ADD_SEALS */},
                  EPERM);
    // Of the socket that it shares with the application: a handle of that process.
    program.never(__NR_getsockopt, 2, kAll, {77 /* SO_PEERPIDFD */}, EPERM);
    program.never(__NR_setsockopt, 2, kAll, {76 /* SO_PASSPIDFD */}, EPERM);
    program.only_with(__NR_prctl, PR_SET_PDEATHSIG, false, {SIGKILL}, EPERM);

    // Files: what Landlock does not look at. Opened for neither reading nor writing, a file asks
    // none of its rights, and is emptied all the same.
    program.refuse(kRightsOfFiles, EPERM);
    const std::initializer_list<uint32_t> emptying = {O_TRUNC | O_RDONLY, O_ACCMODE,
                                                      O_TRUNC | O_ACCMODE};
    program.never(__NR_openat, 2, O_TRUNC | O_ACCMODE, emptying, EACCES);
#ifdef __NR_open
    program.never(__NR_open, 1, O_TRUNC | O_ACCMODE, emptying, EACCES);
#endif
    if (!shortens) program.refuse(__NR_truncate, EACCES);
    program.refuse(__NR_fallocate, EOPNOTSUPP);  // C libraries write zeros instead
    program.requests(kRequests, gpu, kOfOthers);

    program.none_of(__NR_clone, 0, kNamespaces, EPERM);
    program.refuse(kUnknown, ENOSYS);
    program.refuse(kKernel, EPERM);
    program.only(__NR_personality, 0, {0xffffffff}, EPERM);
    program.refuse_from(kFirstNew, ENOSYS);
    return program.install();
}

}  // namespace headrace::guard
