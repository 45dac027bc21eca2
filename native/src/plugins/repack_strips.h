// Rows of a block become columns, and back, by vectors of AVX-512 or AVX2 where the processor has
// them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace headrace::plugins {

struct Strips {
    char *rows;
    std::size_t row;  // bytes from a row to the next
    char *columns;
    std::size_t width;     // elements from a column to the next
    std::size_t channels;  // at most `width`; padding that vectors reach becomes zero
    std::size_t positions;
    bool apart;   // rows collide in the caches
    bool far;     // the tensor is larger than they are
    bool stream;  // by so much that blocks are written past them, where they begin at a line
};

// Calls `act` with a value of `item` bytes.
template <typename Do>
auto by_item(std::size_t item, Do act) {
    switch (item) {
    case 1: return act(std::uint8_t{});
    case 2: return act(std::uint16_t{});
    case 4: return act(std::uint32_t{});
    default: return act(std::uint64_t{});
    }
}

// Positions from the first on that are done, of elements of `item` bytes: all, or fewer where the
// processor or the width has no vectors.
std::size_t weave_lines(const Strips &s, std::size_t item);  // AVX-512: all or none
std::size_t unweave_lines(const Strips &s, std::size_t item);
std::size_t weave_strips(const Strips &s, std::size_t item);  // AVX2
std::size_t unweave_strips(const Strips &s, std::size_t item);

}  // namespace headrace::plugins
