// Ways out of a worker, each a few lines. `ParseEscape` gets the number of one and gives a box: its
// left is 1 if it worked, its top the error that stopped it. What each looks for is in the
// environment: see tests/custom/guard/escapes.py, which also reads the names and layers from here.
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "nvdsinfer_custom_impl.h"

namespace {

struct Way {
    static std::vector<Way> &all() {
        static std::vector<Way> ways;
        return ways;
    }
    Way(long (*function)()) : run(function) { all().push_back(*this); }
    long (*run)();  // less than 0, with errno: it was stopped
};
#define WAY(name, layer)            \
    long name();                    \
    const Way name##_way = {&name}; \
    long name()

int number(const char *name) { return std::atoi(getenv(name)); }
int app() { return number("ESCAPE_APP"); }
std::string text(const char *name) { return getenv(name); }

// The process that forked the worker; an emulated library is in a child of the worker.
int keeper() {
    if (getenv("ESCAPE_EMULATED") == nullptr) return getppid();
    char about[512] = {};
    const int file = open(("/proc/" + std::to_string(getppid()) + "/stat").c_str(), O_RDONLY);
    const long count = read(file, about, sizeof about - 1);
    close(file);
    const char *end = count > 0 ? strrchr(about, ')') : nullptr;  // then: state, parent
    return end == nullptr ? 1 : std::atoi(end + 3);
}
std::string victim() { return text("ESCAPE_FOLDER") + "/victim.txt"; }
std::string beside(const char *name) { return text("ESCAPE_FOLDER") + "/" + name; }
std::string of_app(const char *name) { return "/proc/" + std::to_string(app()) + "/" + name; }
std::string own(const char *name) {
    return (getenv("TMPDIR") ? text("TMPDIR") : std::string("/tmp")) + "/" + name;
}

long stop(int error) {
    errno = error;
    return -1;
}
long opened(const std::string &path, int how) {
    const int file = open(path.c_str(), how | O_CLOEXEC, 0600);
    if (file >= 0) close(file);
    return file;
}
long wrote(const std::string &path, const char *what) {
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) return -1;
    const long count = write(file, what, std::strlen(what));
    const int error = errno;
    close(file);
    errno = error;
    return count;
}
long child(long (*what)()) {  // in a process of its own
    int ends[2];
    if (pipe(ends)) return 0;
    const pid_t pid = fork();
    if (pid == 0) {
        const long result = what();
        const int error = result < 0 ? errno : 0;
        if (write(ends[1], &error, sizeof error) < 0) _exit(1);
        _exit(0);
    }
    int error = 0;
    if (read(ends[0], &error, sizeof error) < 0) error = 0;
    close(ends[0]);
    close(ends[1]);
    waitpid(pid, nullptr, 0);
    return error ? stop(error) : 0;
}
// The first descriptor whose file has this name.
int descriptor(const char *name) {
    for (int fd = 3; fd < 1024; fd++) {
        char target[256] = {};
        if (readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, 255) > 0 &&
            std::strstr(target, name))
            return fd;
    }
    return -1;
}
sockaddr_un path_address(const std::string &path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}
sockaddr_un abstract_address() {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string name = text("ESCAPE_ABSTRACT");
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    return address;
}
socklen_t abstract_size() {
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  text("ESCAPE_ABSTRACT").size());
}
int reopened(const char *name) {
    return open(("/proc/self/fd/" + std::to_string(descriptor(name))).c_str(), O_RDWR | O_CLOEXEC);
}
// A path; where there is no such file, one that nobody may open.
std::string there(const std::string &path) {
    return access(path.c_str(), F_OK) == 0 ? path : of_app("mem");
}
std::string last(const char *folder, unsigned int kind) {
    std::string path;
    DIR *names = opendir(folder);
    while (const dirent *entry = names ? readdir(names) : nullptr) {
        struct stat about;
        const std::string name = std::string(folder) + "/" + entry->d_name;
        if (stat(name.c_str(), &about) == 0 && (about.st_mode & S_IFMT) == kind) path = name;
    }
    if (names) closedir(names);
    return there(path);
}
int pair(int kind) {
    int ends[2];
    return socketpair(AF_UNIX, kind, 0, ends) ? -1 : ends[0];
}
// Whether there is the secret, of which only the reverse is known: it must not be here by our doing.
bool has_secret(const std::string &all) {
    const std::string reverse = text("ESCAPE_REVERSE");
    const size_t size = reverse.size();
    for (size_t at = all.find(reverse.back()); at != std::string::npos && at + size <= all.size();
         at = all.find(reverse.back(), at + 1)) {
        size_t same = 0;
        while (same < size && all[at + same] == reverse[size - 1 - same]) same++;
        if (same == size) return true;
    }
    return false;
}
void *in_thread(void *way) {
    return reinterpret_cast<void *>(reinterpret_cast<long (*)()>(way)() < 0 ? long{errno} : 0L);
}

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
// row: takes descriptors of the application
WAY(descriptors_of_application, "landlock") {
    char target[256];
    return readlink(of_app("fd/0").c_str(), target, sizeof target);
}
WAY(file_of_application, "landlock") {
    return opened(of_app(("fd/" + text("ESCAPE_FD")).c_str()), O_RDWR);
}
WAY(root_of_application, "landlock") { return opened(of_app("root") + victim(), O_WRONLY); }
WAY(folder_of_application, "landlock") { return opened(of_app("cwd") + "/new", O_WRONLY | O_CREAT); }
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
WAY(timer_slack, "landlock") { return wrote(of_app("timerslack_ns"), "1"); }

// row: opens a connection
WAY(internet, "filter") { return socket(AF_INET, SOCK_STREAM, 0); }
WAY(internet_datagrams, "filter") { return socket(AF_INET6, SOCK_DGRAM, 0); }
WAY(netlink, "filter") { return socket(AF_NETLINK, SOCK_RAW, 0); }
WAY(raw_packets, "filter") { return socket(AF_PACKET, SOCK_RAW, 0); }
WAY(virtual_machine, "filter") { return socket(AF_VSOCK, SOCK_STREAM, 0); }
WAY(kernel_crypto, "filter") { return socket(AF_ALG, SOCK_SEQPACKET, 0); }
WAY(pair_of_other_kind, "filter") {
    int ends[2];
    return socketpair(AF_TIPC, SOCK_STREAM, 0, ends);
}
WAY(connect_pair, "filter") {
    const sockaddr_un address = path_address(text("ESCAPE_DATAGRAMS"));
    return connect(pair(SOCK_DGRAM), reinterpret_cast<const sockaddr *>(&address), sizeof address);
}
WAY(datagram, "filter") {
    const sockaddr_un address = path_address(text("ESCAPE_DATAGRAMS"));
    return sendto(pair(SOCK_DGRAM), "out", 3, 0, reinterpret_cast<const sockaddr *>(&address),
                  sizeof address);
}
WAY(abstract_datagram, "filter") {
    const sockaddr_un address = abstract_address();
    return sendto(pair(SOCK_DGRAM), "out", 3, 0, reinterpret_cast<const sockaddr *>(&address),
                  abstract_size());
}
WAY(message, "filter") {
    sockaddr_un address = path_address(text("ESCAPE_DATAGRAMS"));
    char out[] = "out";
    iovec part = {out, 3};
    msghdr what = {};
    what.msg_name = &address;
    what.msg_namelen = sizeof address;
    what.msg_iov = &part;
    what.msg_iovlen = 1;
    return sendmsg(pair(SOCK_DGRAM), &what, 0);
}
WAY(messages, "filter") {
    sockaddr_un address = abstract_address();
    char out[] = "out";
    iovec part = {out, 3};
    mmsghdr what = {};
    what.msg_hdr.msg_name = &address;
    what.msg_hdr.msg_namelen = abstract_size();
    what.msg_hdr.msg_iov = &part;
    what.msg_hdr.msg_iovlen = 1;
    return sendmmsg(pair(SOCK_DGRAM), &what, 1, 0);
}
WAY(name_of_socket, "filter") {
    const sockaddr_un address = path_address(own("socket"));
    return bind(pair(SOCK_DGRAM), reinterpret_cast<const sockaddr *>(&address), sizeof address);
}
WAY(rings, "filter") {
    char parameters[120] = {};
    return syscall(425, 4, parameters);
}
// row: makes or opens memory, queues
WAY(shared_memory, "filter") { return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600); }
WAY(semaphores, "filter") { return semget(IPC_PRIVATE, 1, IPC_CREAT | 0600); }
WAY(queue, "filter") { return syscall(SYS_msgget, IPC_PRIVATE, IPC_CREAT | 0600); }
WAY(named_queue, "filter") { return mq_open("/headrace-escape", O_CREAT | O_RDWR, 0600, nullptr); }

WAY(named_memory, "landlock") { return opened("/dev/shm/headrace-escape", O_RDWR | O_CREAT); }
WAY(memory_of_others, "landlock") { return opened(text("ESCAPE_SHARED"), O_RDWR); }

// row: makes, changes, moves
WAY(new_file, "landlock") { return opened(beside("new.txt"), O_WRONLY | O_CREAT); }
WAY(change_file, "landlock") { return opened(victim(), O_WRONLY); }
WAY(append, "landlock") { return opened(victim(), O_WRONLY | O_APPEND); }
WAY(empty_by_reading, "filter") { return opened(victim(), O_RDONLY | O_TRUNC); }
WAY(shorten, "landlock") { return truncate(victim().c_str(), 0); }
WAY(remove_file, "landlock") { return unlink(victim().c_str()); }
WAY(rename_file, "landlock") { return rename(victim().c_str(), beside("other").c_str()); }
WAY(take_file, "landlock") { return rename(victim().c_str(), own("taken").c_str()); }
WAY(link_file, "landlock") { return link(victim().c_str(), own("linked").c_str()); }
WAY(new_folder, "landlock") { return mkdir(beside("folder").c_str(), 0700); }
WAY(remove_folder, "landlock") { return rmdir(beside("empty").c_str()); }
WAY(new_link, "landlock") { return symlink("/etc", beside("link").c_str()); }
WAY(unnamed_file, "landlock") { return opened(text("ESCAPE_FOLDER"), O_TMPFILE | O_WRONLY); }
WAY(exchange_files, "landlock") {
    opened(own("mine"), O_WRONLY | O_CREAT);
    return syscall(SYS_renameat2, AT_FDCWD, victim().c_str(), AT_FDCWD, own("mine").c_str(), 2);
}
WAY(new_device, "rights") { return mknod(own("device").c_str(), S_IFCHR | 0600, 0x101); }
WAY(kernel_setting, "landlock") { return opened("/proc/sys/kernel/core_pattern", O_WRONLY); }
WAY(control_group, "landlock") { return opened(last("/sys/fs/cgroup", S_IFDIR) + "/cgroup.procs", O_WRONLY); }
WAY(new_pipe, "landlock") { return mkfifo(beside("pipe").c_str(), 0600); }
WAY(through_own_link, "landlock") {
    unlink(own("way").c_str());
    if (symlink(victim().c_str(), own("way").c_str()) != 0) return -1;
    return opened(own("way"), O_WRONLY);
}
WAY(through_path_handle, "landlock") {
    const int place = open(victim().c_str(), O_PATH);
    return opened("/proc/self/fd/" + std::to_string(place), O_WRONLY);
}
WAY(by_structure, "filter") {
    unsigned long how[3] = {O_WRONLY, 0, 0};
    return syscall(437, AT_FDCWD, victim().c_str(), how, sizeof how);
}
WAY(by_handle, "filter") {
    struct {
        unsigned int bytes;
        int type;
        char data[128];
    } handle = {128, 0, {}};
    int mount;
    syscall(SYS_name_to_handle_at, AT_FDCWD, "/", &handle, &mount, 0);
    return syscall(SYS_open_by_handle_at, open("/", O_RDONLY), &handle, O_RDONLY);
}
WAY(working_folder, "landlock") { return opened("escape.txt", O_WRONLY | O_CREAT); }
WAY(in_a_child, "landlock") { return child(change_file); }
WAY(call_in_a_child, "filter") { return child(handle_of_process); }
WAY(in_a_program, "landlock") {
    const std::string line = "echo x 2>/dev/null >> '" + victim() + "'";
    const int status = system(line.c_str());
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : stop(EACCES);
}
WAY(in_a_thread, "landlock") {
    pthread_t thread;
    void *error = nullptr;
    pthread_create(&thread, nullptr, in_thread, reinterpret_cast<void *>(change_file));
    pthread_join(thread, &error);
    return error ? stop(static_cast<int>(reinterpret_cast<long>(error))) : 0;
}

// row: changes rights, owner
WAY(rights_of_file, "filter") { return chmod(victim().c_str(), 0777); }
WAY(rights_by_descriptor, "filter") { return fchmod(open(victim().c_str(), O_RDONLY), 0777); }
WAY(owner_of_file, "filter") { return chown(victim().c_str(), getuid(), getgid()); }
WAY(times_of_file, "filter") { return utimensat(AT_FDCWD, victim().c_str(), nullptr, 0); }
WAY(attribute_of_file, "filter") {
    return setxattr(victim().c_str(), "user.escape", "x", 1, 0);
}
WAY(flags_of_file, "filter") {
    long flags = 0;
    return ioctl(open(victim().c_str(), O_RDONLY), 0x40086602, &flags);
}
WAY(lease, "filter") { return fcntl(open(victim().c_str(), O_RDONLY), F_SETLEASE, F_RDLCK); }

// row: reads devices
WAY(type_into_terminal, "filter") {
    char letter = 'x';
    return ioctl(STDOUT_FILENO, TIOCSTI, &letter);
}
WAY(change_terminal, "filter") { return ioctl(STDOUT_FILENO, TIOCSPGRP, nullptr); }
WAY(disk, "landlock") { return opened(last("/dev", S_IFBLK), O_RDWR); }
WAY(kernel_messages, "landlock") { return opened(there("/dev/kmsg"), O_WRONLY); }
WAY(new_terminal, "landlock") { return opened(there("/dev/ptmx"), O_RDWR | O_NOCTTY); }
WAY(read_terminal, "landlock") {
    return opened(text("ESCAPE_TERMINAL"), O_RDONLY | O_NOCTTY | O_NONBLOCK);
}
WAY(read_input, "descriptors") {
    char letter;
    return read(STDIN_FILENO, &letter, 1) > 0 ? 0 : stop(ENODATA);
}

// row: reads or changes what the application prints
WAY(read_output, "descriptors") {
    char text[64] = {};
    for (const char *name : {"/proc/self/fd/1", "/proc/self/fd/2"}) {
        const int file = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        const long count = file < 0 ? -1 : read(file, text, sizeof text - 1);
        close(file);
        if (count > 0 && std::strstr(text, "printed before")) return 0;
    }
    return stop(ENODATA);
}
WAY(shorten_output, "descriptors") {  // a file, as the test has it
    return ftruncate(STDERR_FILENO, 0) == 0 ? 0 : stop(ENODATA);
}
WAY(output_that_does_not_wait, "descriptors") {  // the test looks at the application's
    fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
    fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK | O_APPEND);
    return stop(ENODATA);
}

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
WAY(shrink_outputs, "seals") { return ftruncate(descriptor("outputs"), 0); }
WAY(grow_report, "seals") { return ftruncate(descriptor("report"), 1 << 30); }
WAY(seal_inputs, "filter") { return fcntl(descriptor("inputs"), 1033, 8); }

// row: takes more memory
WAY(allocate_outputs, "filter") {
    return fallocate(descriptor("outputs"), 0, 0, off_t{64} << 30);
}
WAY(write_far, "limits") { return pwrite(descriptor("outputs"), "x", 1, off_t{64} << 30); }
WAY(own_file_in_memory, "filter") { return syscall(SYS_memfd_create, "escape", 0); }
WAY(secret_memory, "filter") { return syscall(447, 0); }
WAY(map_much, "limits") {
    void *at = mmap(nullptr, size_t{64} << 30, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? -1 : 0;
}
WAY(room_of_kernel, "filter") {
    unsigned long context = 0;
    return syscall(SYS_io_setup, 65536, &context);
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
    auto *count = static_cast<int *>(mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0));
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
WAY(secret_in_environment, "environment") {
    return getenv("ESCAPE_API_TOKEN") ? 0 : stop(ENODATA);
}
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

extern "C" bool ParseEscape(const std::vector<NvDsInferLayerInfo> &layers,
                            const NvDsInferNetworkInfo &, const NvDsInferParseDetectionParams &,
                            std::vector<NvDsInferObjectDetectionInfo> &objects) {
    const auto which = static_cast<size_t>(static_cast<const float *>(layers[0].buffer)[0]);
    NvDsInferObjectDetectionInfo box = {};
    errno = 0;
    const long result = Way::all().at(which).run();
    box.top = static_cast<float>(errno);
    box.left = result < 0 ? 0.0f : 1.0f;
    box.width = box.height = 1;
    box.detectionConfidence = 0.5f;
    objects.push_back(box);
    return true;
}
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(ParseEscape);

// Calls that a worker does not outlive, by number.
extern "C" bool ParseHarm(const std::vector<NvDsInferLayerInfo> &layers,
                          const NvDsInferNetworkInfo &, const NvDsInferParseDetectionParams &,
                          std::vector<NvDsInferObjectDetectionInfo> &) {
    switch (static_cast<int>(static_cast<const float *>(layers[0].buffer)[0])) {
        case 0:
            for (;;) pause();
        case 1: std::abort();
        default:  // all that it shares with the application, and the numbers of its answer
            for (const char *name : {"page", "outputs"}) {
                struct stat about;
                const int file = descriptor(name);
                fstat(file, &about);
                const auto size = static_cast<size_t>(about.st_size);
                void *at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
                if (at != MAP_FAILED) std::memset(at, 0x7f, size);
            }
            if (write(descriptor("socket"), "\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f", 8) < 0) return false;
            for (;;) pause();
    }
}
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(ParseHarm);
