// Bindings of the clustering kernels: cluster and attach of headrace._core._native.
#include "cluster/cluster.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "cluster/attach.h"
#include "cluster/rotated.h"
#include "core/array_block.h"
#include "core/arrays.h"
#include "core/unlocked.h"
#include "module.h"

namespace nb = nanobind;

namespace headrace::cluster {
namespace {

using core::array_of;
using core::Fill;
using core::In;

using Starts = In<std::int32_t, nb::ndim<1>>;

// A request that long work stops, from Python.
struct Stop {
    StopFlag flag{false};
};

// What cluster_boxes gives.
struct Clustered {
    nb::object boxes, scores, class_ids, starts, rows, members;
    nb::object reason, by, object;  // of every input row, if traced
    nb::object cut;                 // of every item; None if nothing was left out
    bool stopped = false;
};

Clustered cluster_boxes(In<float, nb::shape<-1, 4>> boxes, In<float, nb::ndim<1>> scores,
                        In<std::int32_t, nb::ndim<1>> class_ids, In<float, nb::ndim<1>> angles,
                        Starts starts, In<float, nb::shape<-1, 5>> thresholds,
                        In<std::int32_t, nb::shape<-1, 3>> counts, int mode, bool trace,
                        Fill<std::int64_t, nb::shape<-1, kReasons>> tally,
                        std::int64_t max_candidates, const Stop *stop) {
    const std::size_t n = boxes.shape(0), num_classes = thresholds.shape(0);
    core::ArrayBlock block(core::ArrayBlock::rounded(16 * n) +
                           4 * core::ArrayBlock::rounded(4 * n) + 4 * starts.shape(0));
    auto *out_boxes = block.room<float>(4 * n), *out_scores = block.room<float>(n);
    auto *out_class_ids = block.room<std::int32_t>(n), *rows = block.room<std::int32_t>(n),
         *members = block.room<std::int32_t>(n),
         *out_starts = block.room<std::int32_t>(starts.shape(0));
    Result result;
    std::size_t count = 0;
    std::vector<std::int32_t> cut;
    bool stopped = false;
    {
        Patience patience(stop ? &stop->flag : nullptr);
        core::Unlocked release(n > core::kFew);
        std::vector<ClassParams> params(num_classes);
        for (std::size_t c = 0; c < num_classes; ++c) {
            const float *f = thresholds.data() + 5 * c;
            const std::int32_t *i = counts.data() + 3 * c;
            params[c] = {f[0], f[1], f[2], f[3], f[4], i[0], i[1], i[2]};
        }
        out_starts[0] = 0;
        for (std::size_t item = 0; item + 1 < starts.shape(0); ++item) {
            const std::int32_t first = starts.data()[item], end = starts.data()[item + 1];
            const Input in{boxes.data() + 4 * static_cast<std::size_t>(first),
                           scores.data() + first, class_ids.data() + first,
                           static_cast<std::size_t>(end - first),
                           angles.is_valid() ? angles.data() + first : nullptr};
            result = run(in, params.data(), static_cast<std::int32_t>(num_classes),
                         static_cast<Mode>(mode), trace, tally.is_valid() ? tally.data() : nullptr,
                         static_cast<std::size_t>(max_candidates), patience);
            stopped |= result.stopped;
            if (result.cut) {
                cut.resize(starts.shape(0) - 1);
                cut[item] = static_cast<std::int32_t>(result.cut);
            }
            for (std::size_t i = 0; i < result.objects.size(); ++i, ++count) {
                const Object &o = result.objects[i];
                std::copy(o.box, o.box + 4, out_boxes + 4 * count);
                out_scores[count] = o.score;
                out_class_ids[count] = result.class_ids[i];
                rows[count] = first + o.row;
                members[count] = o.members;
            }
            out_starts[item + 1] = static_cast<std::int32_t>(count);
        }
    }
    Clustered made{block.array(out_boxes, {count, 4}),
                   block.array(out_scores, {count}),
                   block.array(out_class_ids, {count}),
                   block.array(out_starts, {starts.shape(0)}),
                   block.array(rows, {count}),
                   block.array(members, {count}),
                   nb::none(),
                   nb::none(),
                   nb::none(),
                   nb::none(),
                   stopped};
    if (const std::size_t items = cut.size()) made.cut = array_of(std::move(cut), {items}).cast();
    if (trace) {
        made.reason = array_of(std::move(result.trace.reason), {n}).cast();
        made.by = array_of(std::move(result.trace.by), {n}).cast();
        made.object = array_of(std::move(result.trace.object), {n}).cast();
    }
    return made;
}

using Boxes = In<float, nb::shape<-1, 4>>;
using Angles = In<float, nb::ndim<1>>;

// Fills out (N, M).
void fill_rotated_iou(Boxes a, Angles angles_a, Boxes b, Angles angles_b,
                      Fill<double, nb::ndim<2>> out) {
    core::Unlocked release;
    const std::size_t m = b.shape(0);
    for (std::size_t i = 0; i < a.shape(0); ++i)
        for (std::size_t j = 0; j < m; ++j)
            out.data()[i * m + j] = rotated_iou(a.data() + 4 * i, angles_a.data()[i],
                                                b.data() + 4 * j, angles_b.data()[j]);
}

// Of each item: offset x, y; ratio x, y; origin x, y; region l, t, w, h; parent left, top; frame w,
// h.
using Places = std::vector<std::array<double, 14>>;

AttachItem item_of(const std::array<double, 14> &numbers, AttachItem item) {
    for (std::size_t k = 0; k < 2; ++k) {
        item.offset[k] = static_cast<float>(numbers[k]);
        item.ratio[k] = numbers[2 + k];
        item.origin[k] = numbers[4 + k];
        item.region[k] = static_cast<float>(numbers[6 + k]);
        item.region[2 + k] = static_cast<float>(numbers[8 + k]);
        item.parent[k] = static_cast<float>(numbers[10 + k]);
    }
    item.frame_width = static_cast<std::uint32_t>(numbers[12]);
    item.frame_height = static_cast<std::uint32_t>(numbers[13]);
    return item;
}

// What attach_boxes gives.
struct Attached {
    nb::object rects, scores, class_ids, starts, kept, dropped, reasons;
    int shifted;
};

Attached attach_boxes(In<float, nb::shape<-1, 4>> boxes, In<float, nb::ndim<1>> scores,
                      In<std::int32_t, nb::ndim<1>> class_ids, Starts starts,
                      In<float, nb::shape<-1, 6>> filters,
                      In<std::uint32_t, nb::ndim<1>> roi_bottom, const Places &places,
                      Fill<std::int64_t, nb::shape<-1, kDrops>> tally, bool clip, bool crop,
                      bool old, bool modern) {
    const std::size_t n = boxes.shape(0);
    core::ArrayBlock block(core::ArrayBlock::rounded(16 * n) +
                           4 * core::ArrayBlock::rounded(4 * n) +
                           core::ArrayBlock::rounded(4 * starts.shape(0)) + n);
    auto *rects = block.room<float>(4 * n), *out_scores = block.room<float>(n);
    auto *out_class_ids = block.room<std::int32_t>(n), *kept = block.room<std::int32_t>(n),
         *dropped = block.room<std::int32_t>(n),
         *kept_starts = block.room<std::int32_t>(starts.shape(0));
    auto *reasons = block.room<std::uint8_t>(n);
    int shifted = 0;
    std::size_t inside = 0, lost = 0;
    {
        core::Unlocked release(n > core::kFew);
        AttachItem flags{};
        flags.clip = clip;
        flags.crop = crop;
        flags.old = old;
        flags.modern = modern;
        kept_starts[0] = 0;
        for (std::size_t place = 0; place < places.size(); ++place) {
            const AttachItem item = item_of(places[place], flags);
            for (std::int32_t i = starts.data()[place]; i < starts.data()[place + 1]; ++i) {
                const auto c = static_cast<std::size_t>(class_ids.data()[i]);
                const float *f = filters.data() + 6 * c;
                const AttachClass limits{f[0],     f[1], f[2], f[3], f[4], roi_bottom.data()[c],
                                         f[5] != 0};
                const Drop drop = attach(boxes.data() + 4 * static_cast<std::size_t>(i), limits,
                                         item, rects + 4 * inside, shifted);
                if (drop != kAttached && tally.is_valid()) ++tally.data()[c * kDrops + drop];
                if (drop == kAttached) {
                    out_scores[inside] = scores.data()[i];
                    out_class_ids[inside] = class_ids.data()[i];
                    kept[inside++] = i;
                } else {
                    reasons[lost] = drop;
                    dropped[lost++] = i;
                }
            }
            kept_starts[place + 1] = static_cast<std::int32_t>(inside);
        }
    }
    return {block.array(rects, {inside, 4}),      block.array(out_scores, {inside}),
            block.array(out_class_ids, {inside}), block.array(kept_starts, {starts.shape(0)}),
            block.array(kept, {inside}),          block.array(dropped, {lost}),
            block.array(reasons, {lost}),         shifted};
}

}  // namespace

// A getter with the type of its array.
#define ARRAY(type, name, number) \
    def_ro(#name, &type::name,    \
           nb::for_getter(nb::sig("def " #name "(self) -> NDArray[numpy." #number "]")))

void bind(nb::module_ &m) {
    nb::class_<Attached>(m, "Attached", "The objects of items in their frames, and the other rows.")
        .ARRAY(Attached, rects, float32)
        .ARRAY(Attached, scores, float32)
        .ARRAY(Attached, class_ids, int32)
        .ARRAY(Attached, starts, int32)
        .ARRAY(Attached, kept, int32)
        .ARRAY(Attached, dropped, int32)
        .ARRAY(Attached, reasons, uint8)
        .def_ro("shifted", &Attached::shifted);
    m.def(
        "attach", &attach_boxes, nb::arg("boxes"), nb::arg("scores"), nb::arg("class_ids"),
        nb::arg("starts"), nb::arg("filters"), nb::arg("roi_bottom"), nb::arg("places"),
        nb::arg("tally").none(), nb::kw_only(), nb::arg("clip"), nb::arg("crop"), nb::arg("old"),
        nb::arg("modern"),
        "Map and filter the boxes of items, which begin at starts. filters is (C, 6): min w, min "
        "h, "
        "max w, max h, top offset, filtered out; class ids are below C. A place is offset x, y, "
        "ratio x, y, origin x, y, region l, t, w, h, parent left, top, frame width, height. "
        "tally is (C + 1, 11) or None: how many boxes of each class were dropped by what is added "
        "to it. Releases the GIL.");
    m.def("rotated_iou", &fill_rotated_iou, nb::arg("a"), nb::arg("angles_a"), nb::arg("b"),
          nb::arg("angles_b"), nb::arg("out"),
          "Fill out (N, M) with the IoU of rectangles (N, 4) and (M, 4) of left, top, width, "
          "height that are "
          "turned about their middles by angles in radians, clockwise; NaN where a number is not "
          "finite. "
          "Releases the GIL.");
    nb::class_<Clustered>(m, "Clustered", "The objects of items; reason, by and object: traced.")
        .ARRAY(Clustered, boxes, float32)
        .ARRAY(Clustered, scores, float32)
        .ARRAY(Clustered, class_ids, int32)
        .ARRAY(Clustered, starts, int32)
        .ARRAY(Clustered, rows, int32)
        .ARRAY(Clustered, members, int32)
        .ARRAY(Clustered, reason, uint8)
        .ARRAY(Clustered, by, int32)
        .ARRAY(Clustered, object, int32)
        .ARRAY(Clustered, cut, int32)
        .def_ro("stopped", &Clustered::stopped);
    nb::class_<Stop>(m, "Stop", "A request that long work stops; any thread may make it.")
        .def(nb::init<>())
        .def_prop_rw(
            "asked", [](const Stop &s) { return s.flag.load(); },
            [](Stop &s, bool asked) { s.flag.store(asked); });
    m.def(
        "cluster", &cluster_boxes, nb::arg("boxes"), nb::arg("scores"), nb::arg("class_ids"),
        nb::arg("angles").none(), nb::arg("starts"), nb::arg("thresholds"), nb::arg("counts"),
        nb::arg("mode"), nb::arg("trace"), nb::arg("tally").none(), nb::arg("max_candidates"),
        nb::arg("stop").none(),
        "Cluster the boxes of items, which begin at starts. angles is (N,) or None: radians of "
        "rectangles that NMS compares turned. thresholds is (C, 5): pre, post, IoU, eps, min "
        "score; counts is (C, 3): topk, group threshold, min boxes; with trace, of a single item, "
        "reason, by and object have one entry per input row, else they are None; tally is "
        "(C + 1, 13) or None: how many boxes of each class had which reason is added to it. Of an "
        "item with more than max_candidates boxes above their thresholds, the best are clustered; "
        "cut is (N,), how many were left out of each item, None where none was. An item that takes "
        "longer than half a second when stop.asked is set has no objects, and stopped is True. "
        "Releases the GIL.");
}

}  // namespace headrace::cluster
