// See repack.h. A tile of positions is transposed in the first-level cache and leaves it in whole
// lines; what is larger than the caches leaves it past them, as a large memory copy does.
#include "plugins/repack.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "core/thread_pool.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace headrace::plugins {
namespace {

constexpr std::size_t kTile = 16384;  // bytes of a tile
constexpr std::size_t kSmallCaches = std::size_t{4} << 20;
constexpr std::size_t kWorthThreads = std::size_t{1} << 18;

// Bytes of a target that the caches do not hold: three quarters of a core's share of the last one,
// from where on a memory copy writes past them, too.
std::size_t past_caches() {
    static const std::size_t bytes = [] {
        std::size_t share = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
        const long size = sysconf(_SC_LEVEL3_CACHE_SIZE), cores = sysconf(_SC_NPROCESSORS_ONLN);
        if (size > 0 && cores > 0)
            share = static_cast<std::size_t>(size) / static_cast<std::size_t>(cores) / 4 * 3;
#endif
        return std::max(kSmallCaches, share);
    }();
    return bytes;
}

#if defined(__SSE2__)
template <int Item>
__m128i low(__m128i a, __m128i b) {
    if constexpr (Item == 1)
        return _mm_unpacklo_epi8(a, b);
    else if constexpr (Item == 2)
        return _mm_unpacklo_epi16(a, b);
    else if constexpr (Item == 4)
        return _mm_unpacklo_epi32(a, b);
    else
        return _mm_unpacklo_epi64(a, b);
}
template <int Item>
__m128i high(__m128i a, __m128i b) {
    if constexpr (Item == 1)
        return _mm_unpackhi_epi8(a, b);
    else if constexpr (Item == 2)
        return _mm_unpackhi_epi16(a, b);
    else if constexpr (Item == 4)
        return _mm_unpackhi_epi32(a, b);
    else
        return _mm_unpackhi_epi64(a, b);
}

// One perfect shuffle over all elements of `Count` vectors: the first half and the second half
// alternate. The bits of an element's index rotate by one, so that log2(Count) of them interleave
// `Count` rows, and log2(elements of a vector) more bring the rows back.
template <int Item, int Count>
void shuffle(__m128i *v) {
    __m128i out[Count];
    for (int i = 0; i < Count / 2; ++i) {
        out[2 * i] = low<Item>(v[i], v[i + Count / 2]);
        out[2 * i + 1] = high<Item>(v[i], v[i + Count / 2]);
    }
    for (int i = 0; i < Count; ++i) v[i] = out[i];
}

constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }

__m128i load(const char *at) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(at)); }
void store(char *at, __m128i v) { _mm_storeu_si128(reinterpret_cast<__m128i *>(at), v); }

// `Rows` rows of one vector each at `row_step` bytes, interleaved: to `column_step` bytes each if
// a column is a whole vector, else densely.
template <int Item, int Rows>
void interleave(const char *from, std::size_t row_step, int present, char *to,
                std::size_t column_step) {
    constexpr int kLanes = 16 / Item;
    __m128i v[Rows];
    for (int i = 0; i < Rows; ++i)
        v[i] =
            i < present ? load(from + static_cast<std::size_t>(i) * row_step) : _mm_setzero_si128();
    for (int stage = 0; stage < log2_of(Rows); ++stage) shuffle<Item, Rows>(v);
    const std::size_t step = Rows == kLanes ? column_step : 16;
    for (int i = 0; i < Rows; ++i) store(to + static_cast<std::size_t>(i) * step, v[i]);
}
template <int Item, int Rows>
void separate(const char *from, std::size_t column_step, char *to, std::size_t row_step,
              int present) {
    constexpr int kLanes = 16 / Item;
    const std::size_t step = Rows == kLanes ? column_step : 16;
    __m128i v[Rows];
    for (int i = 0; i < Rows; ++i) v[i] = load(from + static_cast<std::size_t>(i) * step);
    for (int stage = 0; stage < log2_of(kLanes); ++stage) shuffle<Item, Rows>(v);
    for (int i = 0; i < present; ++i) store(to + static_cast<std::size_t>(i) * row_step, v[i]);
}
#endif

void move_out(char *to, const char *from, std::size_t size, bool past_caches) {
#if defined(__SSE2__)
    if (past_caches && size >= 64) {
        const std::size_t head = (0 - reinterpret_cast<std::uintptr_t>(to)) & 15;
        std::memcpy(to, from, head);
        std::size_t i = head;
        for (; i + 16 <= size; i += 16)
            _mm_stream_si128(reinterpret_cast<__m128i *>(to + i), load(from + i));
        std::memcpy(to + i, from + i, size - i);
        return;
    }
#endif
    std::memcpy(to, from, size);
}

template <typename T, typename Step>
void each(std::size_t count, std::size_t positions, Step step) {
    for (std::size_t c = 0; c < count; ++c)
        for (std::size_t s = 0; s < positions; ++s) step(c, s);
}

// The `count` channels of a block, at `n` positions; rows are `row_step` elements apart, columns
// `width`. Padding is zero already.
template <typename T>
void weave(const T *rows, std::size_t row_step, T *columns, std::size_t width, std::size_t count,
           std::size_t n) {
    constexpr int kItem = sizeof(T);
    std::size_t c = 0, done = 0;
#if defined(__SSE2__)
    constexpr std::size_t kLanes = 16 / kItem;
    const auto groups = [&](auto rows_of) {
        constexpr int kRows = decltype(rows_of)::value;
        for (; c < count && c + kRows <= width; c += kRows)
            for (std::size_t s = 0; s + kLanes <= n; s += kLanes)
                interleave<kItem, kRows>(
                    reinterpret_cast<const char *>(rows + c * row_step + s), row_step * kItem,
                    static_cast<int>(std::min<std::size_t>(kRows, count - c)),
                    reinterpret_cast<char *>(columns + s * width + c), width * kItem);
        done = n / kLanes * kLanes;
    };
    using Lanes = std::integral_constant<int, 16 / kItem>;
    using Two = std::integral_constant<int, 2>;
    using Four = std::integral_constant<int, 4>;
    using Eight = std::integral_constant<int, 8>;
    if (width >= kLanes)
        groups(Lanes{});
    else if (width == 2)
        groups(Two{});
    else if (width == 4)
        groups(Four{});
    else if (width == 8)
        groups(Eight{});
    c = std::min(c, count);
    if (done < n)
        each<T>(c, n - done, [&](std::size_t i, std::size_t s) {
            columns[(done + s) * width + i] = rows[i * row_step + done + s];
        });
#endif
    const std::size_t rest = count - c;
    if (rest == 3) {  // images
        const T *a = rows + c * row_step, *b = a + row_step, *d = b + row_step;
        for (std::size_t s = 0; s < n; ++s) {
            columns[s * width + c] = a[s];
            columns[s * width + c + 1] = b[s];
            columns[s * width + c + 2] = d[s];
        }
        return;
    }
    each<T>(rest, n, [&](std::size_t i, std::size_t s) {
        columns[s * width + c + i] = rows[(c + i) * row_step + s];
    });
}

template <typename T>
void unweave(const T *columns, std::size_t width, T *rows, std::size_t row_step, std::size_t count,
             std::size_t n) {
    constexpr int kItem = sizeof(T);
    std::size_t c = 0, done = 0;
#if defined(__SSE2__)
    constexpr std::size_t kLanes = 16 / kItem;
    const auto groups = [&](auto rows_of) {
        constexpr int kRows = decltype(rows_of)::value;
        for (; c < count && c + kRows <= width; c += kRows)
            for (std::size_t s = 0; s + kLanes <= n; s += kLanes)
                separate<kItem, kRows>(
                    reinterpret_cast<const char *>(columns + s * width + c), width * kItem,
                    reinterpret_cast<char *>(rows + c * row_step + s), row_step * kItem,
                    static_cast<int>(std::min<std::size_t>(kRows, count - c)));
        done = n / kLanes * kLanes;
    };
    using Lanes = std::integral_constant<int, 16 / kItem>;
    using Two = std::integral_constant<int, 2>;
    using Four = std::integral_constant<int, 4>;
    using Eight = std::integral_constant<int, 8>;
    if (width >= kLanes)
        groups(Lanes{});
    else if (width == 2)
        groups(Two{});
    else if (width == 4)
        groups(Four{});
    else if (width == 8)
        groups(Eight{});
    c = std::min(c, count);
    if (done < n)
        each<T>(c, n - done, [&](std::size_t i, std::size_t s) {
            rows[i * row_step + done + s] = columns[(done + s) * width + i];
        });
#endif
    each<T>(count - c, n, [&](std::size_t i, std::size_t s) {
        rows[(c + i) * row_step + s] = columns[s * width + c + i];
    });
}

// What one call of a thread does: some positions of one block.
struct Part {
    std::size_t image, block, from, to;
};

template <typename Do>
void in_parts(const Packing &p, std::size_t bytes, Do act) {
    const std::size_t all = p.images * p.blocks();
    const std::size_t cut =
        bytes < kWorthThreads || p.threads < 2
            ? 1
            : std::max<std::size_t>(1, (static_cast<std::size_t>(p.threads) * 2 + all - 1) / all);
    const std::size_t step = (p.positions + cut - 1) / cut;
    const auto task = [&](int number) {
        const std::size_t of = static_cast<std::size_t>(number) / cut;
        const std::size_t from = static_cast<std::size_t>(number) % cut * step;
        const std::size_t to = std::min(from + step, p.positions);
        if (from < to) act(Part{of / p.blocks(), of % p.blocks(), from, to});
    };
    const int count = static_cast<int>(all * cut);
    const int threads = bytes < kWorthThreads ? 1 : p.threads;
    if (threads < 2) {
        for (int i = 0; i < count; ++i) task(i);
    } else {
        core::ThreadPool::shared().run(threads, count, task);
    }
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

template <typename T>
void pack_of(const Packing &p, const T *rows, T *blocks) {
    const std::size_t bytes = p.images * p.blocks() * p.positions * p.width * sizeof(T);
    const bool past = bytes > past_caches();
    const std::size_t tile = std::max<std::size_t>(16, kTile / (p.width * sizeof(T)) / 16 * 16);
    in_parts(p, bytes, [&](const Part &part) {
        const std::size_t first = part.block * p.width;
        const std::size_t count = std::min(p.width, p.channels - first);
        const T *from = rows + (part.image * p.channels + first) * p.positions;
        T *to = blocks + (part.image * p.blocks() + part.block) * p.positions * p.width;
        if (!past) {
            T *at = to + part.from * p.width;
            const std::size_t n = part.to - part.from;
            if (count < p.width) std::memset(static_cast<void *>(at), 0, n * p.width * sizeof(T));
            for (std::size_t s = 0; s < n; s += tile)
                weave(from + part.from + s, p.positions, at + s * p.width, p.width, count,
                      std::min(tile, n - s));
            return;
        }
        const std::unique_ptr<T[]> space(new T[tile * p.width]());  // padding stays zero
        for (std::size_t s = part.from; s < part.to; s += tile) {
            const std::size_t n = std::min(tile, part.to - s);
            weave(from + s, p.positions, space.get(), p.width, count, n);
            move_out(reinterpret_cast<char *>(to + s * p.width),
                     reinterpret_cast<const char *>(space.get()), n * p.width * sizeof(T), true);
        }
    });
}

template <typename T>
void unpack_of(const Packing &p, const T *blocks, T *rows) {
    const std::size_t bytes = p.images * p.channels * p.positions * sizeof(T);
    const bool past = bytes > past_caches();
    const std::size_t tile = std::max<std::size_t>(64, kTile / (p.width * sizeof(T)) / 64 * 64);
    in_parts(p, bytes, [&](const Part &part) {
        const std::size_t first = part.block * p.width;
        const std::size_t count = std::min(p.width, p.channels - first);
        const T *from = blocks + (part.image * p.blocks() + part.block) * p.positions * p.width;
        T *to = rows + (part.image * p.channels + first) * p.positions;
        const std::unique_ptr<T[]> space(past ? new T[tile * count] : nullptr);
        for (std::size_t s = part.from; s < part.to; s += tile) {
            const std::size_t n = std::min(tile, part.to - s);
            if (!past) {
                unweave(from + s * p.width, p.width, to + s, p.positions, count, n);
                continue;
            }
            unweave(from + s * p.width, p.width, space.get(), tile, count, n);
            for (std::size_t c = 0; c < count; ++c)
                move_out(reinterpret_cast<char *>(to + c * p.positions + s),
                         reinterpret_cast<const char *>(space.get() + c * tile), n * sizeof(T),
                         true);
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
