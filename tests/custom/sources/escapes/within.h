// Ways of the worker's own: tensors, memory, rights, processes, credentials.
#pragma once
#include "way.h"

namespace {

// row: writes to the tensors
WAY(reopen_results, "seals") {
    const int file = reopened("results");
    if (file < 0) return -1;
    return write(file, "x", 1);
}
WAY(map_results, "seals") {
    const int file = reopened("results");
    if (file < 0) return -1;
    void *at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? -1 : 0;
}
WAY(unprotect_results, "seals") {
    const int file = descriptor("results");
    void *at = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? -1 : mprotect(at, 4096, PROT_READ | PROT_WRITE);
}
WAY(results_by_own_memory, "seals") {
    void *at = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, descriptor("results"), 0);
    const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    if (memory < 0) return -1;
    const long count = pwrite(memory, "x", 1, static_cast<off_t>(reinterpret_cast<long>(at)));
    const int error = errno;
    close(memory);
    return count < 0 ? stop(error) : 0;
}
WAY(shrink_results, "seals") { return ftruncate(reopened("results"), 0); }
WAY(grow_results, "seals") { return ftruncate(reopened("results"), off_t{1} << 31); }
WAY(hole_in_results, "seals") {
    void *at = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, descriptor("results"), 0);
    return madvise(at, 4096, MADV_REMOVE);
}
WAY(remove_results, "seals") {  // pages of the file behind them
    void *at = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, descriptor("results"), 0);
    return madvise(at, 4096, MADV_REMOVE);
}
WAY(shrink_inputs, "seals") { return ftruncate(descriptor("inputs"), 0); }
WAY(shrink_page, "seals") { return ftruncate(descriptor("page"), 0); }
WAY(shrink_outputs, "seals") { return ftruncate(descriptor("outputs"), 0); }
WAY(grow_report, "seals") { return ftruncate(descriptor("report"), 1 << 30); }
WAY(seal_inputs, "filter") { return fcntl(descriptor("inputs"), 1033, 8); }

// row: takes more memory
WAY(allocate_outputs, "filter") { return fallocate(descriptor("outputs"), 0, 0, off_t{64} << 30); }
WAY(write_far, "limits") { return pwrite(descriptor("outputs"), "x", 1, off_t{64} << 30); }
WAY(own_file_in_memory, "filter") { return syscall(SYS_memfd_create, "escape", 0); }
WAY(secret_memory, "filter") { return syscall(447, 0); }
WAY(map_much, "limits") {
    void *at =
        mmap(nullptr, size_t{64} << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? -1 : 0;
}
WAY(room_of_kernel, "filter") {
    unsigned long context = 0;
    return syscall(SYS_io_setup, 65536, &context);
}
WAY(room_of_pipes, "filter") {
    int ends[2];
    return pipe(ends) ? 0 : fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
}
WAY(raise_limit, "rights") {
    const rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    rlimit addresses;
    getrlimit(RLIMIT_AS, &addresses);  // with a GPU private memory is limited in their place
    const bool limited = addresses.rlim_max != RLIM_INFINITY;
    const auto which = limited ? RLIMIT_AS : RLIMIT_DATA;
    if (setrlimit(which, &none) != 0) return -1;
    getrlimit(which, &addresses);  // an emulator takes it, and changes nothing
    return addresses.rlim_max == RLIM_INFINITY ? 0 : stop(EPERM);
}
WAY(raise_file_limit, "rights") {
    const rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    return setrlimit(RLIMIT_FSIZE, &none);
}
WAY(last_to_die, "rights") { return wrote("/proc/self/oom_score_adj", "-1000"); }

// row: gets new rights
WAY(all_rights, "rights") {
    unsigned int head[2] = {0x20080522, 0}, all[6] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
    return syscall(SYS_capset, head, all);
}
WAY(before_all_others, "rights") {
    sched_param first = {};
    first.sched_priority = 1;
    return sched_setscheduler(0, SCHED_FIFO, &first);
}
WAY(own_namespace, "filter") { return unshare(CLONE_NEWUSER); }
WAY(child_in_namespace, "filter") {
    const long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    return pid;
}
WAY(child_by_structure, "filter") {
    unsigned long arguments[8] = {0, 0, 0, 0, SIGCHLD};
    const long pid = syscall(435, arguments, sizeof arguments);
    if (pid == 0) _exit(0);
    return pid;
}
WAY(join_namespace, "filter") { return setns(open("/proc/self/ns/mnt", O_RDONLY), 0); }
WAY(mount_folder, "filter") { return mount("none", own("").c_str(), "tmpfs", 0, nullptr); }
WAY(unmount, "filter") { return umount2("/proc", MNT_DETACH | UMOUNT_NOFOLLOW); }
WAY(other_root, "filter") { return chroot("/"); }
WAY(swap_root, "filter") { return syscall(SYS_pivot_root, ".", "."); }
WAY(tree_of_mounts, "filter") { return syscall(428, AT_FDCWD, "/", 1); }
WAY(change_mount, "filter") {
    unsigned long rights[4] = {0, 1, 0, 0};
    return syscall(442, AT_FDCWD, "/", 0x8000, rights, sizeof rights);
}
WAY(program_for_kernel, "filter") { return syscall(SYS_bpf, 0, nullptr, 0); }
WAY(counters, "filter") {
    char attributes[128] = {};
    return syscall(SYS_perf_event_open, attributes, app(), -1, -1, 0);
}
WAY(faults, "filter") { return syscall(SYS_userfaultfd, 1); }
WAY(keys, "filter") { return syscall(SYS_keyctl, 0, -4, 0); }
WAY(new_key, "filter") { return syscall(SYS_add_key, "user", "escape", "x", 1, -2); }
WAY(other_personality, "filter") { return syscall(SYS_personality, 0x0040000); }
WAY(module, "filter") { return syscall(SYS_init_module, nullptr, 0, ""); }
WAY(clock, "filter") {
    const timespec now = {0, -1};
    return syscall(SYS_clock_settime, 0, &now);
}
WAY(kernel_log, "filter") { return syscall(SYS_syslog, 10, nullptr, 0); }
WAY(label_of_own, "filter") { return syscall(460, 100, nullptr, 0, 0); }
WAY(old_rights, "filter") { return syscall(SYS_quotactl, 0, nullptr, 0, nullptr); }
WAY(unknown_call, "filter") { return syscall(469, 0, 0, 0, 0, 0); }
#if defined(__x86_64__)
WAY(old_interface, "filter") {  // of 32-bit programs: getpid
    long result = 20;
    asm volatile("int $0x80" : "+a"(result) : : "r8", "r9", "r10", "r11", "memory");
    return result < 0 ? stop(static_cast<int>(-result)) : 0;
}
WAY(other_interface, "filter") { return syscall(0x40000000 + SYS_getpid); }
#endif

// row: leaves processes or files
WAY(outlive, "filter") { return prctl(PR_SET_PDEATHSIG, 0); }
WAY(orphan, "keeper") {  // ends with the worker: the test looks for it
    const pid_t pid = fork();
    if (pid == 0) {
        setsid();
        if (fork() != 0) _exit(0);
        const int file = open(own("orphan").c_str(), O_WRONLY | O_CREAT, 0600);
        const std::string text = std::to_string(getpid());
        if (write(file, text.data(), text.size()) < 0) _exit(1);
        close(file);
        for (;;) pause();
    }
    waitpid(pid, nullptr, 0);
    return stop(ECHILD);
}

WAY(deep_folder, "keeper") {  // the test looks for it
    const int here = open(".", O_RDONLY | O_DIRECTORY);
    long result = chdir(own("").c_str());
    for (int i = 0; i < 3000 && result == 0; i++)
        if ((result = mkdir("deep", 0700)) == 0) result = chdir("deep");
    opened("file", O_WRONLY | O_CREAT);
    if (fchdir(here) != 0 || result != 0) return 0;
    close(here);
    return stop(ECHILD);
}
WAY(folder_without_rights, "keeper") {  // to list it
    mkdir(own("hidden").c_str(), 0300);
    return opened(own("hidden/file"), O_WRONLY | O_CREAT) < 0 ? 0 : stop(ECHILD);
}
WAY(sibling, "keeper") {
    const long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        for (;;) pause();
    return stop(ECHILD);
}
WAY(reaper, "keeper") {  // it adopts what it starts
    if (fork() == 0) {
        setsid();
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        if (fork() == 0) fork();
        for (;;) pause();
    }
    return stop(ECHILD);
}
WAY(crowd, "keeper") {  // each of which starts others while some are killed
    auto *count = static_cast<int *>(
        mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (fork() == 0) {
        setsid();
        while (__atomic_fetch_add(count, 1, __ATOMIC_RELAXED) < 100) {
            if (fork() < 0) break;
            usleep(20000);
        }
        for (;;) pause();
    }
    return stop(ECHILD);
}
WAY(chain, "keeper") {  // a new process each time, faster than anybody can name it
    if (fork() == 0) {
        setsid();
        for (;;) {
            if (fork() != 0) _exit(0);
            usleep(200);
        }
    }
    return stop(ECHILD);
}

// row: looks for credentials
WAY(secret_in_environment, "environment") { return getenv("ESCAPE_API_TOKEN") ? 0 : stop(ENODATA); }
WAY(secret_at_start, "environment") {
    std::string all(1 << 20, 0);
    const int file = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    const long count = read(file, &all[0], all.size());
    close(file);
    return count > 0 && has_secret(all) ? 0 : stop(ENODATA);
}
WAY(secret_in_memory, "environment") {
    FILE *maps = fopen("/proc/self/maps", "r");
    const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    char line[512], access[8];
    unsigned long from, to;
    bool seen = false;
    while (maps && !seen && fgets(line, sizeof line, maps)) {
        if (std::sscanf(line, "%lx-%lx %7s", &from, &to, access) != 3) continue;
        if (access[0] != 'r' || access[1] != 'w' || to - from > (64ul << 20)) continue;
        std::string all(to - from, 0);
        if (pread(memory, &all[0], all.size(), static_cast<off_t>(from)) > 0)
            seen = has_secret(all);
    }
    fclose(maps);
    close(memory);
    return seen ? 0 : stop(ENODATA);
}

// row: what works, and what SECURITY.md says so of
WAY(read_file, "named") { return opened(victim(), O_RDONLY); }
WAY(start_program, "named") { return system("true") == 0 ? 0 : -1; }
WAY(list_processes, "named") { return opened(of_app("cmdline"), O_RDONLY); }
WAY(lock_file, "named") { return flock(open(victim().c_str(), O_RDONLY), LOCK_SH); }
WAY(own_folder, "named") { return opened(own("file"), O_WRONLY | O_CREAT); }
WAY(print, "named") { return write(STDOUT_FILENO, "", 0); }

}  // namespace
