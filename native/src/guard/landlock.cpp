// Rights of the file system, taken from a process by the kernel's Landlock.
// Source: man 7 landlock, Documentation/userspace-api/landlock.rst; names and numbers are those of
// linux/landlock.h, which old systems do not have.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "guard/layers.h"

namespace headrace::guard {
namespace {

constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr unsigned int kAskVersion = 1, kPathBeneath = 1;

struct Ruleset {
    uint64_t files, network, scoped;
};
struct __attribute__((packed)) PathBeneath {
    uint64_t allowed;
    int32_t parent;
};

constexpr uint64_t kWriteFile = 1u << 1, kReadFile = 1u << 2, kReadFolder = 1u << 3,
                   kRemoveFolder = 1u << 4, kRemoveFile = 1u << 5, kMakeDevice = 1u << 6,
                   kMakeFolder = 1u << 7, kMakeFile = 1u << 8, kMakeSocket = 1u << 9,
                   kMakeFifo = 1u << 10, kMakeBlockDevice = 1u << 11, kMakeLink = 1u << 12,
                   kRefer = 1u << 13, kTruncate = 1u << 14, kAskDevice = 1u << 15;
constexpr uint64_t kFirst = kWriteFile | kReadFile | kReadFolder | kRemoveFolder | kRemoveFile |
                            kMakeDevice | kMakeFolder | kMakeFile | kMakeSocket | kMakeFifo |
                            kMakeBlockDevice | kMakeLink;
constexpr uint64_t kRead = kReadFile | kReadFolder;
constexpr uint64_t kWrite = kRead | kWriteFile | kRemoveFolder | kRemoveFile | kMakeFolder |
                            kMakeFile | kMakeSocket | kMakeFifo | kMakeLink | kRefer | kTruncate;
// Drivers open the names of their threads as files to be emptied.
constexpr uint64_t kUse = kRead | kWriteFile | kTruncate | kAskDevice;
constexpr uint64_t kOfFiles = kWriteFile | kReadFile | kTruncate | kAskDevice;
constexpr uint64_t kConnectTcp = 1u << 1, kBindTcp = 1u << 0;
constexpr uint64_t kAbstractSockets = 1u << 0, kSignals = 1u << 1;

uint64_t rights_of(int version) {
    return kFirst | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0) |
           (version >= 5 ? kAskDevice : 0);
}

class Descriptor {
public:
    explicit Descriptor(long number) : number_(static_cast<int>(number)) {}
    ~Descriptor() {
        if (number_ >= 0) close(number_);
    }
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    int number() const { return number_; }

private:
    int number_;
};

[[noreturn]] void fail() { throw std::runtime_error(std::strerror(errno)); }

void allow(int ruleset, const std::vector<std::string> &paths, uint64_t rights) {
    for (const std::string &path : paths) {
        const Descriptor place(open(path.c_str(), O_PATH | O_CLOEXEC));
        struct stat about;
        if (place.number() < 0 || fstat(place.number(), &about) != 0) continue;
        const PathBeneath rule{S_ISDIR(about.st_mode) ? rights : rights & kOfFiles, place.number()};
        if (syscall(kAddRule, ruleset, kPathBeneath, &rule, 0) != 0) fail();
    }
}

}  // namespace

int landlock_version() {
    const long version = syscall(kCreateRuleset, nullptr, size_t{0}, kAskVersion);
    return version < 0 ? 0 : static_cast<int>(version);
}

void landlock(int version, const Reach &reach) {
    const uint64_t known = rights_of(version);
    const Ruleset rules{known, version >= 4 ? kConnectTcp | kBindTcp : 0,
                        version >= 6 ? kAbstractSockets | kSignals : 0};
    const size_t size = version >= 6 ? sizeof rules : version >= 4 ? 16 : 8;
    const Descriptor ruleset(syscall(kCreateRuleset, &rules, size, 0u));
    if (ruleset.number() < 0) fail();
    if (!reach.narrow) allow(ruleset.number(), {"/"}, kReadFolder);
    allow(ruleset.number(), reach.reads, kRead);
    allow(ruleset.number(), reach.devices, kUse & known);
    allow(ruleset.number(), reach.writes, kWrite & known);
    if (syscall(kRestrictSelf, ruleset.number(), 0u) != 0) fail();
}

}  // namespace headrace::guard
