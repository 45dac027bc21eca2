// Which objects of a frame trackers look at, in which order, and what they have found out about
// them.
#include "track/objects.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <optional>

#include "core/arrays.h"
#include "core/unlocked.h"
#include "module.h"

namespace nb = nanobind;

namespace headrace::track {
namespace {

using core::Fill;
using core::In;
using Ids = In<std::int32_t, nb::ndim<1>>;
using Chosen = std::optional<std::vector<std::int32_t>>;

constexpr float kFarthest = 1e9f;  // pixels; beyond it areas lose their digits
constexpr auto kUntracked = std::numeric_limits<std::uint64_t>::max();

bool among(const Chosen &chosen, std::int32_t value, bool otherwise) {
    if (!chosen) return otherwise;
    return std::find(chosen->begin(), chosen->end(), value) != chosen->end();
}

void choose(TrackedObjects *place, In<float, nb::shape<-1, 4>> rects, Ids components, Ids classes,
            Ids parents, In<float, nb::ndim<1>> confidences, const Chosen &component_ids,
            const Chosen &class_ids, bool match_classes) {
    const std::size_t count = rects.shape(0);
    if (components.shape(0) != count || classes.shape(0) != count || parents.shape(0) != count ||
        confidences.shape(0) != count)
        throw nb::value_error("the columns of the frame's objects differ in length");
    auto &found = *new (place) TrackedObjects;
    core::Unlocked release(rects.shape(0) > core::kFew);
    const float *r = rects.data(), *confidence = confidences.data();
    found.index.reserve(rects.shape(0));
    for (std::size_t i = 0; i < rects.shape(0); ++i) {
        const float *box = r + 4 * i;
        const bool near =
            std::all_of(box, box + 4, [](float v) { return std::fabs(v) < kFarthest; });
        if (near && box[2] > 0 && box[3] > 0 &&
            among(component_ids, components.data()[i], parents.data()[i] < 0) &&
            among(class_ids, classes.data()[i], classes.data()[i] >= 0))
            found.index.push_back(static_cast<std::int64_t>(i));
    }
    // Equal in every key is equal in everything that tracking looks at.
    std::stable_sort(found.index.begin(), found.index.end(), [&](std::int64_t a, std::int64_t b) {
        if (components.data()[a] != components.data()[b])
            return components.data()[a] < components.data()[b];
        if (classes.data()[a] != classes.data()[b]) return classes.data()[a] < classes.data()[b];
        const float *x = r + 4 * a, *y = r + 4 * b;
        for (std::size_t k : {1, 0, 2, 3})  // top first
            if (x[k] != y[k]) return x[k] < y[k];
        if (std::isnan(confidence[b])) return !std::isnan(confidence[a]);  // last
        return confidence[a] < confidence[b];
    });
    found.corners.reserve(found.size());
    found.scores.reserve(found.size());
    found.groups.reserve(found.size());
    for (const std::int64_t row : found.index) {
        const float *box = r + 4 * row;
        const double left = box[0], top = box[1];
        found.corners.push_back(
            {left, top, left + static_cast<double>(box[2]), top + static_cast<double>(box[3])});
        found.scores.push_back(confidence[row]);
        const auto high =
            static_cast<std::uint64_t>(static_cast<std::int64_t>(components.data()[row])) << 32;
        const std::uint64_t low =
            match_classes ? static_cast<std::uint32_t>(classes.data()[row]) : 0;
        found.groups.push_back(static_cast<std::int64_t>(high | low));
    }
}

template <typename T, typename... Shape>
using View = nb::ndarray<nb::numpy, const T, Shape...>;

template <typename T>
View<T, nb::ndim<1>> view(const std::vector<T> &values, nb::handle owner) {
    return {values.data(), {values.size()}, owner};
}

const TrackedObjects &of(nb::handle self) { return *nb::inst_ptr<TrackedObjects>(self); }

void write_tracks(const TrackedObjects &found, In<std::int64_t, nb::ndim<1>> ids,
                  Fill<std::uint64_t, nb::ndim<1>> object_ids,
                  Fill<float, nb::ndim<1>> confidences) {
    if (ids.shape(0) != found.size()) throw nb::value_error("an id for each object is needed");
    for (std::size_t i = 0; i < found.size(); ++i) {
        const auto row = static_cast<std::size_t>(found.index[i]);
        if (row >= object_ids.shape(0) || row >= confidences.shape(0))
            throw nb::index_error("the frame has lost objects since");
        const std::int64_t id = ids.data()[i];
        object_ids.data()[row] = id > 0 ? static_cast<std::uint64_t>(id) : kUntracked;
        confidences.data()[row] = id > 0;
    }
}

}  // namespace

void bind_objects(nb::module_ &m) {
    nb::class_<TrackedObjects>(
        m, "TrackedObjects",
        "The objects of a frame that trackers look at, in an order of their values.")
        .def("__init__", &choose, nb::arg("rects"), nb::arg("components"), nb::arg("classes"),
             nb::arg("parents"), nb::arg("confidences"), nb::arg("component_ids").none(),
             nb::arg("class_ids").none(), nb::arg("match_classes"))
        .def_prop_ro(
            "index", [](nb::handle self) { return view(of(self).index, self); },
            nb::rv_policy::reference, "(N,) int64, where they are in the frame's objects.")
        .def_prop_ro(
            "corners",
            [](nb::handle self) {
                const auto *first = reinterpret_cast<const double *>(of(self).corners.data());
                return View<double, nb::shape<-1, 4>>(first, {of(self).size(), 4}, self);
            },
            nb::rv_policy::reference, "(N, 4) float64 left, top, right, bottom in frame pixels.")
        .def_prop_ro(
            "scores", [](nb::handle self) { return view(of(self).scores, self); },
            nb::rv_policy::reference, "(N,) float32 confidences; below 0 where unknown.")
        .def_prop_ro(
            "groups", [](nb::handle self) { return view(of(self).groups, self); },
            nb::rv_policy::reference, "(N,) int64; only objects of one group can be one track.")
        .def("write", &write_tracks, nb::arg("ids"), nb::arg("object_ids").noconvert(),
             nb::arg("confidences").noconvert(),
             "Write the track of each (0: none) into the columns of the frame, and 1 or 0 as "
             "confidence.")
        .def("__len__", &TrackedObjects::size);
}

}  // namespace headrace::track
