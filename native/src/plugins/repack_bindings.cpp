// The calls of repack.h for Python, by addresses: tensors may be memory of a runtime.
#include <nanobind/nanobind.h>

#include <cstdint>

#include "core/unlocked.h"
#include "module.h"
#include "plugins/repack.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::plugins {
namespace {

template <typename Do>
auto call(Do act) {
    return [act](std::uintptr_t from, std::uintptr_t to, std::size_t images, std::size_t channels,
                 std::size_t positions, std::size_t width, std::size_t item, int threads,
                 int vectors) {
        const Packing shape{images, channels, positions, width, item, threads, vectors};
        const core::Unlocked unlocked;
        act(shape, reinterpret_cast<const char *>(from), reinterpret_cast<char *>(to));
    };
}

}  // namespace

void bind_repack(nb::module_ &m) {
    m.def("pack_channels", call(&pack), "rows"_a, "blocks"_a, "images"_a, "channels"_a,
          "positions"_a, "width"_a, "item"_a, "threads"_a, "vectors"_a = 64,
          "Pack a row-major tensor (images, channels, positions) at the address `rows` into blocks "
          "of `width` channels at `blocks`; `item`: bytes of an element; `vectors`: bytes of the "
          "widest ones to use, 64, 32 or 0. Padding becomes zero.");
    m.def("unpack_channels", call(&unpack), "blocks"_a, "rows"_a, "images"_a, "channels"_a,
          "positions"_a, "width"_a, "item"_a, "threads"_a, "vectors"_a = 64,
          "The way back of `pack_channels`; padding is not read.");
}

}  // namespace headrace::plugins
