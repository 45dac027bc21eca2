// The layout of the structures of code that calls: a mark in its object, or what its paths tell.
#include "generation.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/generation.h"

namespace headrace::deepstream {

namespace {

constexpr int kFirstOfThisLayout = 9;  // releases from here on have the same objects and frames

// What an object of the process tells of itself.
struct Object {
    uintptr_t address = 0;  // of the code in question
    uintptr_t start = 0, end = 0;
    std::string name;
    std::string mark;     // of headers of headrace; empty: none
    std::string release;  // "6.2", where its search path names deepstream-6.2
};

// Returns the text of headrace's note; empty where the segment has none.
std::string mark_in(const char *note, size_t size) {
    size_t at = 0;
    const auto padded = [](size_t bytes) { return (bytes + 3) & ~size_t{3}; };
    while (at + sizeof(ElfW(Nhdr)) <= size) {
        ElfW(Nhdr) head;
        std::memcpy(&head, note + at, sizeof head);
        const size_t name = at + sizeof head, text = name + padded(head.n_namesz);
        if (text + head.n_descsz > size) break;
        if (head.n_namesz == sizeof "headrace" &&
            std::memcmp(note + name, "headrace", sizeof "headrace") == 0)
            return {note + text, strnlen(note + text, head.n_descsz)};
        at = text + padded(head.n_descsz);
    }
    return {};
}

// Returns X.Y of deepstream-X.Y in a search path; empty where there is none.
std::string release_in(const char *path) {
    static constexpr char kWord[] = "deepstream-";
    const char *word = std::strstr(path, kWord);
    if (word == nullptr) return {};
    word += sizeof kWord - 1;
    return {word, std::strspn(word, "0123456789.")};
}

void read_paths(const ElfW(Dyn) * entry, Object &object) {
    const char *texts = nullptr;
    ElfW(Xword) path = 0;
    bool has_path = false;
    for (; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_STRTAB) texts = reinterpret_cast<const char *>(entry->d_un.d_ptr);
        if (entry->d_tag == DT_RPATH || entry->d_tag == DT_RUNPATH) {
            path = entry->d_un.d_val;
            has_path = true;
        }
    }
    if (texts != nullptr && has_path) object.release = release_in(texts + path);
}

int visit(dl_phdr_info *info, size_t, void *data) {
    auto &object = *static_cast<Object *>(data);
    bool holds = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto &segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD) continue;
        const uintptr_t start = info->dlpi_addr + segment.p_vaddr;
        if (object.address < start || object.address >= start + segment.p_memsz) continue;
        object.start = start;
        object.end = start + segment.p_memsz;
        holds = true;
    }
    if (!holds) return 0;
    object.name = info->dlpi_name;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto &segment = info->dlpi_phdr[i];
        const auto *at = reinterpret_cast<const char *>(info->dlpi_addr + segment.p_vaddr);
        if (segment.p_type == PT_NOTE && object.mark.empty())
            object.mark = mark_in(at, segment.p_memsz);
        if (segment.p_type == PT_DYNAMIC)
            read_paths(reinterpret_cast<const ElfW(Dyn) *>(at), object);
    }
    return 1;
}

std::string file_of(const Object &object) {
    if (!object.name.empty()) return object.name;
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    return length > 0 ? std::string(path, length) : "the program";
}

// Judges an object, and tells of one that is not known to have the layout.
bool judged(const Object &object) {
    static constexpr char kFix[] =
        "compile it with headrace compile, or with headrace's headers first on its path";
    if (object.mark == HEADRACE_LAYOUT) return true;
    // Python's calls by address go through libffi: its structures are those of the table.
    if (object.start == 0 || object.name.find("libffi") != std::string::npos) return true;
    const std::string file = file_of(object);
    const std::string &other = object.mark.empty() ? object.release : object.mark;
    if (!other.empty() && (!object.mark.empty() || std::atoi(other.c_str()) < kFirstOfThisLayout)) {
        std::fprintf(stderr,
                     "error: %s was compiled with headers of %s, the library has the layout of %s:"
                     " objects, rectangles, surfaces and events differ; it gets no metadata; %s\n",
                     file.c_str(), other.c_str(), HEADRACE_LAYOUT, kFix);
        return false;
    }
    if (other.empty())
        std::fprintf(stderr,
                     "warning: %s carries no mark of headrace's headers: it is right if it was"
                     " compiled with headers of 9.x; else %s\n",
                     file.c_str(), kFix);
    return true;
}

struct Verdict {
    uintptr_t start, end;
    bool same;
};

}  // namespace

bool same_layout(const void *caller) {
    static std::mutex lock;
    static std::vector<Verdict> known;
    const auto address = reinterpret_cast<uintptr_t>(caller);
    const auto verdict = [address]() -> const Verdict * {
        for (const Verdict &one : known)
            if (address >= one.start && address < one.end) return &one;
        return nullptr;
    };
    {
        const std::lock_guard<std::mutex> guard(lock);
        if (const Verdict *one = verdict()) return one->same;
    }
    Object object;
    object.address = address;
    dl_iterate_phdr(visit, &object);  // takes the loader's lock, so this one is not held
    const std::lock_guard<std::mutex> guard(lock);
    if (const Verdict *one = verdict()) return one->same;
    const bool same = judged(object);
    known.push_back({object.start, object.end, same});
    return same;
}

}  // namespace headrace::deepstream
