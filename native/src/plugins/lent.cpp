// Memory that a plugin is lent while it runs: views beyond it are refused. Of each thread its own.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::plugins {
namespace {

// First address, first address behind it, whether it may be written to, what it is.
using Block = std::tuple<std::uintptr_t, std::uintptr_t, bool, std::string>;
using Blocks = std::vector<Block>;

// The innermost is the last.
thread_local std::vector<const Blocks *> lent;

struct LentMemory {
    Blocks blocks;
};

void lend(const LentMemory &memory) { lent.push_back(&memory.blocks); }
void give_back() { lent.pop_back(); }

const Block *block_at(std::uintptr_t address) {
    for (auto blocks = lent.rbegin(); blocks != lent.rend(); ++blocks)
        for (const Block &block : **blocks)
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
    for (auto blocks = lent.rbegin(); blocks != lent.rend(); ++blocks)
        all.insert(all.end(), (*blocks)->begin(), (*blocks)->end());
    return all;
}

}  // namespace

void bind_lent(nb::module_ &m) {
    nb::class_<LentMemory>(m, "LentMemory",
                           "Lets `lent_view` check against `blocks` in this thread, for a block "
                           "of code; each is its first address, the first one behind it, whether "
                           "it may be written to, and its name.")
        .def(
            "__init__",
            [](LentMemory *self, Blocks blocks) { new (self) LentMemory{std::move(blocks)}; },
            "blocks"_a)
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
