// Bindings of the matching kernels of the tracker.
#include <nanobind/ndarray.h>

#include <utility>

#include "module.h"
#include "track_match.h"

namespace nb = nanobind;
namespace nt = noria::track;

namespace {

using Corners = nb::ndarray<const double, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;
using Groups = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ranks = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A NumPy array that owns the moved-in values.
template <typename T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> array_of(std::vector<T> values) {
    auto *kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}

nt::Boxes boxes_of(const Corners &corners, const Groups &groups) {
    return {corners.data(), groups.data(), corners.shape(0)};
}

nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>> match(Corners tracks, Groups track_groups,
                                                       Ranks ranks, Corners found,
                                                       Groups found_groups, double min_iou) {
    std::vector<std::int32_t> result;
    {
        nb::gil_scoped_release release;
        result = nt::match(boxes_of(tracks, track_groups), ranks.data(),
                           boxes_of(found, found_groups), min_iou);
    }
    return array_of(std::move(result));
}

nb::ndarray<nb::numpy, double, nb::ndim<1>> best_overlap(Corners found, Groups found_groups,
                                                        Corners others, Groups other_groups) {
    std::vector<double> result;
    {
        nb::gil_scoped_release release;
        result = nt::best_overlap(boxes_of(found, found_groups), boxes_of(others, other_groups));
    }
    return array_of(std::move(result));
}

}  // namespace

void bind_track(nb::module_ &m) {
    m.def("match_boxes", &match, nb::arg("tracks"), nb::arg("track_groups"), nb::arg("ranks"),
          nb::arg("found"), nb::arg("found_groups"), nb::arg("min_iou"),
          "The track that each found box continues, or -1: by rank of the track, then greatest "
          "overlap first. Boxes are left, top, right, bottom. Releases the GIL.");
    m.def("best_overlap", &best_overlap, nb::arg("found"), nb::arg("found_groups"),
          nb::arg("others"), nb::arg("other_groups"),
          "The greatest IoU of each found box with any other of its group. Releases the GIL.");
}
