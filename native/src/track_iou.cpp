// The tracks of one source of the `iou` tracker, and which objects of a frame trackers look at.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.h"
#include "module.h"
#include "track_match.h"
#include "unlocked.h"

namespace nb = nanobind;
namespace nt = noria::track;

namespace {

using noria::Fill;
using noria::In;
using Box = std::array<double, 4>;
using Numbers = std::vector<std::int32_t>;

struct Settings {
    double min_iou, max_new_iou, velocity_gain;
    float min_confidence, min_new_confidence;
    std::int64_t min_hits, max_age, max_probation_misses, max_tracks;
};

struct Track {
    Box corners;   // of the last detection
    Box velocity;  // of each edge, pixels per frame
    std::int64_t group;
    std::int64_t id = 0;  // 0 on probation
    std::int64_t hits = 1;
    std::int64_t since = 0;   // frames since the last detection
    std::int64_t missed = 0;  // of these, frames it was looked for in vain
};

// noria.track.tracker.predict of one box.
Box predicted(const Track &track) {
    Box step, moved;
    for (std::size_t k = 0; k < 4; ++k) {
        step[k] = track.velocity[k] * static_cast<double>(track.since);
        moved[k] = track.corners[k] + step[k];
    }
    if (track.missed > 0 || moved[2] - moved[0] < 1 || moved[3] - moved[1] < 1)
        for (std::size_t k = 0; k < 4; ++k)
            moved[k] = track.corners[k] + (step[k % 2] + step[k % 2 + 2]) / 2;
    return moved;
}

class IouTracks {
public:
    IouTracks(double min_iou, double max_new_iou, double velocity_gain, double min_confidence,
              double min_new_confidence, std::int64_t min_hits, std::int64_t max_age,
              std::int64_t max_probation_misses, std::int64_t max_tracks)
        : set_{min_iou,
               max_new_iou,
               velocity_gain,
               static_cast<float>(min_confidence),
               static_cast<float>(min_new_confidence),
               min_hits,
               max_age,
               max_probation_misses,
               max_tracks} {}

    // Continues tracks with the objects found and starts new ones; how many of them need an id.
    std::int64_t step(In<double, nb::shape<-1, 4>> corners, In<float, nb::ndim<1>> scores,
                      In<std::int64_t, nb::ndim<1>> groups, std::int64_t elapsed) {
        Unlocked release(corners.shape(0) + tracks_.size() > kFew / 2);
        take(corners.data(), scores.data(), groups.data(), corners.shape(0), elapsed);
        return std::count_if(tracks_.begin(), tracks_.end(),
                             [&](const Track &t) { return !t.id && t.hits >= set_.min_hits; });
    }

    // Gives out ids from `next` on, and fills in id and velocity of each object of the last step.
    void name(std::int64_t next, Fill<std::int64_t, nb::ndim<1>> ids,
              Fill<double, nb::shape<-1, 4>> velocities) {
        for (Track &t : tracks_)
            if (!t.id && t.hits >= set_.min_hits) t.id = next++;
        for (std::size_t i = 0; i < track_of_.size(); ++i) {
            const std::int32_t t = track_of_[i];
            const Track none{{}, {}, 0};
            const Track &track = t < 0 ? none : tracks_[static_cast<std::size_t>(t)];
            ids.data()[i] = track.id;
            std::copy(track.velocity.begin(), track.velocity.end(), velocities.data() + 4 * i);
        }
        forget();
    }

    void pass_over(std::int64_t elapsed) {
        for (Track &t : tracks_) {
            t.since += elapsed;
            t.missed += t.missed > 0;
        }
        forget();
    }

    std::size_t size() const { return tracks_.size(); }

private:
    void take(const double *corners, const float *scores, const std::int64_t *groups, std::size_t n,
              std::int64_t elapsed) {
        boxes_.clear();
        own_groups_.clear();
        Numbers ranks;
        for (Track &t : tracks_) {
            t.since += elapsed;
            boxes_.push_back(predicted(t));
            own_groups_.push_back(t.group);
            ranks.push_back(t.id == 0);
        }
        Numbers rows;  // objects that are looked at
        std::vector<Box> found;
        std::vector<std::int64_t> found_groups;
        for (std::size_t i = 0; i < n; ++i) {
            if (!(scores[i] >= set_.min_confidence)) continue;
            rows.push_back(static_cast<std::int32_t>(i));
            found.push_back({corners[4 * i], corners[4 * i + 1], corners[4 * i + 2], corners[4 * i + 3]});
            found_groups.push_back(groups[i]);
        }
        const Numbers matched = nt::match(own(), ranks.data(), of(found, found_groups), set_.min_iou);
        for (Track &t : tracks_) ++t.missed;
        track_of_.assign(n, -1);
        std::vector<std::size_t> free;  // places in `rows` without a track
        for (std::size_t k = 0; k < rows.size(); ++k) {
            if (matched[k] < 0) {
                if (scores[rows[k]] >= set_.min_new_confidence) free.push_back(k);
                continue;
            }
            const auto t = static_cast<std::size_t>(matched[k]);
            resume(tracks_[t], found[k]);
            boxes_[t] = found[k];
            track_of_[static_cast<std::size_t>(rows[k])] = matched[k];
        }
        for (std::size_t k : starters(std::move(free), rows, found, found_groups, scores)) {
            track_of_[static_cast<std::size_t>(rows[k])] = static_cast<std::int32_t>(tracks_.size());
            tracks_.push_back({found[k], {}, found_groups[k]});
        }
    }

    void resume(Track &t, const Box &box) {
        const double gain = t.hits == 1 ? 1.0 : set_.velocity_gain;  // the first movement is all known
        for (std::size_t k = 0; k < 4; ++k) {
            const double moved = (box[k] - t.corners[k]) / static_cast<double>(t.since);
            if (set_.velocity_gain != 0) t.velocity[k] = t.velocity[k] + gain * (moved - t.velocity[k]);
        }
        t.corners = box;
        ++t.hits;
        t.missed = t.since = 0;
    }

    // Those of the free objects that start a track: no doubles, and the best where room is short.
    std::vector<std::size_t> starters(std::vector<std::size_t> free, const Numbers &rows,
                                      const std::vector<Box> &found,
                                      const std::vector<std::int64_t> &groups, const float *scores) {
        if (!free.empty() && !tracks_.empty() && set_.max_new_iou < 1) {
            std::vector<Box> boxes;
            std::vector<std::int64_t> of_free;
            for (std::size_t k : free) {
                boxes.push_back(found[k]);
                of_free.push_back(groups[k]);
            }
            const std::vector<double> overlap = nt::best_overlap(of(boxes, of_free), own());
            std::size_t left = 0;
            for (std::size_t i = 0; i < free.size(); ++i)
                if (overlap[i] <= set_.max_new_iou) free[left++] = free[i];
            free.resize(left);
        }
        if (set_.max_tracks) {
            const auto room = std::max<std::int64_t>(
                0, set_.max_tracks - static_cast<std::int64_t>(tracks_.size()));
            std::stable_sort(free.begin(), free.end(), [&](std::size_t a, std::size_t b) {
                return scores[rows[a]] > scores[rows[b]];
            });
            free.resize(std::min(free.size(), static_cast<std::size_t>(room)));
            std::sort(free.begin(), free.end());
        }
        return free;
    }

    void forget() {
        tracks_.erase(std::remove_if(tracks_.begin(), tracks_.end(),
                                     [&](const Track &t) {
                                         return t.missed > (t.id > 0 ? set_.max_age
                                                                     : set_.max_probation_misses);
                                     }),
                      tracks_.end());
    }

    static nt::Boxes of(const std::vector<Box> &boxes, const std::vector<std::int64_t> &groups) {
        return {boxes.empty() ? nullptr : boxes[0].data(), groups.data(), boxes.size()};
    }
    nt::Boxes own() const { return of(boxes_, own_groups_); }

    Settings set_;
    std::vector<Track> tracks_;  // oldest first
    std::vector<Box> boxes_;     // where each is expected, or was found
    std::vector<std::int64_t> own_groups_;
    Numbers track_of_;  // of each object of the last step, -1 for none
};

using Ids = In<std::int32_t, nb::ndim<1>>;
using Chosen = std::optional<std::vector<std::int32_t>>;

constexpr float kFarthest = 1e9f;  // pixels; beyond it areas lose their digits

bool among(const Chosen &chosen, std::int32_t value, bool otherwise) {
    if (!chosen) return otherwise;
    return std::find(chosen->begin(), chosen->end(), value) != chosen->end();
}

std::size_t tracked_objects(In<float, nb::shape<-1, 4>> rects, Ids components, Ids classes, Ids parents,
                            In<float, nb::ndim<1>> confidences, const Chosen &component_ids,
                            const Chosen &class_ids, bool match_classes,
                            Fill<std::int64_t, nb::ndim<1>> index,
                            Fill<double, nb::shape<-1, 4>> corners, Fill<float, nb::ndim<1>> scores,
                            Fill<std::int64_t, nb::ndim<1>> groups) {
    Unlocked release(rects.shape(0) > kFew);
    const float *r = rects.data(), *confidence = confidences.data();
    Numbers rows;
    for (std::size_t i = 0; i < rects.shape(0); ++i) {
        const float *box = r + 4 * i;
        const bool near = std::all_of(box, box + 4, [](float v) { return std::fabs(v) < kFarthest; });
        if (near && box[2] > 0 && box[3] > 0 &&
            among(component_ids, components.data()[i], parents.data()[i] < 0) &&
            among(class_ids, classes.data()[i], classes.data()[i] >= 0))
            rows.push_back(static_cast<std::int32_t>(i));
    }
    // Equal in every key is equal in everything that tracking looks at.
    std::stable_sort(rows.begin(), rows.end(), [&](std::int32_t a, std::int32_t b) {
        if (components.data()[a] != components.data()[b])
            return components.data()[a] < components.data()[b];
        if (classes.data()[a] != classes.data()[b]) return classes.data()[a] < classes.data()[b];
        const float *x = r + 4 * static_cast<std::size_t>(a), *y = r + 4 * static_cast<std::size_t>(b);
        for (std::size_t k : {1, 0, 2, 3})  // top first
            if (x[k] != y[k]) return x[k] < y[k];
        if (std::isnan(confidence[b])) return !std::isnan(confidence[a]);  // last
        return confidence[a] < confidence[b];
    });
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::int32_t row = rows[i];
        const float *box = r + 4 * static_cast<std::size_t>(row);
        index.data()[i] = row;
        scores.data()[i] = confidence[row];
        for (std::size_t k = 0; k < 2; ++k) {
            const double start = box[k];
            corners.data()[4 * i + k] = start;
            corners.data()[4 * i + 2 + k] = start + static_cast<double>(box[2 + k]);
        }
        const auto high = static_cast<std::uint64_t>(static_cast<std::int64_t>(components.data()[row]))
                          << 32;
        const std::uint64_t low =
            match_classes ? static_cast<std::uint32_t>(classes.data()[row]) : 0;
        groups.data()[i] = static_cast<std::int64_t>(high | low);
    }
    return rows.size();
}

}  // namespace

void bind_track_iou(nb::module_ &m) {
    nb::class_<IouTracks>(m, "IouTracks", "The tracks of one source, by constant velocity and overlap.")
        .def(nb::init<double, double, double, double, double, std::int64_t, std::int64_t, std::int64_t,
                      std::int64_t>(),
             nb::kw_only(), nb::arg("min_iou"), nb::arg("max_new_iou"), nb::arg("velocity_gain"),
             nb::arg("min_confidence"), nb::arg("min_new_confidence"), nb::arg("min_hits"),
             nb::arg("max_age"), nb::arg("max_probation_misses"), nb::arg("max_tracks"))
        .def("step", &IouTracks::step, nb::arg("corners"), nb::arg("scores"), nb::arg("groups"),
             nb::arg("elapsed"),
             "Continue tracks with the objects of a frame; how many of the tracks need an id. Releases the "
             "GIL.")
        .def("name", &IouTracks::name, nb::arg("next"), nb::arg("ids"), nb::arg("velocities"),
             "Give out ids from next on, fill in those of the objects of the last step (0 without) and the "
             "velocities of their edges, and forget old tracks.")
        .def("pass_over", &IouTracks::pass_over, nb::arg("elapsed"),
             "A frame in which nothing was looked for: lost tracks age, the others only move.")
        .def("__len__", &IouTracks::size);
    m.def("tracked_objects", &tracked_objects, nb::arg("rects"), nb::arg("components"),
          nb::arg("classes"), nb::arg("parents"), nb::arg("confidences"),
          nb::arg("component_ids").none(), nb::arg("class_ids").none(), nb::arg("match_classes"),
          nb::arg("index"), nb::arg("corners"), nb::arg("scores"), nb::arg("groups"),
          "Objects of a frame that are tracked, in an order of their values; fills the last four, with room "
          "for all, and returns how many there are. Releases the GIL.");
}
