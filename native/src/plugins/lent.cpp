// Memory that a plugin is lent while it runs: views beyond it are refused, and what ends the
// process meanwhile is told by the plugin's name. Of each thread its own.
#include "plugins/lent.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "guard/crash_note.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::plugins {
namespace {

// First address, first address behind it, whether it may be written to, what it is.
using Block = std::tuple<std::uintptr_t, std::uintptr_t, bool, std::string>;
using Blocks = std::vector<Block>;

// What a handler of signals says of a plugin. No pointers: what it wrote wrongly may lie anywhere.
struct Told {
    struct Place {
        std::uintptr_t end;
        char name[24];
    };
    char call[232] = {}, library[256] = {};
    std::size_t serial = 0;
    std::size_t count = 0;
    Place places[8] = {};
};

int thread_id() {  // glibc has a function for it from 2.30 on
    return static_cast<int>(syscall(SYS_gettid));
}

template <std::size_t kSize>
void copy_text(char (&to)[kSize], const std::string &text) {
    text.copy(to, kSize - 1);
}

struct LentMemory {
    Blocks blocks;
    Told told;

    LentMemory(Blocks lent, const std::string &call, const std::string &library)
        : blocks(std::move(lent)) {
        static std::atomic<std::size_t> made{0};
        told.serial = ++made;
        copy_text(told.call, call);
        copy_text(told.library, library.empty() ? "LIBRARY" : library);
        for (const auto &[start, end, writable, name] : blocks) {
            if (!writable || told.count == std::size(told.places)) continue;
            Told::Place &place = told.places[told.count++];
            place.end = end;
            copy_text(place.name, name);
        }
    }
};

// Of threads that run plugins. In the memory of this library, whose code stands before it: a write
// behind an output ends there, while it runs over the heap, where threads have their variables.
struct Slot {
    std::atomic<int> thread{0};
    std::atomic<bool> runs{false};
    Told told;
};
Slot slots[64];

struct Thread {
    std::vector<const LentMemory *> lent;  // the innermost is the last
    Slot *slot = nullptr;

    Thread() {
        for (Slot &one : slots) {
            int free = 0;
            if (!one.thread.compare_exchange_strong(free, thread_id())) continue;
            slot = &one;
            return;
        }
    }
    ~Thread() {
        if (slot && lent.empty()) slot->thread = 0;  // else a plugin calls exit(), which is told
    }
    Thread(const Thread &) = delete;
    Thread &operator=(const Thread &) = delete;

    void show_innermost() {
        if (!slot) return;
        if (!lent.empty() && slot->told.serial != lent.back()->told.serial)
            slot->told = lent.back()->told;
        slot->runs.store(!lent.empty(), std::memory_order_release);
    }
};

thread_local Thread here;

void lend(const LentMemory &memory) {
    Thread &thread = here;
    thread.lent.push_back(&memory);
    thread.show_innermost();
}
void give_back() {
    Thread &thread = here;
    thread.lent.pop_back();
    thread.show_innermost();
}

const Told *told_here() {
    for (const Slot &one : slots)
        if (one.thread == thread_id()) return one.runs && one.told.call[0] ? &one.told : nullptr;
    return nullptr;
}

const Block *block_at(std::uintptr_t address) {
    const auto &lent = here.lent;
    for (auto memory = lent.rbegin(); memory != lent.rend(); ++memory)
        for (const Block &block : (*memory)->blocks)
            if (std::get<0>(block) <= address && address < std::get<1>(block)) return &block;
    return nullptr;
}

nb::object view(std::uintptr_t address, Py_ssize_t size, bool writable) {
    if (const Block *block = block_at(address))
        if (static_cast<std::size_t>(size) > std::get<1>(*block) - address ||
            (writable && !std::get<2>(*block)))
            return nb::none();
    return nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char *>(address), size,
                                             writable ? PyBUF_WRITE : PyBUF_READ));
}

Blocks blocks() {
    Blocks all;
    const auto &lent = here.lent;
    for (auto memory = lent.rbegin(); memory != lent.rend(); ++memory)
        all.insert(all.end(), (*memory)->blocks.begin(), (*memory)->blocks.end());
    return all;
}

}  // namespace

bool runs_here() { return told_here() != nullptr; }

bool runs_anywhere() {
    return std::any_of(std::begin(slots), std::end(slots),
                       [](const Slot &one) { return one.thread && one.runs; });
}

void say_call(const void *address, void (*say)(const char *, std::size_t)) {
    const Told *told = told_here();
    if (!told) return;
    const auto text = [say](const char *words) { say(words, std::strlen(words)); };
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    text(" in ");
    text(told->call);
    constexpr std::uintptr_t kReach = 1 << 30;
    const char *before = ": ";
    for (std::size_t i = 0; i < told->count; ++i) {
        const auto &[end, name] = told->places[i];
        if (at < end || at - end > kReach) continue;
        text(before);
        char digits[24];
        say(digits,
            static_cast<std::size_t>(std::to_chars(digits, digits + 24, at - end).ptr - digits));
        text(" bytes behind the end of ");
        text(name);
        before = ", ";
    }
    text("\n  headrace check-plugin ");
    text(told->library);
    text(" looks for the fault; headrace run --guard always runs the plugin in a worker process\n");
}

void bind_lent(nb::module_ &m) {
    nb::class_<LentMemory>(m, "LentMemory",
                           "Lets `lent_view` check against `blocks` in this thread while a `with` "
                           "runs. A block has its first address, the first one behind it, whether "
                           "a plugin may write there, and a name. A handler of fatal signals "
                           "prints `call` and `library`, if the plugin is named.")
        .def(
            "__init__",
            [](LentMemory *self, Blocks blocks, const std::string &call,
               const std::string &library) {
                guard::note_plugins();
                new (self) LentMemory(std::move(blocks), call, library);
            },
            "blocks"_a, "call"_a = "", "library"_a = "")
        .def("__enter__", &lend)
        .def(
            "__exit__", [](const LentMemory &, nb::handle, nb::handle, nb::handle) { give_back(); },
            "kind"_a.none(), "error"_a.none(), "trace"_a.none(),
            nb::sig("def __exit__(self, kind: object, error: object, trace: object) -> None"));
    m.def("lend", &lend, "memory"_a, "Does what entering it does; `give_back` leaves: faster.");
    m.def("give_back", &give_back, "Leaves what was lent last.");
    m.def("lent_view", &view, "address"_a, "size"_a, "writable"_a,
          nb::sig("def lent_view(address: int, size: int, writable: bool) -> memoryview | None"),
          "As `memory_view`; None if it reached beyond the lent block that begins or holds the "
          "address, or would write where it must not.");
    m.def("lent_blocks", &blocks, "All blocks that are lent in this thread, the innermost first.");
}

}  // namespace headrace::plugins
