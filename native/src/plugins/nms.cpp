// Bindings of the plugins' suppression: efficient_nms, batched_nms, greedy_nms of
// headrace._core._native.
#include "plugins/nms.h"

#include <nanobind/stl/optional.h>

#include <optional>

#include "core/arrays.h"
#include "core/unlocked.h"
#include "module.h"

namespace nb = nanobind;

namespace headrace::plugins {
namespace {

using core::Fill;
using core::In;

using Boxes = In<float, nb::shape<-1, -1, -1, 4>>;
using Scores = In<float, nb::ndim<3>>;
using Counts = Fill<std::int32_t, nb::ndim<1>>;
using OutBoxes = Fill<float, nb::shape<-1, -1, 4>>;
using OutScores = Fill<float, nb::ndim<2>>;
using OutInts = Fill<std::int32_t, nb::ndim<2>>;

Heads heads_at(const Boxes &boxes, const Scores &scores, std::size_t image) {
    const std::size_t n = boxes.shape(1), sets = boxes.shape(2), classes = scores.shape(2);
    return {boxes.data() + image * n * sets * 4, scores.data() + image * n * classes, n, sets,
            classes};
}

Out out_at(OutBoxes &boxes, OutScores &scores, OutInts &classes, OutInts &rows, std::size_t image) {
    const std::size_t keep = scores.shape(1);
    return {boxes.data() + image * keep * 4, scores.data() + image * keep,
            classes.data() + image * keep, rows.data() + image * keep};
}

void efficient_nms(Boxes boxes, Scores scores,
                   std::optional<In<float, nb::shape<-1, -1, 4>>> anchors, float score_threshold,
                   float iou_threshold, std::int32_t per_class, std::int32_t background,
                   bool sigmoid, bool centres, bool agnostic, bool clip, Counts count,
                   OutBoxes out_boxes, OutScores out_scores, OutInts out_classes,
                   OutInts out_rows) {
    const auto keep = static_cast<std::int32_t>(out_scores.shape(1));
    const EfficientRule rule{score_threshold, iou_threshold, keep,     per_class, background,
                             sigmoid,         centres,       agnostic, clip};
    core::Unlocked release;
    for (std::size_t image = 0; image < boxes.shape(0); ++image) {
        const float *base = nullptr;
        if (anchors)
            base = anchors->data() + (anchors->shape(0) == 1 ? 0 : image * boxes.shape(1) * 4);
        count.data()[image] =
            efficient(heads_at(boxes, scores, image), base, rule,
                      out_at(out_boxes, out_scores, out_classes, out_rows, image));
    }
}

void batched_nms(Boxes boxes, Scores scores, float score_threshold, float iou_threshold,
                 std::int32_t background, std::int32_t top, int plus_one, bool clip, Counts count,
                 OutBoxes out_boxes, OutScores out_scores, OutInts out_classes, OutInts out_rows) {
    const auto keep = static_cast<std::int32_t>(out_scores.shape(1));
    const BatchedRule rule{score_threshold,
                           iou_threshold,
                           background,
                           top,
                           keep,
                           static_cast<PlusOne>(plus_one),
                           clip};
    core::Unlocked release;
    for (std::size_t image = 0; image < boxes.shape(0); ++image)
        count.data()[image] = batched(heads_at(boxes, scores, image), rule,
                                      out_at(out_boxes, out_scores, out_classes, out_rows, image));
}

std::int32_t greedy_nms(In<float, nb::shape<-1, 4>> boxes,
                        std::optional<In<std::int32_t, nb::ndim<1>>> class_ids, float threshold,
                        bool inclusive, int plus_one, Counts rows) {
    core::Unlocked release;
    core::KeptBoxes kept(
        suppression(threshold, inclusive, static_cast<PlusOne>(plus_one), class_ids.has_value()));
    std::size_t count = 0;
    for (std::size_t i = 0; i < boxes.shape(0) && count < rows.shape(0); ++i) {
        const float *p = boxes.data() + 4 * i;
        const core::Box box{p[0], p[1], p[2], p[3]};
        if (!kept.take(box.ordered(), class_ids ? class_ids->data()[i] : 0)) continue;
        rows.data()[count++] = static_cast<std::int32_t>(i);
    }
    return static_cast<std::int32_t>(count);
}

}  // namespace

void bind_nms(nb::module_ &m) {
    m.def("efficient_nms", &efficient_nms, nb::arg("boxes"), nb::arg("scores"),
          nb::arg("anchors").none(), nb::arg("score_threshold"), nb::arg("iou_threshold"),
          nb::arg("per_class"), nb::arg("background"), nb::arg("sigmoid"), nb::arg("centres"),
          nb::arg("agnostic"), nb::arg("clip"), nb::arg("count"), nb::arg("out_boxes"),
          nb::arg("out_scores"), nb::arg("out_classes"), nb::arg("out_rows"),
          "EfficientNMS of each image: (B, N, 1 or C, 4) boxes, (B, N, C) scores, (1 or B, N, 4) "
          "anchors; fills the first count rows of the (B, K) outputs. Releases the GIL.");
    m.def("batched_nms", &batched_nms, nb::arg("boxes"), nb::arg("scores"),
          nb::arg("score_threshold"), nb::arg("iou_threshold"), nb::arg("background"),
          nb::arg("top"), nb::arg("plus_one"), nb::arg("clip"), nb::arg("count"),
          nb::arg("out_boxes"), nb::arg("out_scores"), nb::arg("out_classes"), nb::arg("out_rows"),
          "BatchedNMS of each image, same shapes; plus_one: 0 no, 1 areas, 2 areas and overlap. "
          "Releases the GIL.");
    m.def("greedy_nms", &greedy_nms, nb::arg("boxes"), nb::arg("class_ids").none(),
          nb::arg("threshold"), nb::arg("inclusive"), nb::arg("plus_one"), nb::arg("rows"),
          "Suppression of (N, 4) corner boxes, best first; fills `rows` until it is full, returns "
          "how many. Releases the GIL.");
}

}  // namespace headrace::plugins
