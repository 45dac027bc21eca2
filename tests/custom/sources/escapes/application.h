// Ways to the application: its memory, descriptors, signals, limits.
#pragma once
#include "way.h"

namespace {

// row: reads or writes the application's memory
WAY(write_memory, "landlock") { return opened(of_app("mem"), O_RDWR); }
WAY(read_memory, "landlock") { return opened(of_app("mem"), O_RDONLY); }
WAY(memory_of_keeper, "landlock") {
    return opened("/proc/" + std::to_string(keeper()) + "/mem", O_RDWR);
}
WAY(memory_map, "landlock") { return opened(of_app("maps"), O_RDONLY); }
WAY(environment_of_application, "landlock") { return opened(of_app("environ"), O_RDONLY); }
WAY(environment_of_keeper, "landlock") {
    return opened("/proc/" + std::to_string(keeper()) + "/environ", O_RDONLY);
}
WAY(read_by_call, "filter") {
    char here[8];
    iovec ours = {here, 8}, theirs = {reinterpret_cast<void *>(0x400000), 8};
    return process_vm_readv(app(), &ours, 1, &theirs, 1, 0);
}
WAY(write_by_call, "filter") {
    char here[8] = {};
    iovec ours = {here, 8}, theirs = {reinterpret_cast<void *>(0x400000), 8};
    return process_vm_writev(app(), &ours, 1, &theirs, 1, 0);
}
WAY(trace, "filter") { return ptrace(PTRACE_ATTACH, app(), nullptr, nullptr); }
WAY(seize, "filter") { return ptrace(PTRACE_SEIZE, app(), nullptr, nullptr); }
WAY(memory_of_thread, "landlock") {
    return opened(of_app("task/") + std::to_string(app()) + "/mem", O_RDWR);
}
WAY(pages_of_memory, "landlock") { return opened(of_app("pagemap"), O_RDONLY); }
WAY(start_of_memory, "landlock") { return opened(of_app("auxv"), O_RDONLY); }
WAY(traffic_of_application, "landlock") {
    char some[16];
    return read(open(of_app("io").c_str(), O_RDONLY), some, sizeof some);
}
// row: takes descriptors of the application
WAY(handle_of_peer, "filter") {  // of the socket that both have: SO_PEERPIDFD
    int handle = -1;
    socklen_t size = sizeof handle;
    return getsockopt(descriptor("socket"), SOL_SOCKET, 77, &handle, &size);
}
WAY(handles_with_messages, "filter") {  // SO_PASSPIDFD
    const int yes = 1;
    return setsockopt(descriptor("socket"), SOL_SOCKET, 76, &yes, sizeof yes);
}
WAY(file_of_keeper, "landlock") {
    return opened("/proc/" + std::to_string(keeper()) + "/fd/1", O_WRONLY);
}
WAY(descriptors_of_application, "landlock") {
    char target[256];
    return readlink(of_app("fd/0").c_str(), target, sizeof target);
}
WAY(file_of_application, "landlock") {
    return opened(of_app(("fd/" + text("ESCAPE_FD")).c_str()), O_RDWR);
}
WAY(root_of_application, "landlock") { return opened(of_app("root") + victim(), O_WRONLY); }
WAY(folder_of_application, "landlock") {
    return opened(of_app("cwd") + "/new", O_WRONLY | O_CREAT);
}
WAY(handle_of_process, "filter") { return syscall(434, app(), 0); }
WAY(take_descriptor, "filter") { return syscall(438, open(of_app("").c_str(), O_RDONLY), 0, 0); }
WAY(compare_processes, "filter") { return syscall(SYS_kcmp, app(), getpid(), 0, 0, 0); }

// row: signals another process
WAY(signal_own_group, "filter") { return kill(0, 0); }
WAY(signal_all, "filter") { return kill(-1, 0); }
WAY(signal_process, "filter") { return kill(app(), 0); }
WAY(signal_group, "filter") { return kill(-getpgid(app()), 0); }
WAY(signal_thread, "filter") { return syscall(SYS_tgkill, app(), app(), 0); }
WAY(signal_old_thread, "filter") { return syscall(SYS_tkill, app(), 0); }
WAY(queue_signal, "filter") {
    siginfo_t info = {};
    info.si_code = -1;
    return syscall(SYS_rt_sigqueueinfo, app(), SIGURG, &info);
}
WAY(queue_to_thread, "filter") {
    siginfo_t info = {};
    info.si_code = -1;
    return syscall(SYS_rt_tgsigqueueinfo, app(), app(), SIGURG, &info);
}
WAY(signal_by_folder, "filter") {
    return syscall(424, open(of_app("").c_str(), O_RDONLY | O_DIRECTORY), 0, nullptr, 0);
}
WAY(signal_by_owner, "filter") { return fcntl(pair(SOCK_STREAM), F_SETOWN, app()); }
WAY(signal_by_owner_ex, "filter") {
    struct {
        int type, pid;
    } owner = {1, app()};
    return fcntl(pair(SOCK_STREAM), 15, &owner);
}
WAY(signal_of_choice, "filter") { return fcntl(pair(SOCK_STREAM), 10, SIGKILL); }
WAY(signal_by_request, "filter") {
    int owner = app();
    return ioctl(pair(SOCK_STREAM), FIOSETOWN, &owner);
}
WAY(signal_by_old_request, "filter") {
    int owner = app();
    return ioctl(pair(SOCK_STREAM), SIOCSPGRP, &owner);
}

// row: changes limits, priority
WAY(robust_list, "filter") {
    void *list;
    size_t size;
    return syscall(SYS_get_robust_list, app(), &list, &size);
}
WAY(advise_process, "filter") {
    iovec theirs = {reinterpret_cast<void *>(0x400000), 4096};
    return syscall(440, open(of_app("").c_str(), O_RDONLY), &theirs, 1, 20, 0);
}
WAY(move_memory, "filter") { return syscall(SYS_move_pages, app(), 0, 0, 0, 0, 0); }
WAY(migrate_memory, "filter") {
    unsigned long nodes = 1;
    return syscall(SYS_migrate_pages, app(), 8, &nodes, &nodes);
}

WAY(limit_of_application, "filter") {
    rlimit limit = {1 << 20, 1 << 20};
    return syscall(SYS_prlimit64, app(), RLIMIT_CORE, &limit, nullptr);
}
WAY(priority, "filter") { return setpriority(PRIO_PROCESS, static_cast<id_t>(app()), 5); }
WAY(priority_of_user, "filter") { return setpriority(PRIO_USER, getuid(), 0); }
WAY(disk_priority, "filter") { return syscall(SYS_ioprio_set, 1, app(), (2 << 13) | 7); }
WAY(affinity, "filter") {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(0, &cores);
    return sched_setaffinity(app(), sizeof cores, &cores);
}
WAY(scheduler, "filter") {
    sched_param none = {};
    return sched_setscheduler(app(), SCHED_BATCH, &none);
}
WAY(scheduler_parameters, "filter") {
    sched_param none = {};
    return sched_setparam(app(), &none);
}
WAY(scheduler_attributes, "filter") {
    unsigned int attributes[14] = {56};
    return syscall(SYS_sched_setattr, app(), attributes, 0);
}
WAY(first_to_die, "landlock") { return wrote(of_app("oom_score_adj"), "900"); }
WAY(name_of_application, "landlock") { return wrote(of_app("comm"), "owned"); }
WAY(core_of_application, "landlock") { return wrote(of_app("coredump_filter"), "0"); }
WAY(forget_pages, "landlock") { return wrote(of_app("clear_refs"), "1"); }
// The usual priority: where nothing stops this, the terminal that the tests run in keeps it.
WAY(group_of_processes, "landlock") { return wrote(of_app("autogroup"), "0"); }
WAY(users_of_application, "landlock") { return wrote(of_app("uid_map"), "0 0 1"); }
WAY(label_of_application, "landlock") { return wrote(of_app("attr/current"), "x"); }
WAY(timer_slack, "landlock") { return wrote(of_app("timerslack_ns"), "1"); }

}  // namespace
