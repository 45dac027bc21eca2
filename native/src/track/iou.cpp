// The tracks of one source of the `iou` tracker.
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/arrays.h"
#include "core/unlocked.h"
#include "module.h"
#include "track/match.h"
#include "track/objects.h"

namespace nb = nanobind;

namespace headrace::track {
namespace {

using core::Fill;
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

// headrace.pipeline.track.tracker.predict of one box.
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
    std::int64_t step(const TrackedObjects &objects, std::int64_t elapsed) {
        core::Unlocked release(objects.size() + tracks_.size() > core::kFew / 2);
        take(objects, elapsed);
        return std::count_if(tracks_.begin(), tracks_.end(),
                             [&](const Track &t) { return !t.id && t.hits >= set_.min_hits; });
    }

    // Gives out ids from `next` on, and fills in the id of each object of the last step.
    void name(std::int64_t next, Fill<std::int64_t, nb::ndim<1>> ids) {
        if (ids.shape(0) != track_of_.size()) throw nb::value_error("room for each id is needed");
        for (Track &t : tracks_)
            if (!t.id && t.hits >= set_.min_hits) t.id = next++;
        velocities_.assign(track_of_.size(), Box{});
        for (std::size_t i = 0; i < track_of_.size(); ++i) {
            const std::int32_t t = track_of_[i];
            ids.data()[i] = t < 0 ? 0 : tracks_[static_cast<std::size_t>(t)].id;
            if (t >= 0) velocities_[i] = tracks_[static_cast<std::size_t>(t)].velocity;
        }
        forget();
    }

    // Of the edges of each object of the last step.
    nb::ndarray<nb::numpy, double, nb::shape<-1, 4>> velocities() const {
        std::vector<double> flat;
        for (const Box &box : velocities_) flat.insert(flat.end(), box.begin(), box.end());
        return nb::ndarray<nb::numpy, double, nb::shape<-1, 4>>(
            core::array_of(std::move(flat), {velocities_.size(), 4}));
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
    void take(const TrackedObjects &objects, std::int64_t elapsed) {
        const std::size_t n = objects.size();
        const std::vector<float> &scores = objects.scores;
        boxes_.clear();
        own_groups_.clear();
        Numbers ranks;
        ranks.reserve(tracks_.size());
        for (Track &t : tracks_) {
            t.since += elapsed;
            boxes_.push_back(predicted(t));
            own_groups_.push_back(t.group);
            ranks.push_back(t.id == 0);
        }
        Numbers rows;  // objects that are looked at
        std::vector<Box> found;
        std::vector<std::int64_t> found_groups;
        rows.reserve(n);
        found.reserve(n);
        found_groups.reserve(n);
        for (std::size_t i = 0; i < n; ++i) {
            if (!(scores[i] >= set_.min_confidence)) continue;
            rows.push_back(static_cast<std::int32_t>(i));
            found.push_back(objects.corners[i]);
            found_groups.push_back(objects.groups[i]);
        }
        const Numbers matched = match(own(), ranks.data(), of(found, found_groups), set_.min_iou);
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
            track_of_[static_cast<std::size_t>(rows[k])] =
                static_cast<std::int32_t>(tracks_.size());
            tracks_.push_back({found[k], {}, found_groups[k]});
        }
    }

    void resume(Track &t, const Box &box) {
        const double gain =
            t.hits == 1 ? 1.0 : set_.velocity_gain;  // the first movement is all known
        for (std::size_t k = 0; k < 4; ++k) {
            const double moved = (box[k] - t.corners[k]) / static_cast<double>(t.since);
            if (set_.velocity_gain != 0)
                t.velocity[k] = t.velocity[k] + gain * (moved - t.velocity[k]);
        }
        t.corners = box;
        ++t.hits;
        t.missed = t.since = 0;
    }

    // Those of the free objects that start a track: no doubles, and the best where room is short.
    std::vector<std::size_t> starters(std::vector<std::size_t> free, const Numbers &rows,
                                      const std::vector<Box> &found,
                                      const std::vector<std::int64_t> &groups,
                                      const std::vector<float> &scores) {
        if (!free.empty() && !tracks_.empty() && set_.max_new_iou < 1) {
            std::vector<Box> boxes;
            std::vector<std::int64_t> of_free;
            for (std::size_t k : free) {
                boxes.push_back(found[k]);
                of_free.push_back(groups[k]);
            }
            const std::vector<double> overlap = best_overlap(of(boxes, of_free), own());
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

    static Boxes of(const std::vector<Box> &boxes, const std::vector<std::int64_t> &groups) {
        return {boxes.empty() ? nullptr : boxes[0].data(), groups.data(), boxes.size()};
    }
    Boxes own() const { return of(boxes_, own_groups_); }

    Settings set_;
    std::vector<Track> tracks_;  // oldest first
    std::vector<Box> boxes_;     // where each is expected, or was found
    std::vector<std::int64_t> own_groups_;
    Numbers track_of_;  // of each object of the last step, -1 for none
    std::vector<Box> velocities_;
};

}  // namespace

void bind_iou(nb::module_ &m) {
    nb::class_<IouTracks>(m, "IouTracks",
                          "The tracks of one source, by constant velocity and overlap.")
        .def(nb::init<double, double, double, double, double, std::int64_t, std::int64_t,
                      std::int64_t, std::int64_t>(),
             nb::kw_only(), nb::arg("min_iou"), nb::arg("max_new_iou"), nb::arg("velocity_gain"),
             nb::arg("min_confidence"), nb::arg("min_new_confidence"), nb::arg("min_hits"),
             nb::arg("max_age"), nb::arg("max_probation_misses"), nb::arg("max_tracks"))
        .def("step", &IouTracks::step, nb::arg("objects"), nb::arg("elapsed"),
             "Continue tracks with the objects of a frame; how many of the tracks need an id. Of "
             "many it "
             "releases the GIL.")
        .def("name", &IouTracks::name, nb::arg("next"), nb::arg("ids"),
             "Give out ids from next on, fill in those of the objects of the last step (0 "
             "without), and "
             "forget old tracks.")
        .def("velocities", &IouTracks::velocities,
             "(N, 4) pixels per frame of the edges of the objects of the last step.")
        .def("pass_over", &IouTracks::pass_over, nb::arg("elapsed"),
             "A frame in which nothing was looked for: lost tracks age, the others only move.")
        .def("__len__", &IouTracks::size);
}

}  // namespace headrace::track
