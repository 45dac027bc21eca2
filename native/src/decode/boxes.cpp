// From the score tables of a batch to boxes: the hits of every item, and their clipped corners.
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/arrays.h"
#include "core/thread_pool.h"
#include "core/unlocked.h"
#include "decode/scores.h"
#include "module.h"

namespace nb = nanobind;

namespace headrace::decode {
namespace {

using core::Fill;
using core::In;
using Tables = nb::ndarray<const float, nb::ndim<3>, nb::device::cpu>;
using Starts = Fill<std::int32_t, nb::ndim<1>>;

// Fills `planes`, (4, room), and the columns; returns how many hits there are.
std::ptrdiff_t table_hits(const Tables &tables, int first, const In<float, nb::ndim<1>> &thresholds,
                          const Fill<float, nb::ndim<2>> &planes,
                          const Fill<std::int32_t, nb::ndim<1>> &index,
                          const Fill<std::int32_t, nb::ndim<1>> &class_id,
                          const Fill<float, nb::ndim<1>> &score, const Starts &starts,
                          int threads) {
    const auto items = static_cast<std::ptrdiff_t>(tables.shape(0));
    const auto room = static_cast<std::ptrdiff_t>(planes.shape(1));
    const auto row = static_cast<std::ptrdiff_t>(tables.stride(1));
    const auto column = static_cast<std::ptrdiff_t>(tables.stride(2));
    core::Unlocked release;
    decode::Thresholds limits{thresholds.data(), static_cast<std::ptrdiff_t>(thresholds.shape(0)),
                              std::numeric_limits<float>::infinity()};
    for (std::ptrdiff_t i = 0; i < limits.count; ++i)
        limits.lowest = std::min(limits.lowest, limits.data[i]);
    const auto candidates = static_cast<std::ptrdiff_t>(tables.shape(1));
    // Each item in a part of the columns of its own, so that threads share the items.
    core::ThreadPool::shared().run(threads, static_cast<int>(items), [&](int item) {
        const float *data = tables.data() + item * static_cast<std::ptrdiff_t>(tables.stride(0));
        const decode::ScoreTable table{data + first * column,
                                       candidates,
                                       static_cast<std::ptrdiff_t>(tables.shape(2)) - first,
                                       row,
                                       column,
                                       first > 4 ? data + 4 * column : nullptr,
                                       row};
        const std::ptrdiff_t at = item * candidates;
        decode::Hits hits{index.data() + at, class_id.data() + at, score.data() + at};
        decode::best_class(table, limits, hits, true);
        float *out = planes.data() + at;
        for (std::ptrdiff_t k = 0; k < 4; ++k)
            for (std::ptrdiff_t i = 0; i < hits.count; ++i)
                out[k * room + i] = data[hits.index[i] * row + k * column];
        starts.data()[item + 1] = static_cast<std::int32_t>(hits.count);
    });
    starts.data()[0] = 0;
    std::ptrdiff_t count = 0;
    for (std::ptrdiff_t item = 0; item < items; ++item) {
        const std::ptrdiff_t at = item * candidates, more = starts.data()[item + 1];
        auto close_up = [&](auto *values) {
            std::copy(values + at, values + at + more, values + count);
        };
        if (at > count) {
            close_up(index.data());
            close_up(class_id.data());
            close_up(score.data());
            for (std::ptrdiff_t k = 0; k < 4; ++k) close_up(planes.data() + k * room);
        }
        count += more;
        starts.data()[item + 1] = static_cast<std::int32_t>(count);
    }
    return count;
}

struct Clip {
    float high;
    // NaN goes through as it does in NumPy, and fails the last comparison.
    float operator()(float v) const {
        if (v > high) v = high;
        return v < 0.0f ? 0.0f : v;
    }
};

// Centre x, y, width, height to left, top, width, height inside the network; small boxes go.
// `cells` is (3, N), column, row and stride of each candidate, or empty; changes `starts`.
std::ptrdiff_t boxes_of_centres(
    const In<float, nb::ndim<2>> &planes, const In<std::int32_t, nb::ndim<1>> &index,
    const In<std::int32_t, nb::ndim<1>> &class_id, const In<float, nb::ndim<1>> &score,
    const Starts &starts, const In<float, nb::ndim<2>> &cells, std::pair<float, float> scale,
    std::pair<float, float> size, const Fill<float, nb::shape<-1, 4>> &boxes,
    const Fill<std::int32_t, nb::ndim<1>> &classes, const Fill<float, nb::ndim<1>> &scores) {
    const std::size_t room = planes.shape(1), grid = cells.shape(1);
    const float *p = planes.data();
    const Clip clip[2] = {{size.first}, {size.second}};
    const float factor[2] = {scale.first, scale.second};
    float *out = boxes.data();
    core::Unlocked release(index.shape(0) > core::kFew);
    std::int32_t kept = 0, from = 0;
    for (std::size_t item = 0; item + 1 < starts.shape(0); ++item) {
        const std::int32_t to = starts.data()[item + 1];
        for (std::int32_t i = from; i < to; ++i) {
            const auto at = static_cast<std::size_t>(i);
            const auto cell = static_cast<std::size_t>(index.data()[i]);
            float box[4];
            for (std::size_t k = 0; k < 2; ++k) {
                float centre = p[k * room + at], length = p[(2 + k) * room + at];
                if (grid) {
                    const float stride = cells.data()[2 * grid + cell];
                    centre = (centre + cells.data()[k * grid + cell]) * stride;
                    length = length * stride;
                } else {
                    centre *= factor[k];
                    length *= factor[k];
                }
                const float start = centre - length * 0.5f;
                const float end = clip[k](start + length);
                box[k] = clip[k](start);
                box[2 + k] = end - box[k];
            }
            if (!(box[2] >= 1.0f && box[3] >= 1.0f)) continue;
            std::copy(box, box + 4, out + 4 * static_cast<std::size_t>(kept));
            classes.data()[kept] = class_id.data()[i];
            scores.data()[kept] = score.data()[i];
            ++kept;
        }
        from = to;
        starts.data()[item + 1] = kept;
    }
    return kept;
}

// A candidate that the GPU's kernel found: `Hit` of native/gpu/hits_kernel.cu.
struct FoundHit {
    std::uint32_t place;  // item * candidates + candidate; each is found once
    std::int32_t class_id;
    float score, box[4];
};
static_assert(sizeof(FoundHit) == 28);

// The GPU finds hits in any order. A set of places, with the number of those before each word of
// it, tells the rank of each without sorting.
void ordered_hits(const In<std::uint8_t, nb::shape<-1, sizeof(FoundHit)>> &records,
                  std::uint32_t candidates, const Fill<float, nb::ndim<2>> &planes,
                  const Fill<std::int32_t, nb::ndim<1>> &index,
                  const Fill<std::int32_t, nb::ndim<1>> &class_id,
                  const Fill<float, nb::ndim<1>> &score, const Starts &starts) {
    const std::size_t count = records.shape(0), room = planes.shape(1), items = starts.shape(0) - 1;
    const std::size_t places = items * candidates, words = places / 64 + 1;
    if (index.shape(0) < count || class_id.shape(0) < count || score.shape(0) < count ||
        room < count || planes.shape(0) != 4 || starts.shape(0) == 0)
        throw nb::value_error("hits: no room for all of them");
    std::vector<std::uint64_t> set(words);
    std::vector<std::uint32_t> before(words);
    const auto hit_at = [&](std::size_t i) {
        FoundHit hit;
        std::memcpy(&hit, records.data() + i * sizeof hit, sizeof hit);
        return hit;
    };
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t place = hit_at(i).place;
        if (place >= places) throw nb::value_error("hits: a place beyond the last candidate");
        set[place / 64] |= std::uint64_t{1} << place % 64;
    }
    for (std::size_t k = 1; k < words; ++k)
        before[k] = before[k - 1] + static_cast<std::uint32_t>(__builtin_popcountll(set[k - 1]));
    const auto rank = [&](std::size_t place) {
        const std::uint64_t lower = set[place / 64] & ((std::uint64_t{1} << place % 64) - 1);
        return before[place / 64] + static_cast<std::uint32_t>(__builtin_popcountll(lower));
    };
    for (std::size_t i = 0; i < count; ++i) {
        const FoundHit hit = hit_at(i);
        const std::uint32_t at = rank(hit.place);
        index.data()[at] = static_cast<std::int32_t>(hit.place % candidates);
        class_id.data()[at] = hit.class_id;
        score.data()[at] = hit.score;
        for (std::size_t k = 0; k < 4; ++k) planes.data()[k * room + at] = hit.box[k];
    }
    for (std::size_t item = 0; item <= items; ++item)
        starts.data()[item] = static_cast<std::int32_t>(rank(item * candidates));
}

}  // namespace

void bind_boxes(nb::module_ &m) {
    m.def("table_hits", &table_hits, nb::arg("tables"), nb::arg("first"), nb::arg("thresholds"),
          nb::arg("planes"), nb::arg("index"), nb::arg("class_id"), nb::arg("score"),
          nb::arg("starts"), nb::arg("threads") = 1,
          "best_class of each item of (items, candidates, first + classes) tables, of any strides: "
          "the "
          "objectness is column 4 where first is 5. Fills columns 0 to 3 of the hits into planes, "
          "(4, "
          "room), the three columns, and the first hit of each item, with the end, into starts; "
          "returns "
          "how many hits there are. Releases the GIL.");
    m.def("ordered_hits", &ordered_hits, nb::arg("records"), nb::arg("candidates"),
          nb::arg("planes"), nb::arg("index"), nb::arg("class_id"), nb::arg("score"),
          nb::arg("starts"),
          "Fills what table_hits fills, of hits found in any order: records of 28 bytes, the place "
          "among "
          "all candidates of all items, the class, the score, four numbers of a box.");
    m.def(
        "boxes_of_centres", &boxes_of_centres, nb::arg("planes"), nb::arg("index"),
        nb::arg("class_id"), nb::arg("score"), nb::arg("starts"), nb::arg("cells"),
        nb::arg("scale"), nb::arg("size"), nb::arg("boxes"), nb::arg("classes"), nb::arg("scores"),
        "Boxes of the hits of table_hits, centre and size times scale, or on the grid of cells (3, "
        "candidates), inside the network's size; those below one pixel go. Fills the last three, "
        "and "
        "changes starts; returns how many there are. Releases the GIL.");
}

}  // namespace headrace::decode
