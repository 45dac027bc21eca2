// Calls that a user's library needs for nothing, by what they reach.
#pragma once

#include <sys/syscall.h>

#include <cstdint>
#include <initializer_list>

// Newer than the headers of old systems; the numbers are those of every processor.
#ifndef __NR_pidfd_send_signal
#define __NR_pidfd_send_signal 424
#define __NR_io_uring_setup 425
#define __NR_io_uring_enter 426
#define __NR_io_uring_register 427
#define __NR_open_tree 428
#define __NR_move_mount 429
#define __NR_fsopen 430
#define __NR_fsconfig 431
#define __NR_fsmount 432
#define __NR_fspick 433
#endif
#ifndef __NR_pidfd_open
#define __NR_pidfd_open 434
#endif
#ifndef __NR_clone3
#define __NR_clone3 435
#endif
#ifndef __NR_openat2
#define __NR_openat2 437
#define __NR_pidfd_getfd 438
#endif
#ifndef __NR_process_madvise
#define __NR_process_madvise 440
#endif
#ifndef __NR_mount_setattr
#define __NR_mount_setattr 442
#endif
#ifndef __NR_quotactl_fd
#define __NR_quotactl_fd 443
#endif
#ifndef __NR_memfd_secret
#define __NR_memfd_secret 447
#endif
#ifndef __NR_process_mrelease
#define __NR_process_mrelease 448
#endif
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452  // NOLINT(bugprone-reserved-identifier): the kernel's name
#endif

#ifndef __NR_lsm_set_self_attr
#define __NR_lsm_set_self_attr 460  // NOLINT(bugprone-reserved-identifier): the kernel's name
#endif

namespace headrace::guard {

using Calls = std::initializer_list<long>;

// From here on nobody has looked at what they do. 462 is the last one of Linux 6.10.
constexpr uint32_t kFirstNew = 463;

// sendmsg can name a receiver, which a filter cannot see.
constexpr Calls kNetwork = {
    __NR_connect,        __NR_accept4,        __NR_sendmsg,           __NR_sendmmsg,
    __NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register,
#ifdef __NR_accept
    __NR_accept,
#endif
};

// Memory, queues and semaphores with names, which outlive a process and which any other may open.
constexpr Calls kIpc = {
    __NR_shmget,  __NR_shmat,     __NR_shmctl,     __NR_msgget, __NR_msgsnd,
    __NR_msgrcv,  __NR_msgctl,    __NR_semget,     __NR_semop,  __NR_semctl,
    __NR_mq_open, __NR_mq_unlink, __NR_semtimedop,
};

constexpr Calls kProcesses = {
    __NR_ptrace,           __NR_process_vm_readv, __NR_process_vm_writev, __NR_kcmp,
    __NR_pidfd_open,       __NR_pidfd_getfd,      __NR_pidfd_send_signal, __NR_process_madvise,
    __NR_process_mrelease, __NR_migrate_pages,
};

// Owners, rights, times and attributes.
constexpr Calls kRightsOfFiles = {
    __NR_fchmod,    __NR_fchmodat,    __NR_fchmodat2,    __NR_fchown,
    __NR_fchownat,  __NR_utimensat,   __NR_setxattr,     __NR_lsetxattr,
    __NR_fsetxattr, __NR_removexattr, __NR_lremovexattr, __NR_fremovexattr,
#ifdef __NR_chmod
    __NR_chmod,
#endif
#ifdef __NR_chown
    __NR_chown,     __NR_lchown,
#endif
#ifdef __NR_utime
    __NR_utime,     __NR_utimes,      __NR_futimesat,
#endif
};

// They tell what others do with files, by means of which a user's processes have few together.
constexpr Calls kWatching = {
    __NR_inotify_init1,
    __NR_inotify_add_watch,
#ifdef __NR_inotify_init
    __NR_inotify_init,
#endif
};

// What they do stands in memory, where a filter does not see it: C libraries go on without them.
constexpr Calls kUnknown = {
    __NR_clone3,       __NR_openat2,
    __NR_io_setup,                         // whose room all processes of a machine share
    __NR_memfd_create, __NR_memfd_secret,  // files without names, which no limit counts
};

constexpr Calls kKernel = {
    __NR_unshare,
    __NR_setns,
    __NR_mount,
    __NR_umount2,
    __NR_pivot_root,
    __NR_chroot,
    __NR_open_tree,
    __NR_move_mount,
    __NR_fsopen,
    __NR_fsconfig,
    __NR_fsmount,
    __NR_fspick,
    __NR_mount_setattr,
    __NR_swapon,
    __NR_swapoff,
    __NR_quotactl,
    __NR_quotactl_fd,
    __NR_bpf,
    __NR_perf_event_open,
    __NR_userfaultfd,
    __NR_add_key,
    __NR_request_key,
    __NR_keyctl,
    __NR_init_module,
    __NR_finit_module,
    __NR_delete_module,
    __NR_kexec_load,
    __NR_reboot,
    __NR_acct,
    __NR_syslog,
    __NR_settimeofday,
    __NR_clock_settime,
    __NR_adjtimex,
    __NR_clock_adjtime,
    __NR_sethostname,
    __NR_setdomainname,
    __NR_open_by_handle_at,
    __NR_fanotify_init,
    __NR_fanotify_mark,
    __NR_lookup_dcookie,
    __NR_lsm_set_self_attr,
#ifdef __NR_kexec_file_load
    __NR_kexec_file_load,
#endif
#ifdef __NR_iopl
    __NR_iopl,
    __NR_ioperm,
    __NR_modify_ldt,
    __NR_uselib,
    __NR_ustat,
    __NR_sysfs,
    __NR_vhangup,
#endif
};

}  // namespace headrace::guard
