// See repack_strips.h.
#include "plugins/repack_strips.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstdint>

#include "plugins/repack_vectors.h"

namespace headrace::plugins {
namespace {

constexpr std::size_t kStreams = 16;  // rows that a processor follows by itself
constexpr std::size_t kRowsAhead = 256, kColumnsAhead = 2048;  // bytes

template <int Item, bool There, Way Kind>
constexpr std::size_t step_of() {  // positions
    return (Kind == Way::kTwice && There ? kHalf : 2 * kHalf) / Item;
}

// Help for the caches: rows that collide there are read, or written, in runs of whole lines with a
// place of their own; what comes from memory is asked for in time, and blocks are written past the
// caches. Rows are not: that takes longer.
enum class Guide { kNone, kApart, kFar, kFarApart };

// The positions that are done, none where addresses do not fit.
template <int Item, bool There, int Rows, Way Kind, bool Full, int Groups, Guide kGuide>
HEADRACE_INLINE std::size_t guided(const Strips &s, std::size_t first, int present) {
    constexpr std::size_t kStep = step_of<Item, There, Kind>(), kPiece = kLine / Item;
    constexpr std::size_t kSpan = Rows * Groups * Item;
    constexpr std::size_t kRun = kGuide == Guide::kFar        ? 0
                                 : kGuide == Guide::kFarApart ? kLine
                                 : There                      ? 4 * kLine
                                                              : 8 * kLine;
    constexpr std::size_t kBeside = kRun > kLine ? kRun + kLine : kRun;
    constexpr std::size_t kTogether = std::max<std::size_t>(kRun, kLine) / Item;
    constexpr bool kWoven = There && kGuide != Guide::kApart;
    const std::size_t column = s.width * Item, row = s.row;
    char *const rows = s.rows + first * row, *const columns = s.columns + first * Item;
    const bool dense = kSpan == column;
    if (kWoven && (!s.stream || reinterpret_cast<std::uintptr_t>(columns) % kLine ||
                   (!dense && (kSpan | column) % kLine)))
        return 0;
    const bool asks = kGuide == Guide::kFar && s.width > kStreams;
    alignas(kLine) char lines[kRun ? Rows * Groups * kBeside : kLine];
    alignas(kLine) char woven[kWoven ? kPiece * kSpan : kLine];
    const std::size_t count = Full ? Rows * Groups : present;
    std::size_t at = 0;
    for (; at + kTogether <= s.positions; at += kTogether) {
        char *const here = rows + at * Item, *const from = kRun ? lines : here;
        const std::size_t step = kRun ? kBeside : row;
        if constexpr (There && kRun > 0)
            for (std::size_t r = 0; r < count; ++r)
                copy_lines<false>(lines + r * kBeside, here + r * row, kRun);
        for (std::size_t k = 0; k < kTogether; k += kPiece) {
            char *const straight = columns + (at + k) * column;
            char *const to = kWoven ? woven : straight;
            const std::size_t span = kWoven ? kSpan : column;
            if (asks)
                for (std::size_t r = 0; r < count; ++r)
                    __builtin_prefetch(here + r * row + kRowsAhead);
            for (std::size_t i = 0; i < kPiece; i += kStep)
                for (std::size_t g = 0; g < Groups; ++g)
                    strip<Item, There, Rows, Kind, Full>(from + g * Rows * step + (k + i) * Item,
                                                         step, present,
                                                         to + g * Rows * Item + i * span, span);
            if constexpr (kWoven && kSpan % kLine == 0) {
                if (!dense)
                    for (std::size_t i = 0; i < kPiece; ++i)
                        copy_lines<true>(straight + i * column, woven + i * kSpan, kSpan);
            }
            if (kWoven && dense) copy_lines<true>(straight, woven, kPiece * kSpan);
        }
        if constexpr (!There && kRun > 0)
            for (std::size_t r = 0; r < count; ++r)
                copy_lines<false>(here + r * row, lines + r * kBeside, kRun);
    }
    if (kWoven) _mm_sfence();
    return at;
}

// Positions from the first on that are done of `present` rows, and of as many behind them in each
// of `Groups`. The last ones are moved twice where their number is odd.
template <int Item, bool There, int Rows, Way Kind, bool Full, int Groups = 1,
          Guide kGuide = Guide::kNone>
HEADRACE_TARGET std::size_t along(const Strips &s, std::size_t first, int present) {
    constexpr std::size_t kStep = step_of<Item, There, Kind>();
    const std::size_t spare = Kind == Way::kThree ? (4 + 3 * Item - 1) / (3 * Item) : 0;
    if (s.positions < kStep + spare) return 0;
    const std::size_t column = s.width * Item, row = s.row, end = s.positions - spare;
    char *rows = s.rows + first * row, *columns = s.columns + first * Item;
    std::size_t at = 0;
    if constexpr (kGuide != Guide::kNone && (There || kGuide == Guide::kApart))
        at = guided<Item, There, Rows, Kind, Full, Groups, kGuide>(s, first, present);
    const auto step = [=](std::size_t from) HEADRACE_TARGET {
        if constexpr (kGuide == Guide::kFar) {
            if (Item > 1 && from * Item % kLine < kStep * Item)
                for (std::size_t r = 0; r < Rows * Groups; ++r)
                    __builtin_prefetch(rows + r * row + from * Item + kRowsAhead);
            for (std::size_t k = 0; k < kStep; ++k)
                __builtin_prefetch(columns + (from + k) * column + kColumnsAhead);
        }
        for (int g = 0; g < Groups; ++g)
            strip<Item, There, Rows, Kind, Full>(
                rows + static_cast<std::size_t>(g * Rows) * row + from * Item, row, present,
                columns + g * Rows * Item + from * column, column);
    };
    for (; at + kStep <= end; at += kStep) step(at);
    if (Kind == Way::kThree) return at;
    if (at < end) step(end - kStep);
    return s.positions;
}

// So many groups that they fill `Bytes` of a column.
template <int Item, bool There, int Rows, Way Kind, int Bytes, Guide kGuide>
std::size_t groups(const Strips &s) {
    constexpr int kTogether = Kind == Way::kTwice ? std::max(1, Bytes / (Rows * Item)) : 1;
    std::size_t done = s.positions, c = 0;
    if constexpr (kTogether > 1 || kGuide != Guide::kNone)
        for (; c + kTogether * Rows <= s.channels; c += kTogether * Rows)
            done = along<Item, There, Rows, Kind, true, kTogether, kGuide>(s, c, Rows);
    for (; c < s.channels; c += Rows) {
        // The last rows are moved twice, too.
        const std::size_t first = std::min(c, s.width - Rows);
        const int present = static_cast<int>(std::min<std::size_t>(Rows, s.channels - first));
        done = present == Rows ? along<Item, There, Rows, Kind, true, 1, kGuide>(s, first, present)
                               : along<Item, There, Rows, Kind, false>(s, first, present);
    }
    return done;
}

template <int Item, bool There, int Rows, Way Kind>
std::size_t strips(const Strips &s) {
    if constexpr (Kind != Way::kThree && Kind != Way::kNarrow) {
        // Of smaller elements a whole line's rows would be more than a core follows in memory.
        constexpr int kFarBytes = Item < 4 ? kLine / 2 : kLine;
        if (There && s.stream && s.apart)
            return groups<Item, There, Rows, Kind, kLine, Guide::kFarApart>(s);
        if (There && s.stream) return groups<Item, There, Rows, Kind, kLine, Guide::kFar>(s);
        if (s.far && s.width > kStreams)
            return groups<Item, There, Rows, Kind, kFarBytes, Guide::kFar>(s);
        if (s.apart && !s.far) return groups<Item, There, Rows, Kind, kLine, Guide::kApart>(s);
    }
    return groups<Item, There, Rows, Kind, kLine, Guide::kNone>(s);
}

template <int Item, bool There>
std::size_t by_width(const Strips &s) {
    constexpr int kLanes = kHalf / Item;
    if (s.width >= 2 * kLanes) return strips<Item, There, 2 * kLanes, Way::kTwice>(s);
    if (There && s.width == kLanes) return strips<Item, There, kLanes, Way::kSquare>(s);
    if (s.width >= kLanes) return strips<Item, There, kLanes, Way::kWide>(s);
    if (s.width == 2) return strips<Item, There, 2, Way::kNarrow>(s);
    if constexpr (kLanes > 2) {
        if (s.width == 3 && s.channels == 3) return strips<Item, There, 3, Way::kThree>(s);
    }
    if constexpr (kLanes > 4) {
        if (s.width == 4) return strips<Item, There, 4, Way::kNarrow>(s);
    }
    if constexpr (kLanes > 8) {
        if (s.width == 8) return strips<Item, There, 8, Way::kNarrow>(s);
    }
    return 0;
}

template <bool There>
std::size_t moved(const Strips &s, std::size_t item) {
    static const bool usable = __builtin_cpu_supports("avx2");
    if (!usable) return 0;
    return by_item(item, [&](auto one) { return by_width<sizeof(one), There>(s); });
}

}  // namespace

std::size_t weave_strips(const Strips &s, std::size_t item) { return moved<true>(s, item); }
std::size_t unweave_strips(const Strips &s, std::size_t item) { return moved<false>(s, item); }

}  // namespace headrace::plugins

#else

namespace headrace::plugins {
std::size_t weave_strips(const Strips &, std::size_t) { return 0; }
std::size_t unweave_strips(const Strips &, std::size_t) { return 0; }
}  // namespace headrace::plugins

#endif
