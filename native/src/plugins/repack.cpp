// See repack.h. A tile of positions is transposed in the caches, on its way from memory to memory.
#include "plugins/repack.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "core/thread_pool.h"
#include "plugins/repack_avx2.h"

namespace headrace::plugins {
namespace {

constexpr std::size_t kLine = 64;            // bytes of a cache line
constexpr std::size_t kPageOfSets = 4096;    // bytes from a line to the next one of its set
constexpr std::size_t kTile = 1 << 17;       // bytes of a tile: long runs of each row
constexpr std::size_t kTileApart = 1 << 15;  // the same of rows that are copied first
constexpr std::size_t kFar = 5 << 20;        // bytes of tensors that come from memory, not a cache
constexpr std::size_t kStreams = 16;         // rows that a processor follows by itself
constexpr std::size_t kRowsAhead = 256, kColumnsAhead = 2048;  // bytes
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
    const std::size_t step = (p.positions + cut - 1) / cut;
    core::ThreadPool::shared().run(p.threads, static_cast<int>(all * cut), [&](int number) {
        const std::size_t of = static_cast<std::size_t>(number) / cut;
        const std::size_t from = static_cast<std::size_t>(number) % cut * step;
        const std::size_t to = std::min(from + step, p.positions);
        if (from < to) act(Part{of / blocks, of % blocks, of, from, to});
    });
}

// How a tensor is moved.
template <typename T>
struct Course {
    // Rows collide in the caches: they are moved in a space of their own. Where all comes from
    // memory that takes longer than it saves.
    bool apart;
    bool far;          // the processor does not ask for so many rows in time
    std::size_t tile;  // positions
    std::size_t row;   // elements from a row to the next in that space

    explicit Course(const Packing &p) {
        const bool large = p.images * p.channels * p.positions * sizeof(T) >= kFar;
        apart = p.width >= 8 && p.positions * sizeof(T) % kPageOfSets == 0 && !large;
        far = p.width > kStreams && large;
        constexpr std::size_t kStep = kLine / sizeof(T);
        const std::size_t size = apart ? kTileApart : kTile;
        tile = std::max(kStep, size / (p.width * sizeof(T)) / kStep * kStep);
        row = tile + kStep;
    }
};

// Asks memory for what is read or written soon.
void ask(const void *at, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += kLine)
        __builtin_prefetch(static_cast<const char *>(at) + i);
}

template <typename T>
Strips strips(const Course<T> &course, T *rows, std::size_t row, T *columns, std::size_t width,
              std::size_t count, std::size_t n) {
    return {reinterpret_cast<char *>(rows),
            row * sizeof(T),
            reinterpret_cast<char *>(columns),
            width,
            count,
            n,
            course.far && sizeof(T) > 1 ? kRowsAhead : 0,
            course.far ? kColumnsAhead : 0};
}

// The `count` channels of a block, at `n` positions; rows are `row` elements apart, columns
// `width`. Padding is zero already.
template <typename T>
void weave(const Course<T> &course, const T *rows, std::size_t row, T *columns, std::size_t width,
           std::size_t count, std::size_t n) {
    const std::size_t done = weave_strips(
        strips(course, const_cast<T *>(rows), row, columns, width, count, n), sizeof(T));
    if (done == n) return;
    for (std::size_t c = 0; c < count; ++c)
        for (std::size_t s = done; s < n; ++s) columns[s * width + c] = rows[c * row + s];
}
template <typename T>
void unweave(const Course<T> &course, const T *columns, std::size_t width, T *rows, std::size_t row,
             std::size_t count, std::size_t n) {
    const std::size_t done = unweave_strips(
        strips(course, rows, row, const_cast<T *>(columns), width, count, n), sizeof(T));
    if (done == n) return;
    for (std::size_t c = 0; c < count; ++c)
        for (std::size_t s = done; s < n; ++s) rows[c * row + s] = columns[s * width + c];
}

template <typename T>
void pack_of(const Packing &p, const T *rows, T *blocks) {
    const Course<T> course(p);
    in_parts(p, p.images * p.blocks() * p.positions * p.width * sizeof(T), [&](const Part &part) {
        const std::size_t first = part.block * p.width;
        const std::size_t count = std::min(p.width, p.channels - first);
        const T *from = rows + (part.image * p.channels + first) * p.positions;
        T *to = blocks + part.number * p.positions * p.width;
        const std::unique_ptr<T[]> beside(course.apart ? new T[course.row * count] : nullptr);
        for (std::size_t s = part.from; s < part.to; s += course.tile) {
            const std::size_t n = std::min(course.tile, part.to - s);
            T *const target = to + s * p.width;
            if (count < p.width)
                std::memset(static_cast<void *>(target), 0, n * p.width * sizeof(T));
            if (!course.apart) {
                weave(course, from + s, p.positions, target, p.width, count, n);
                continue;
            }
            for (std::size_t c = 0; c < count; ++c) {
                if (c + 2 < count) ask(from + (c + 2) * p.positions + s, n * sizeof(T));
                std::memcpy(beside.get() + c * course.row, from + c * p.positions + s,
                            n * sizeof(T));
            }
            weave(course, beside.get(), course.row, target, p.width, count, n);
        }
    });
}

template <typename T>
void unpack_of(const Packing &p, const T *blocks, T *rows) {
    const Course<T> course(p);
    in_parts(p, p.images * p.channels * p.positions * sizeof(T), [&](const Part &part) {
        const std::size_t first = part.block * p.width;
        const std::size_t count = std::min(p.width, p.channels - first);
        const T *from = blocks + part.number * p.positions * p.width;
        T *to = rows + (part.image * p.channels + first) * p.positions;
        const std::unique_ptr<T[]> beside(course.apart ? new T[course.row * count] : nullptr);
        for (std::size_t s = part.from; s < part.to; s += course.tile) {
            const std::size_t n = std::min(course.tile, part.to - s);
            if (!course.apart) {
                unweave(course, from + s * p.width, p.width, to + s, p.positions, count, n);
                continue;
            }
            unweave(course, from + s * p.width, p.width, beside.get(), course.row, count, n);
            for (std::size_t c = 0; c < count; ++c) {
                if (c + 2 < count) ask(to + (c + 2) * p.positions + s, n * sizeof(T));
                std::memcpy(to + c * p.positions + s, beside.get() + c * course.row, n * sizeof(T));
            }
        }
    });
}

template <typename Do>
void by_item(std::size_t kItem, Do act) {
    switch (kItem) {
    case 1: return act(std::uint8_t{});
    case 2: return act(std::uint16_t{});
    case 4: return act(std::uint32_t{});
    default: return act(std::uint64_t{});
    }
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
