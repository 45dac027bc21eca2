// A way out, and what ways share: names, files and processes around the worker.
#pragma once

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
// Whether there is the secret, of which only the reverse is known: it must not be here by our
// doing.
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

}  // namespace
