// Where FFmpeg may connect to. Its protocols follow addresses that a server sends, and no option of
// theirs says which: so its calls of connect and sendto come here, where the thread's own rule is
// asked. Calls of other libraries, and of threads without a rule, are the system's.
#include <arpa/inet.h>
#include <elf.h>
#include <link.h>
#include <nanobind/nanobind.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/unlocked.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::core {
namespace {

// Owned; a plain pointer, as threads end without the GIL.
thread_local PyObject *rule = nullptr;

bool may_reach(int socket, const sockaddr *to, socklen_t size) {
    char address[INET6_ADDRSTRLEN] = {};
    int port = 0;
    if (to->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
        const auto *place = reinterpret_cast<const sockaddr_in *>(to);
        inet_ntop(AF_INET, &place->sin_addr, address, sizeof address);
        port = ntohs(place->sin_port);
    } else if (to->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
        const auto *place = reinterpret_cast<const sockaddr_in6 *>(to);
        inet_ntop(AF_INET6, &place->sin6_addr, address, sizeof address);
        port = ntohs(place->sin6_port);
    } else {
        return false;
    }
    int kind = 0;
    socklen_t kind_size = sizeof kind;
    getsockopt(socket, SOL_SOCKET, SO_TYPE, &kind, &kind_size);
    const Locked locked;
    PyObject *answer =
        PyObject_CallFunction(rule, "siO", address, port, kind == SOCK_STREAM ? Py_True : Py_False);
    if (answer == nullptr) {
        PyErr_Clear();
        return false;
    }
    const bool yes = answer == Py_True;
    Py_DECREF(answer);
    return yes;
}

int judged_connect(int socket, const sockaddr *to, socklen_t size) {
    if (rule != nullptr && !may_reach(socket, to, size)) {
        errno = EACCES;
        return -1;
    }
    return ::connect(socket, to, size);
}

ssize_t judged_sendto(int socket, const void *data, std::size_t bytes, int flags,
                      const sockaddr *to, socklen_t size) {
    if (rule != nullptr && to != nullptr && !may_reach(socket, to, size)) {
        errno = EACCES;
        return -1;
    }
    return ::sendto(socket, data, bytes, flags, to, size);
}

struct Call {
    const char *name;
    void *instead;
};

const Call kCalls[] = {
    {"connect", reinterpret_cast<void *>(&judged_connect)},
    {"sendto", reinterpret_cast<void *>(&judged_sendto)},
};

// The part of a library that says where its calls of other libraries go.
struct Links {
    std::uintptr_t base = 0;
    const ElfW(Sym) *symbols = nullptr;
    const char *names = nullptr;
    const ElfW(Rela) * tables[2] = {};
    std::size_t counts[2] = {};
    std::uintptr_t fixed = 0, fixed_end = 0;  // made read-only after it was loaded

    std::uintptr_t at(ElfW(Addr) pointer) const {  // some loaders leave these relative
        return pointer < base ? base + pointer : pointer;
    }
};

Links links_of(const dl_phdr_info &library) {
    Links links;
    links.base = library.dlpi_addr;
    bool with_addends = true;
    for (int i = 0; i < library.dlpi_phnum; ++i) {
        const ElfW(Phdr) &part = library.dlpi_phdr[i];
        if (part.p_type == PT_GNU_RELRO) {
            links.fixed = links.base + part.p_vaddr;
            links.fixed_end = links.fixed + part.p_memsz;
        }
        if (part.p_type != PT_DYNAMIC) continue;
        auto *entry = reinterpret_cast<const ElfW(Dyn) *>(links.base + part.p_vaddr);
        for (; entry->d_tag != DT_NULL; ++entry) {
            const std::uintptr_t at = links.at(entry->d_un.d_ptr);
            switch (entry->d_tag) {
            case DT_SYMTAB: links.symbols = reinterpret_cast<const ElfW(Sym) *>(at); break;
            case DT_STRTAB: links.names = reinterpret_cast<const char *>(at); break;
            case DT_JMPREL: links.tables[0] = reinterpret_cast<const ElfW(Rela) *>(at); break;
            case DT_RELA: links.tables[1] = reinterpret_cast<const ElfW(Rela) *>(at); break;
            case DT_PLTRELSZ: links.counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
            case DT_RELASZ: links.counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
            case DT_PLTREL: with_addends = entry->d_un.d_val == DT_RELA; break;
            default: break;
            }
        }
    }
    if (!with_addends) links.counts[0] = 0;
    return links;
}

bool is_link(std::size_t kind) {
#if defined(__x86_64__)
    return kind == R_X86_64_JUMP_SLOT || kind == R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
    return kind == R_AARCH64_JUMP_SLOT || kind == R_AARCH64_GLOB_DAT;
#else
    return false;
#endif
}

bool write_link(const Links &links, std::uintptr_t at, void *target) {
    auto *slot = reinterpret_cast<void **>(at);
    if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) == target) return true;
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    auto *start = reinterpret_cast<void *>(at & ~(page - 1));
    const bool fixed = at >= links.fixed && at < links.fixed_end;
    if (fixed && mprotect(start, page, PROT_READ | PROT_WRITE) != 0) return false;
    __atomic_store_n(slot, target, __ATOMIC_RELEASE);
    if (fixed) mprotect(start, page, PROT_READ);
    return true;
}

// Directs the calls of one library here, if it is FFmpeg's; counts libraries that connect.
int direct(dl_phdr_info *library, std::size_t, void *counted) {
    if (library->dlpi_name == nullptr || !std::strstr(library->dlpi_name, "libavformat")) return 0;
    const Links links = links_of(*library);
    if (links.symbols == nullptr || links.names == nullptr) return 0;
    for (int table = 0; table < 2; ++table) {
        for (std::size_t i = 0; links.tables[table] != nullptr && i < links.counts[table]; ++i) {
            const ElfW(Rela) &link = links.tables[table][i];
            if (!is_link(ELF64_R_TYPE(link.r_info))) continue;
            const char *name = links.names + links.symbols[ELF64_R_SYM(link.r_info)].st_name;
            for (const Call &call : kCalls) {
                if (std::strcmp(name, call.name) != 0) continue;
                const bool done = write_link(links, links.base + link.r_offset, call.instead);
                if (done && &call == kCalls) ++*static_cast<int *>(counted);
            }
        }
    }
    return 0;
}

bool judge_connections(nb::object asked) {
    int libraries = 0;
    if (!asked.is_none()) dl_iterate_phdr(&direct, &libraries);
    PyObject *before = rule;
    rule = asked.is_none() ? nullptr : asked.release().ptr();
    Py_XDECREF(before);
    return libraries > 0;
}

}  // namespace

void bind_connections(nb::module_ &m) {
    m.def("judge_connections", &judge_connections, "rule"_a.none(),
          "Ask `rule(address, port, stream)` before FFmpeg connects or sends in this thread; None "
          "asks no more. Whether FFmpeg's calls could be directed here: without that, nothing is "
          "asked.");
}

}  // namespace headrace::core
