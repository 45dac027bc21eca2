// Bindings of the clustering kernels: cluster and attach of noria._native.
#include "cluster.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>

#include <array>
#include <tuple>
#include <utility>

#include "arrays.h"
#include "cluster_attach.h"
#include "module.h"
#include "unlocked.h"

namespace nb = nanobind;
namespace nc = noria::cluster;

namespace {

using noria::array_of;
using noria::Fill;
using noria::In;

nb::tuple cluster(In<float, nb::shape<-1, 4>> boxes, In<float, nb::ndim<1>> scores,
                  In<std::int32_t, nb::ndim<1>> class_ids, In<float, nb::shape<-1, 5>> thresholds,
                  In<std::int32_t, nb::shape<-1, 3>> counts, int mode, bool trace,
                  Fill<std::int64_t, nb::shape<-1, nc::kReasons>> tally) {
    const std::size_t n = boxes.shape(0), num_classes = thresholds.shape(0);
    const nc::Input in{boxes.data(), scores.data(), class_ids.data(), n};
    nc::Result result;
    std::vector<float> out_boxes, out_scores;
    std::vector<std::int32_t> rows, members;
    {
        Unlocked release;
        std::vector<nc::ClassParams> params(num_classes);
        for (std::size_t c = 0; c < num_classes; ++c) {
            const float *f = thresholds.data() + 5 * c;
            const std::int32_t *i = counts.data() + 3 * c;
            params[c] = {f[0], f[1], f[2], f[3], f[4], i[0], i[1], i[2]};
        }
        result = nc::run(in, params.data(), static_cast<std::int32_t>(num_classes),
                         static_cast<nc::Mode>(mode), trace,
                         tally.is_valid() ? tally.data() : nullptr);
        for (const nc::Object &o : result.objects) {
            out_boxes.insert(out_boxes.end(), o.box, o.box + 4);
            out_scores.push_back(o.score);
            rows.push_back(o.row);
            members.push_back(o.members);
        }
    }
    const std::size_t m = rows.size();
    nb::object details = nb::none();
    if (trace)
        details = nb::make_tuple(array_of(std::move(result.trace.reason), {n}),
                                 array_of(std::move(result.trace.by), {n}),
                                 array_of(std::move(result.trace.object), {n}));
    return nb::make_tuple(array_of(std::move(out_boxes), {m, 4}), array_of(std::move(out_scores), {m}),
                          array_of(std::move(result.class_ids), {m}), array_of(std::move(rows), {m}),
                          array_of(std::move(members), {m}), details);
}

// `numbers`: offset x, y; ratio x, y; origin x, y; region l, t, w, h; parent left, top.
nb::tuple attach(In<float, nb::shape<-1, 4>> boxes, In<std::int32_t, nb::ndim<1>> class_ids,
                 In<float, nb::shape<-1, 6>> filters, In<std::uint32_t, nb::ndim<1>> roi_bottom,
                 const std::array<double, 12> &numbers, std::uint32_t frame_width,
                 std::uint32_t frame_height, bool clip, bool crop, bool old, bool modern) {
    nc::AttachItem item{};
    for (std::size_t k = 0; k < 2; ++k) {
        item.offset[k] = static_cast<float>(numbers[k]);
        item.ratio[k] = numbers[2 + k];
        item.origin[k] = numbers[4 + k];
        item.region[k] = static_cast<float>(numbers[6 + k]);
        item.region[2 + k] = static_cast<float>(numbers[8 + k]);
        item.parent[k] = static_cast<float>(numbers[10 + k]);
    }
    item.frame_width = frame_width;
    item.frame_height = frame_height;
    item.clip = clip;
    item.crop = crop;
    item.old = old;
    item.modern = modern;
    int shifted = 0;
    std::vector<float> rects;
    std::vector<std::int32_t> kept, dropped;
    std::vector<std::uint8_t> reasons;
    for (std::size_t i = 0; i < boxes.shape(0); ++i) {
        const auto c = static_cast<std::size_t>(class_ids.data()[i]);
        const float *f = filters.data() + 6 * c;
        const nc::AttachClass limits{f[0], f[1], f[2], f[3], f[4], roi_bottom.data()[c], f[5] != 0};
        float rect[4];
        const nc::Drop drop = nc::attach(boxes.data() + 4 * i, limits, item, rect, shifted);
        if (drop == nc::kAttached) {
            rects.insert(rects.end(), rect, rect + 4);
            kept.push_back(static_cast<std::int32_t>(i));
        } else {
            dropped.push_back(static_cast<std::int32_t>(i));
            reasons.push_back(drop);
        }
    }
    const std::size_t m = kept.size(), lost = dropped.size();
    return nb::make_tuple(array_of(std::move(rects), {m, 4}), array_of(std::move(kept), {m}),
                          array_of(std::move(dropped), {lost}),
                          array_of(std::move(reasons), {lost}), shifted);
}

}  // namespace

void bind_cluster(nb::module_ &m) {
    m.def("attach", &attach, nb::arg("boxes"), nb::arg("class_ids"), nb::arg("filters"),
          nb::arg("roi_bottom"), nb::arg("numbers"), nb::arg("frame_width"),
          nb::arg("frame_height"), nb::arg("clip"), nb::arg("crop"), nb::arg("old"),
          nb::arg("modern"),
          "Map and filter one item's boxes: (rects, kept, dropped, reasons, shifted). filters is (C, 6): "
          "min w, min h, max w, max h, top offset, filtered out; class ids are below C.");
    m.def("cluster", &cluster, nb::arg("boxes"), nb::arg("scores"), nb::arg("class_ids"),
          nb::arg("thresholds"), nb::arg("counts"), nb::arg("mode"), nb::arg("trace"),
          nb::arg("tally").none(),
          "Cluster one frame: (boxes, scores, class_ids, rows, members, trace or None). "
          "thresholds is (C, 5): pre, post, IoU, eps, min score; counts is (C, 3): topk, group "
          "threshold, min boxes; trace is (reason, by, object), one entry per input row; tally is (C + 1, "
          "12) or None: how many boxes of each class had which reason is added to it.");
}
