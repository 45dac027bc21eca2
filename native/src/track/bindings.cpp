// Bindings of the matching kernels of the tracker.
#include <utility>

#include "core/arrays.h"
#include "core/unlocked.h"
#include "module.h"
#include "track/match.h"

namespace nb = nanobind;

namespace headrace::track {
namespace {

using core::array_of;
using Corners = core::In<double, nb::shape<-1, 4>>;
using Groups = core::In<std::int64_t, nb::ndim<1>>;
using Ranks = core::In<std::int32_t, nb::ndim<1>>;

Boxes boxes_of(const Corners &corners, const Groups &groups) {
    return {corners.data(), groups.data(), corners.shape(0)};
}

nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>> matched(Corners tracks, Groups track_groups,
                                                          Ranks ranks, Corners found,
                                                          Groups found_groups, double min_iou) {
    std::vector<std::int32_t> result;
    {
        core::Unlocked release;
        result = match(boxes_of(tracks, track_groups), ranks.data(), boxes_of(found, found_groups),
                       min_iou);
    }
    return array_of(std::move(result));
}

nb::ndarray<nb::numpy, double, nb::ndim<1>> overlaps(Corners found, Groups found_groups,
                                                     Corners others, Groups other_groups) {
    std::vector<double> result;
    {
        core::Unlocked release;
        result = best_overlap(boxes_of(found, found_groups), boxes_of(others, other_groups));
    }
    return array_of(std::move(result));
}

}  // namespace

void bind(nb::module_ &m) {
    m.def("match_boxes", &matched, nb::arg("tracks"), nb::arg("track_groups"), nb::arg("ranks"),
          nb::arg("found"), nb::arg("found_groups"), nb::arg("min_iou"),
          "The track that each found box continues, or -1: by rank of the track, then greatest "
          "overlap first. Boxes are left, top, right, bottom. Releases the GIL.");
    m.def("best_overlap", &overlaps, nb::arg("found"), nb::arg("found_groups"), nb::arg("others"),
          nb::arg("other_groups"),
          "The greatest IoU of each found box with any other of its group. Releases the GIL.");
}

}  // namespace headrace::track
