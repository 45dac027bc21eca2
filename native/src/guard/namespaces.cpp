// A view of the file system of a process's own, where the kernel has no Landlock.
// Source: man 7 mount_namespaces, man 7 user_namespaces, man 2 mount_setattr.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "guard/filter_calls.h"
#include "guard/layers.h"

namespace headrace::guard {
namespace {

constexpr unsigned int kRecursive = 0x8000;  // AT_RECURSIVE
struct MountRights {
    uint64_t set, clear, propagation, user_namespace;
};
constexpr uint64_t kReadOnly = 1, kNoDevices = 4;

[[noreturn]] void fail(const char *step) {
    throw std::runtime_error(std::string(step) + ": " + std::strerror(errno));
}

void write_text(const char *path, const std::string &text) {
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    if (write(file, text.data(), text.size()) < 0) errno = 0;  // its numbers are shown as others
    close(file);
}

std::string same(unsigned int id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; }

void set_rights(const char *path, unsigned int flags, const MountRights &rights) {
    if (syscall(__NR_mount_setattr, AT_FDCWD, path, flags, &rights, sizeof rights) != 0)
        fail("mount_setattr");
}

// Those that begin so and became mounts, whose rights can differ from those of what is around them.
std::vector<std::string> own_mounts(const std::vector<std::string> &paths, const char *start) {
    std::vector<std::string> mounts;
    for (const std::string &path : paths)
        if (path.rfind(start, 0) == 0 &&
            mount(path.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0)
            mounts.push_back(path);
    return mounts;
}

void allow(const std::vector<std::string> &mounts, uint64_t what) {
    for (const std::string &path : mounts) set_rights(path.c_str(), kRecursive, {0, what, 0, 0});
}

}  // namespace

void separate(const Reach &reach) {
    const uid_t user = geteuid();
    const gid_t group = getegid();
    constexpr int kOwn = CLONE_NEWNS | CLONE_NEWIPC;
    if (unshare(kOwn) != 0) {
        // A user's own namespace of users gives the right to the others.
        if (unshare(CLONE_NEWUSER | kOwn) != 0) fail("unshare");
        write_text("/proc/self/setgroups", "deny");
        write_text("/proc/self/uid_map", same(user));
        write_text("/proc/self/gid_map", same(group));
    }
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) fail("mount");
    const std::vector<std::string> written = own_mounts(reach.writes, "/"),
                                   devices = own_mounts(reach.devices, "/dev/"),
                                   own = own_mounts(reach.devices, "/proc/");
    set_rights("/", kRecursive, {kReadOnly | kNoDevices, 0, 0, 0});
    allow(written, kReadOnly);
    allow(own, kReadOnly);
    allow(devices, kNoDevices);  // what is read-only does not keep anybody from writing to a disk
    // Shared memory and terminals of others.
    for (const char *folder : {"/dev/shm", "/dev/pts"})
        mount("none", folder, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k");
}

}  // namespace headrace::guard
