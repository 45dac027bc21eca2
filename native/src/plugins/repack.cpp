// See repack.h. A tile of positions is transposed in the caches, on its way from memory to memory.
#include "plugins/repack.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/thread_pool.h"
#include "plugins/repack_strips.h"

namespace headrace::plugins {
namespace {

constexpr std::size_t kLine = 64;          // bytes of a cache line
constexpr std::size_t kPageOfSets = 4096;  // bytes from a line to the next one of its set
constexpr std::size_t kWays = 8;           // lines of a set
constexpr std::size_t kTile = 1 << 17;     // bytes of a tile: long runs of each row
constexpr std::size_t kFar = 5 << 20;      // bytes of tensors that come from memory, not a cache
constexpr std::size_t kStream = 8 << 20;   // the same of what nobody finds in a cache afterwards
constexpr std::size_t kWorthThreads = std::size_t{1} << 18;

// What one call of a thread does: some positions of one block. `number` counts the blocks of all
// images.
struct Part {
    std::size_t image, block, number, from, to;
};

template <typename Do>
void in_parts(const Packing &p, std::size_t bytes, Do act) {
    const std::size_t blocks = p.blocks(), all = p.images * blocks;
    if (bytes < kWorthThreads || p.threads < 2) {
        std::size_t number = 0;  // divisions take longer than small blocks
        for (std::size_t image = 0; image < p.images; ++image)
            for (std::size_t block = 0; block < blocks; ++block)
                act(Part{image, block, number++, 0, p.positions});
        return;
    }
    const std::size_t cut =
        std::max<std::size_t>(1, (static_cast<std::size_t>(p.threads) * 2 + all - 1) / all);
    const std::size_t step = ((p.positions + cut - 1) / cut + kLine - 1) / kLine * kLine;
    core::ThreadPool::shared().run(p.threads, static_cast<int>(all * cut), [&](int number) {
        const std::size_t of = static_cast<std::size_t>(number) / cut;
        const std::size_t from = static_cast<std::size_t>(number) % cut * step;
        const std::size_t to = std::min(from + step, p.positions);
        if (from < to) act(Part{of / blocks, of % blocks, of, from, to});
    });
}

// Positions of a tile.
template <typename T>
std::size_t tile_of(const Packing &p) {
    constexpr std::size_t kStep = kLine / sizeof(T);
    return std::max(kStep, kTile / (p.width * sizeof(T)) / kStep * kStep);
}

// Whether rows share so few sets of the caches that lines are lost before they are used up.
inline bool collide(std::size_t row, std::size_t rows) {
    if (rows < kWays || row < kPageOfSets / kWays) return false;
    unsigned char lines[kPageOfSets / kLine] = {};
    for (std::size_t r = 0, at = 0; r < std::min<std::size_t>(rows, 64); ++r, at += row)
        if (++lines[at / kLine % (kPageOfSets / kLine)] > kWays) return true;
    return false;
}

// The `count` channels of a block, at `n` positions.
template <typename T>
Strips strips(const Packing &p, T *rows, T *columns, std::size_t count, std::size_t n, bool apart) {
    const std::size_t row = p.positions * sizeof(T);
    return {reinterpret_cast<char *>(rows),
            row,
            reinterpret_cast<char *>(columns),
            p.width,
            count,
            n,
            apart,
            p.images * p.channels * row >= kFar,
            p.images * p.channels * row >= kStream};
}

template <typename T>
void pack_of(const Packing &p, const T *rows, T *blocks) {
    const std::size_t tile = tile_of<T>(p);
    const bool apart = collide(p.positions * sizeof(T), p.width);
    in_parts(p, p.images * p.blocks() * p.positions * p.width * sizeof(T), [&](const Part &part) {
        const std::size_t first = part.block * p.width;
        const std::size_t count = std::min(p.width, p.channels - first);
        const T *from = rows + (part.image * p.channels + first) * p.positions;
        T *to = blocks + part.number * p.positions * p.width;
        for (std::size_t s = part.from; s < part.to; s += tile) {
            const std::size_t n = std::min(tile, part.to - s);
            T *const target = to + s * p.width;
            const Strips all = strips(p, const_cast<T *>(from + s), target, count, n, apart);
            std::size_t done = p.vectors < 64 ? 0 : weave_lines(all, sizeof(T));
            if (!done && count < p.width)
                std::memset(static_cast<void *>(target), 0, n * p.width * sizeof(T));
            if (!done && p.vectors >= 32) done = weave_strips(all, sizeof(T));
            if (done == n) continue;
            for (std::size_t c = 0; c < count; ++c)
                for (std::size_t k = done; k < n; ++k)
                    target[k * p.width + c] = from[c * p.positions + s + k];
        }
    });
}

template <typename T>
void unpack_of(const Packing &p, const T *blocks, T *rows) {
    const std::size_t tile = tile_of<T>(p);
    const bool apart = collide(p.positions * sizeof(T), p.width);
    in_parts(p, p.images * p.channels * p.positions * sizeof(T), [&](const Part &part) {
        const std::size_t first = part.block * p.width;
        const std::size_t count = std::min(p.width, p.channels - first);
        const T *from = blocks + part.number * p.positions * p.width;
        T *to = rows + (part.image * p.channels + first) * p.positions;
        for (std::size_t s = part.from; s < part.to; s += tile) {
            const std::size_t n = std::min(tile, part.to - s);
            const T *const source = from + s * p.width;
            const Strips all = strips(p, to + s, const_cast<T *>(source), count, n, apart);
            std::size_t done = p.vectors < 64 ? 0 : unweave_lines(all, sizeof(T));
            if (!done && p.vectors >= 32) done = unweave_strips(all, sizeof(T));
            if (done == n) continue;
            for (std::size_t c = 0; c < count; ++c)
                for (std::size_t k = done; k < n; ++k)
                    to[c * p.positions + s + k] = source[k * p.width + c];
        }
    });
}

}  // namespace

void pack(const Packing &shape, const char *rows, char *blocks) {
    by_item(shape.item, [&](auto one) {
        using T = decltype(one);
        pack_of(shape, reinterpret_cast<const T *>(rows), reinterpret_cast<T *>(blocks));
    });
}

void unpack(const Packing &shape, const char *blocks, char *rows) {
    by_item(shape.item, [&](auto one) {
        using T = decltype(one);
        unpack_of(shape, reinterpret_cast<const T *>(blocks), reinterpret_cast<T *>(rows));
    });
}

}  // namespace headrace::plugins
