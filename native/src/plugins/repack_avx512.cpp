// See repack_strips.h: the ways over a tensor, and what is asked for on them beforehand.
#include "plugins/repack_strips.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstdint>

#include "plugins/repack_lines.h"

namespace headrace::plugins {
namespace {

constexpr std::size_t kRun = 8 * kLine, kShort = 2 * kLine;  // bytes of rows that collide
constexpr std::size_t kAhead = 128, kNext = 1024;            // bytes that are asked for beforehand

// Positions of a step.
template <int Item, bool There, int Rows>
constexpr std::size_t step_of() {
    constexpr int kPieces = !There || Rows == 3 ? 1 : Rows == 2 ? 2 : 4;
    return kLine / kPieces / Item;
}

// `groups` of `Rows` channels, of which `present` are there, from channel `first` on. The last
// group overlaps the one before it where their number is odd.
struct Groups {
    std::size_t first, groups;
    int present;
};

template <int Item, int Rows, bool Full, bool Past, bool One>
HEADRACE_TARGET void pack_along(const Strips &given, const Groups &of) {
    constexpr std::size_t kStep = step_of<Item, true, Rows>(), kPiece = kLine / Item;
    const Strips s = given;
    const int present = of.present;
    const std::size_t column = s.width * Item, n = s.positions, last = s.width - Rows;
    const std::size_t begin = of.first, groups = One ? 1 : of.groups;
    const std::size_t ahead = std::max(kNext, kStep * column);
    const auto channel = [=](std::size_t g) {
        return One ? begin : std::min(begin + g * Rows, last);
    };
    const auto step = [=](std::size_t at, auto past) HEADRACE_HERE {
        for (std::size_t g = 0; g < groups; ++g) {
            const std::size_t c = channel(g);
            weave<Item, Rows, Full, decltype(past)::value>(
                s.rows + c * s.row + at * Item, s.row, present, s.columns + c * Item + at * column,
                column, ahead);
        }
    };
    std::size_t at = 0;
    if (s.apart && Rows > 4) {
        constexpr std::size_t kBeside = kShort + kLine;
        alignas(kLine) char beside[std::max(128, Rows) * kBeside];
        for (; at + kShort / Item <= n; at += kShort / Item) {
            for (std::size_t r = 0; r < (Full ? groups * Rows : static_cast<std::size_t>(present));
                 ++r) {
                const char *const row = s.rows + (begin + r) * s.row + at * Item;
                for (std::size_t i = 0; i < kShort; i += kLine) {
                    if (s.far) __builtin_prefetch(row + i + kShort, 0, 2);
                    _mm512_store_si512(beside + r * kBeside + i, load(row + i));
                }
            }
            for (std::size_t k = 0; k < kShort / Item; k += kStep)
                for (std::size_t g = 0; g < groups; ++g) {
                    const std::size_t c = channel(g);
                    weave<Item, Rows, Full, Past>(
                        beside + (c - begin) * kBeside + k * Item, kBeside, present,
                        s.columns + c * Item + (at + k) * column, column, ahead);
                }
        }
    }
    for (; at + kPiece <= n; at += kPiece) {
        if (s.far)
            for (std::size_t r = 0; r < groups * Rows; ++r)
                __builtin_prefetch(s.rows + (begin + r) * s.row + at * Item + kAhead);
        for (std::size_t k = 0; k < kPiece; k += kStep)
            step(at + k, std::integral_constant<bool, Past>{});
    }
    for (; at < n; at += kStep) {
        at = std::min(at, n - kStep);
        step(at, std::false_type{});
    }
}

template <int Item, int Rows, bool Full, bool Past, bool One>
HEADRACE_TARGET void unpack_along(const Strips &given, const Groups &of) {
    constexpr std::size_t kStep = kLine / Item;
    const Strips s = given;
    const int present = of.present;
    const std::size_t column = s.width * Item, n = s.positions, last = s.width - Rows;
    const std::size_t begin = of.first, groups = One ? 1 : of.groups;
    const auto steps = [=](std::size_t from, std::size_t to, std::size_t ahead,
                           auto past) HEADRACE_HERE {
        for (std::size_t g = 0; g < groups; ++g) {
            const std::size_t c = One ? begin : std::min(begin + g * Rows, last);
            for (std::size_t at = from; at < to; at += kStep)
                unweave<Item, Rows, Full, decltype(past)::value>(
                    s.columns + c * Item + at * column, column, s.rows + c * s.row + at * Item,
                    s.row, present, ahead);
        }
    };
    // What lies behind is asked for: many rows keep processors from seeing that columns are a
    // stream.
    const std::size_t span = std::min(groups * Rows * Item, column);
    const bool dense = span == column;
    const auto ask = [=](std::size_t from, std::size_t count) HEADRACE_HERE {
        const char *const next = s.columns + begin * Item + from * column;
        for (std::size_t k = 0; k < (dense ? 1 : count); ++k)
            for (std::size_t i = 0; i < (dense ? count * column : span); i += kLine)
                __builtin_prefetch(next + k * column + i, 0, 2);
    };
    std::size_t at = 0;
    const std::size_t over = reinterpret_cast<std::uintptr_t>(s.rows) % kLine;
    if (over && over % Item == 0 && s.row % kLine == 0) {
        steps(0, kStep, 0, std::false_type{});
        at = (kLine - over) / Item;
    }
    if (s.apart)
        for (; at + kRun / Item <= n; at += kRun / Item) {
            if (s.far) ask(at + kRun / Item, kRun / Item);
            steps(at, at + kRun / Item, kLine, std::integral_constant<bool, Past>{});
        }
    const std::size_t ahead = s.far ? 2 * kAhead : kAhead;
    for (; at + kStep <= n; at += kStep) {
        if (s.far) ask(at + 2 * kStep, kStep);
        steps(at, at + kStep, ahead, std::integral_constant<bool, Past>{});
    }
    if (at < n) steps(n - kStep, n, 0, std::false_type{});
}

template <int Item, bool There, int Rows, bool Past>
std::size_t strips_of(const Strips &s) {
    if (s.positions < step_of<Item, There, Rows>()) return 0;
    constexpr std::size_t kMost = std::max(1, 128 / Rows);  // groups
    const auto along = [&](const Groups &of, auto full, auto one) {
        constexpr bool kFull = decltype(full)::value, kOne = decltype(one)::value;
        There ? pack_along<Item, Rows, kFull, Past, kOne>(s, of)
              : unpack_along<Item, Rows, kFull, Past, kOne>(s, of);
    };
    const std::size_t full =
        s.channels == s.width ? (s.width + Rows - 1) / Rows : s.channels / Rows;
    if (full == 1 && s.width == Rows)
        along({0, 1, Rows}, std::true_type{}, std::true_type{});
    else
        for (std::size_t g = 0; g < full; g += kMost)
            along({g * Rows, std::min(kMost, full - g), Rows}, std::true_type{}, std::false_type{});
    const std::size_t end = There ? s.width : s.channels;
    for (std::size_t c = full * Rows; c < end; c += Rows) {
        const std::size_t first = std::min<std::size_t>(c, s.width - Rows);
        const std::size_t present = s.channels - std::min(s.channels, first);
        along({first, 1, static_cast<int>(std::min<std::size_t>(Rows, present))}, std::false_type{},
              std::true_type{});
    }
    if (Past) _mm_sfence();
    return s.positions;
}

template <int Item, bool There, int Rows>
std::size_t strips(const Strips &s) {
    // Of many rows a line each past the caches would take longer.
    if constexpr (!There && Rows > 4) return strips_of<Item, There, Rows, false>(s);
    const std::size_t begin = reinterpret_cast<std::uintptr_t>(There ? s.columns : s.rows);
    const std::size_t step = There ? s.width * Item : s.row;
    constexpr std::size_t kWritten = There && Rows != 3 ? std::min(kLine, Rows * Item) : kLine;
    const bool whole =
        There ? begin % kLine == 0 && (step % kLine == 0 || step == kWritten || Rows == 3)
              : step % kLine == 0 && begin % Item == 0;
    return s.stream && whole ? strips_of<Item, There, Rows, true>(s)
                             : strips_of<Item, There, Rows, false>(s);
}

template <int Item, bool There>
std::size_t by_width(const Strips &s) {
    constexpr int kRows = (There ? kLine : kLane) / Item;
    if (s.width >= kRows) return strips<Item, There, kRows>(s);
    if constexpr (Item < 8) {
        if (s.width == 3 && s.channels == 3) return strips<Item, There, 3>(s);
    }
    if constexpr (kRows > 2) {
        if (s.width == 2) return strips<Item, There, 2>(s);
    }
    if constexpr (kRows > 4) {
        if (s.width == 4) return strips<Item, There, 4>(s);
    }
    if constexpr (There && kRows > 8) {
        if (s.width == 8) return strips<Item, There, 8>(s);
    }
    if constexpr (There && kRows > 16) {
        if (s.width == 16) return strips<Item, There, 16>(s);
    }
    if constexpr (There && kRows > 32) {
        if (s.width == 32) return strips<Item, There, 32>(s);
    }
    return 0;
}

template <bool There>
std::size_t moved(const Strips &s, std::size_t item) {
    static const bool usable = __builtin_cpu_supports("avx512vl") &&
                               __builtin_cpu_supports("avx512bw") &&
                               __builtin_cpu_supports("avx512vbmi");
    if (!usable) return 0;
    return by_item(item, [&](auto one) { return by_width<sizeof(one), There>(s); });
}

}  // namespace

std::size_t weave_lines(const Strips &s, std::size_t item) { return moved<true>(s, item); }
std::size_t unweave_lines(const Strips &s, std::size_t item) { return moved<false>(s, item); }

}  // namespace headrace::plugins

#else

namespace headrace::plugins {
std::size_t weave_lines(const Strips &, std::size_t) { return 0; }
std::size_t unweave_lines(const Strips &, std::size_t) { return 0; }
}  // namespace headrace::plugins

#endif
