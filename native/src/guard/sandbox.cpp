// What a process that runs a user's library gives up before it loads it.
#include <fcntl.h>
#include <linux/capability.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "guard/filter.h"
#include "guard/layers.h"
#include "module.h"

namespace headrace::guard {
namespace {

constexpr int kKnowsShortening = 3;  // version of Landlock
constexpr int kAny = 1 << 20;

// (what is left open, why).
using Left = std::vector<std::pair<std::string, std::string>>;

std::string reason() { return std::strerror(errno); }

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

bool limit(__rlimit_resource what, uint64_t bytes) {
    const rlimit both{bytes, bytes};
    return setrlimit(what, &both) == 0;
}

// Out of memory, this process goes first, and not the application.
void go_first() {
    const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    if (write(file, "1000", 4) < 0) errno = 0;
    close(file);
}

bool end_with_parent() { return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0; }

// Keeps of root's rights those to read and write what is another user's; of a user's, none. So it
// has less than the application, whose memory is closed to it for that.
bool drop_rights() {
    constexpr uint32_t kKept = (1u << CAP_DAC_READ_SEARCH) | (1u << CAP_DAC_OVERRIDE);
    for (unsigned long right = 0; prctl(PR_CAPBSET_READ, right) >= 0; ++right)
        if (right >= 32 || !(kKept & (1u << right))) prctl(PR_CAPBSET_DROP, right);
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct rights[2] = {};
    if (syscall(SYS_capget, &head, rights) != 0) return false;
    const uint32_t kept = geteuid() == 0 ? kKept : 0;
    for (int i = 0; i < 2; ++i) {
        rights[i].permitted &= i ? 0 : kept;
        rights[i].effective = rights[i].permitted;
        rights[i].inheritable = 0;
    }
    return syscall(SYS_capset, &head, rights) == 0;
}

bool opens(int process, const char *name, int how) {
    const std::string path = "/proc/" + std::to_string(process) + "/" + name;
    const int file = open(path.c_str(), how | O_CLOEXEC);
    if (file >= 0) close(file);
    return file >= 0;
}

// Gives up, in this process and for good: see SECURITY.md. Its parent's death ends it. Returns what
// could not be done; what can be is tried on its parent, which has the application's rights. Never
// throws. With `gpu` a driver of NVIDIA works in it, and the limit is one of private writable
// memory, not of addresses, of which CUDA reserves as many as both memories have.
Left sandbox(uint64_t memory_bytes, bool gpu, std::vector<std::string> reads, bool narrow,
             std::vector<std::string> writes, std::vector<std::string> devices, int most) {
    Left left;
    const Reach reach{std::move(reads), std::move(writes), std::move(devices), narrow};
    if (!limit(RLIMIT_CORE, 0)) left.emplace_back("core-files", reason());
    go_first();
    const int parent = getppid(), version = std::min(landlock_version(), most);
    std::string why;
    if (!version) {
        why = "no Landlock in this kernel";
        try {
            separate(reach);
        } catch (const std::runtime_error &error) {
            why += std::string(", and no namespaces (") + error.what() + ")";
        }
        prctl(PR_SET_DUMPABLE, 1);  // as before
    }
    if (!drop_rights()) left.emplace_back("rights", reason());
    if (!end_with_parent()) left.emplace_back("outlives", reason());  // after a change of rights
    const bool bound = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    if (!bound) left.emplace_back("new-rights", reason());
    if (version) try {
            landlock(version, reach);
        } catch (const std::runtime_error &error) {
            why = std::string("Landlock: ") + error.what();
        }
    if (memory_bytes) {
        const uint64_t most = memory_now(gpu ? "VmData" : "VmSize") + memory_bytes;
        if (!limit(gpu ? RLIMIT_DATA : RLIMIT_AS, most) || !limit(RLIMIT_FSIZE, memory_bytes))
            left.emplace_back("memory-limit", reason());
    }
    if (!can_filter())
        left.emplace_back("calls", "no filter for this processor");
    else if (!bound || !filter_calls(gpu, version >= kKnowsShortening))
        left.emplace_back("calls", reason());
    if (opens(parent, "mem", O_RDONLY)) left.emplace_back("memory-of-others", why);
    if (opens(parent, "oom_score_adj", O_WRONLY)) left.emplace_back("files", why);
    if (narrow && opens(parent, "status", O_RDONLY)) left.emplace_back("reads", why);
    return left;
}

}  // namespace

void bind_sandbox(nanobind::module_ &m) {
    using namespace nanobind::literals;
    m.def("guard_sandbox", &sandbox, "memory_bytes"_a, "gpu"_a, "reads"_a, "narrow"_a, "writes"_a,
          "devices"_a, "landlock"_a = kAny,
          "Give up what a library does not need, for good; what could not be done: (what, why). "
          "`gpu`: a driver of NVIDIA shall work in it; `reads`, `writes`, `devices`: paths that it "
          "reaches; `narrow`: `reads` are all that it may read, folders included; `landlock`: the "
          "newest version that is used.");
    m.def("guard_landlock_version", &landlock_version, "Of this kernel; 0 without Landlock.");
    m.def(
        "guard_print_lines", [] { std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); },
        "Have C's standard output write whole lines at once, as to a terminal.");
    m.def(
        "guard_adopt_orphans", [] { return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0; },
        "Become the parent of what this process's children leave behind.");
}

}  // namespace headrace::guard
