#include "track/targets.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "track/match.h"

namespace headrace::track {
namespace {

std::int64_t model_of(std::int64_t group) { return group >> 32; }

double size_similarity(const Placement &a, const Placement &b) {
    const double x = a.width * a.height, y = b.width * b.height;
    return x > 0 && y > 0 ? std::min(x, y) / std::max(x, y) : 0;
}

constexpr float kPlain = 0.1f;     // a target of one colour on the same has no look to find
constexpr float kSure = 0.5f;      // of the usual response: compared with boxes where it was found
constexpr float kClearer = 0.05f;  // response by which the last known place beats the expected one
constexpr double kNear = 0.25;     // diagonals; at places so close a filter sees the same
constexpr double kStays =
    0.1;  // score by which a target that is not lost goes before others that look
constexpr double kSame = 0.5;     // overlap
constexpr double kFullAge = 100;  // frames; a target that old has all of the score for age

}  // namespace

TargetSet::TargetSet(const TargetSettings &settings) { change(settings); }

void TargetSet::change(const TargetSettings &settings) {
    set_ = settings;
    if (set_.visual) correlator_ = std::make_unique<Correlator>(*set_.visual);
}

bool TargetSet::usable(const TrackedObjects &objects, std::size_t i) const {
    const Box &b = objects.corners[i];
    return objects.scores[i] >= float(set_.min_confidence) &&
           std::min(b[2] - b[0], b[3] - b[1]) >= set_.min_size;
}

// Each target moves on, and is looked for where it should be by now.
void TargetSet::expect(std::int64_t elapsed, Image *image) {
    frame_ += elapsed;
    for (Target &t : targets_) {
        t.motion.predict(double(elapsed));
        t.age += elapsed;
        t.expected = t.motion.state();
        t.located = false;
        if (!set_.use_prediction && !correlator_) t.expected = t.last;
    }
    if (correlator_ && image) locate(*image);
}

void TargetSet::locate(Image &image) {
    std::vector<Target *> seen, lost;
    std::vector<Placement> regions;
    for (Target &t : targets_)
        if (!t.filter.empty()) {
            seen.push_back(&t);
            regions.push_back(correlator_->region(t.expected));
        }
    image.turn(regions, correlator_->samples(), correlator_->rows());
    for (std::size_t i = 0; i < seen.size(); ++i)
        correlator_->find(seen[i]->filter, image.patch(i), seen[i]->expected, seen[i]->response);
    regions.clear();
    for (Target *t : seen)
        if (looks_back(*t)) {
            lost.push_back(t);
            regions.push_back(correlator_->region(t->last));
        }
    if (!lost.empty()) image.turn(regions, correlator_->samples(), correlator_->rows());
    static thread_local Response before;
    for (std::size_t i = 0; i < lost.size(); ++i) {
        Target &t = *lost[i];
        correlator_->find(t.filter, image.patch(i), t.last, before);
        if (before.peak <= t.response.peak + kClearer) continue;
        std::swap(t.response, before);
        t.expected = t.last;
    }
    for (Target *t : seen) {
        t->confidence = t->response.peak;
        t->located = t->response.peak >= set_.min_tracker_confidence;
        if (t->located || t->response.peak >= kSure * t->filter.usual)
            t->expected = t->response.found;
    }
}

// A lost target may turn where it cannot be seen: look for it at its last known place, too.
bool TargetSet::looks_back(const Target &t) const {
    if (t.shadow <= 0 || set_.use_prediction) return false;
    const double off = std::hypot(t.expected.x - t.last.x, t.expected.y - t.last.y);
    return off >= kNear * std::hypot(t.last.width, t.last.height);
}

// Filters learn from the places that `place_of` has for their targets, null for none.
template <class Chosen>
void TargetSet::learn(Image &image, const Chosen &place_of) {
    std::vector<Target *> some;
    std::vector<Placement> regions;
    for (Target &t : targets_)
        if (const std::optional<Placement> place = place_of(t)) {
            some.push_back(&t);
            regions.push_back(correlator_->region(*place));
        }
    image.turn(regions, correlator_->samples(), correlator_->rows());
    for (std::size_t i = 0; i < some.size(); ++i)
        correlator_->learn(some[i]->filter, image.patch(i));
}

void TargetSet::candidates(const TrackedObjects &objects, const Looks &looks, std::size_t t,
                           std::vector<Candidate> &pairs) const {
    const Target &target = targets_[t];
    const bool visual = correlator_ && !target.response.map.empty();
    const double age = set_.weight_age * std::min(1.0, double(target.age) / kFullAge);
    for (std::size_t i = 0; i < objects.size(); ++i) {
        if (of_object_[i] >= 0 || objects.groups[i] != target.group || !usable(objects, i))
            continue;
        if (set_.matcher == Matcher::kCascaded &&
            objects.scores[i] < float(set_.tentative_confidence))
            continue;
        const Box &there = objects.corners[i], box = clipped(target.expected.box(), there);
        const double iou = overlap(box.data(), there.data());
        if (iou < set_.min_iou) continue;
        const double size = size_similarity(Placement::of(box), Placement::of(there));
        if (size < set_.min_size_similarity) continue;
        const Placement place = unclipped(target, objects.corners[i]);
        double look = 0, seen = 0;
        if (visual) {
            // what hides a part of the target lowers the peak as well as the rest
            const float usual = std::max(target.response.peak, 0.3f * target.filter.usual);
            if (usual > kPlain) {
                const float here = target.response.near(place.x, place.y, correlator_->side());
                seen = std::min(1.0f, here / usual);
                if (seen < set_.min_visual) continue;
            }
        }
        if (looks.size && !target.looks.empty()) {
            look = -1;
            const float *own = looks.values + i * looks.size;
            for (const auto &kept : target.looks) {
                double product = 0;
                for (std::size_t k = 0; k < looks.size; ++k) product += double(own[k]) * kept[k];
                look = std::max(look, product);
            }
            if (look < set_.min_reid) continue;
        }
        // boxes far apart are not one object for being of one size
        if (iou <= 0 && seen <= 0 && look <= 0) continue;
        if (set_.mahalanobis >= 0 && target.motion.distance(place) > set_.mahalanobis) continue;
        const double score = set_.weight_iou * iou + set_.weight_size * size +
                             set_.weight_visual * seen + set_.weight_reid * look + age;
        const double first = visual && !target.shadow ? kStays : 0;
        if (score >= set_.min_overall)
            pairs.push_back({score + first, std::int32_t(t), std::int32_t(i)});
    }
}

// A later stage of the cascade: what is left, by overlap alone.
void TargetSet::by_overlap(const TrackedObjects &objects, State state, bool confirmed, double least,
                           bool above_zero) {
    std::vector<Candidate> pairs;
    for (std::size_t t = 0; t < targets_.size(); ++t) {
        const Target &target = targets_[t];
        if (of_target_[t] >= 0 || target.state != state) continue;
        for (std::size_t i = 0; i < objects.size(); ++i) {
            if (of_object_[i] >= 0 || objects.groups[i] != target.group || !usable(objects, i) ||
                (objects.scores[i] >= float(set_.tentative_confidence)) != confirmed)
                continue;
            const double iou = overlap_of(target.expected, objects.corners[i]);
            if (iou >= least && (iou > 0 || !above_zero))
                pairs.push_back({iou, std::int32_t(t), std::int32_t(i)});
        }
    }
    pair_greedily(std::move(pairs), of_object_, of_target_);
}

void TargetSet::associate(const TrackedObjects &objects, const Looks &looks) {
    of_object_.assign(objects.size(), -1);
    of_target_.assign(targets_.size(), -1);
    std::vector<Candidate> pairs;
    const bool cascaded = set_.matcher == Matcher::kCascaded;
    for (std::size_t t = 0; t < targets_.size(); ++t)
        if (!cascaded || targets_[t].state != State::kTentative)
            candidates(objects, looks, t, pairs);
    if (set_.matcher == Matcher::kGlobal)
        pair_globally(pairs, of_object_, of_target_);
    else
        pair_greedily(std::move(pairs), of_object_, of_target_);
    if (!cascaded) return;
    by_overlap(objects, State::kActive, false, set_.tentative_iou, true);
    by_overlap(objects, State::kTentative, true, set_.tentative_iou, true);
}

// What a detection can show of a target: it ends at the border of the image, or where it goes on.
Box TargetSet::clipped(Box box, const Box &detection) const {
    if (!set_.unclip) return box;
    for (std::size_t k = 0; k < 2; ++k) {
        const double low = std::min(0.0, detection[k]);
        const double high = std::max(image_[k], detection[k + 2]);
        box[k] = std::clamp(box[k], low, high);
        box[k + 2] = std::clamp(box[k + 2], low, high);
    }
    return box;
}

double TargetSet::overlap_of(const Placement &target, const Box &detection) const {
    return overlap(clipped(target.box(), detection).data(), detection.data());
}

// The whole of a box that the border of the image cuts, as large as the target was before.
Placement TargetSet::unclipped(const Target &target, const Box &box) const {
    Placement place = Placement::of(box);
    if (!set_.unclip) return place;
    for (std::size_t k = 0; k < 2; ++k) {
        const bool low = box[k] <= 1, high = box[k + 2] >= image_[k] - 1;
        double &middle = k ? place.y : place.x, &now = k ? place.height : place.width;
        if (low == high || now >= target.full[k]) continue;
        now = target.full[k];
        middle = low ? box[k + 2] - now / 2 : box[k] + now / 2;
    }
    return place;
}

void TargetSet::remember(Target &t) {
    if (set_.history <= 0) return;
    const Box box = t.motion.state().box();
    t.way.push_back({double(frame_), box[0], box[1], box[2], box[3]});
    while (t.way.size() > std::size_t(set_.history)) t.way.pop_front();
}

void TargetSet::take(Target &t, const Box &box, const float *look, std::size_t size) {
    const Placement place = unclipped(t, box);
    t.full = {place.width, place.height};
    if (t.located) {
        t.motion.correct(t.response.found, false);
        const float here = t.response.near(place.x, place.y, correlator_->side());
        t.filter.usual += 0.1f * (here - t.filter.usual);
    }
    t.motion.correct(place, true);
    t.last = place;
    t.shadow = 0;
    if (t.age > set_.probation) t.state = State::kActive;
    if (look) {
        t.looks.emplace_back(look, look + size);
        while (t.looks.size() > std::size_t(std::max<std::int64_t>(1, set_.reid_history)))
            t.looks.pop_front();
    }
}

// Detections that are left start targets, the most confident first where room is short.
void TargetSet::start(const TrackedObjects &objects, const Looks &looks) {
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < objects.size(); ++i) {
        if (of_object_[i] >= 0 || !usable(objects, i)) continue;
        if (set_.matcher == Matcher::kCascaded &&
            objects.scores[i] < float(set_.tentative_confidence))
            continue;
        bool free = true;
        for (const Target &t : targets_) {
            const Placement place = t.shadow ? t.expected : t.motion.state();
            if (model_of(t.group) == model_of(objects.groups[i]) &&
                overlap_of(place, objects.corners[i]) > set_.max_new_iou) {
                free = false;
                break;
            }
        }
        if (free) left.push_back(i);
    }
    const auto room =
        std::size_t(std::max<std::int64_t>(0, set_.max_targets - std::int64_t(targets_.size())));
    if (left.size() > room) {
        std::stable_sort(left.begin(), left.end(), [&](std::size_t a, std::size_t b) {
            return objects.scores[a] > objects.scores[b];
        });
        left.resize(room);
        std::sort(left.begin(), left.end());
    }
    for (const std::size_t i : left) {
        const Placement place = Placement::of(objects.corners[i]);
        of_object_[i] = std::int32_t(targets_.size());
        targets_.push_back({next_key_++, objects.groups[i], Estimator(set_.motion, place), place});
        Target &t = targets_.back();
        t.full = {place.width, place.height};
        if (t.age > set_.probation) t.state = State::kActive;
        if (looks.size)
            t.looks.emplace_back(looks.values + i * looks.size,
                                 looks.values + (i + 1) * looks.size);
    }
}

// Targets that were lost too long, and doubles, end; places in `of_object_` follow.
void TargetSet::end() {
    std::vector<char> over(targets_.size(), 0);
    for (std::size_t t = 0; t < targets_.size(); ++t) {
        const Target &target = targets_[t];
        over[t] = target.state == State::kTentative
                      ? target.shadow >= std::max<std::int64_t>(1, set_.early)
                      : target.shadow > set_.max_shadow;
    }
    if (set_.duplicate_interval > 0 && steps_ % set_.duplicate_interval == 0)
        for (std::size_t t = 0; t < targets_.size(); ++t)
            for (std::size_t u = t + 1; u < targets_.size(); ++u) {
                if (over[t] || over[u] || targets_[t].group != targets_[u].group) continue;
                const Box a = targets_[t].motion.state().box(),
                          b = targets_[u].motion.state().box();
                if (overlap(a.data(), b.data()) > set_.duplicate_iou) over[u] = 1;
            }
    if (std::find(over.begin(), over.end(), 1) == over.end()) return;
    std::vector<std::int32_t> place(targets_.size(), -1);
    std::vector<Target> kept;
    kept.reserve(targets_.size());
    for (std::size_t t = 0; t < targets_.size(); ++t) {
        if (over[t]) {
            ended_.push_back(std::move(targets_[t]));
            continue;
        }
        place[t] = std::int32_t(kept.size());
        kept.push_back(std::move(targets_[t]));
    }
    targets_ = std::move(kept);
    for (std::int32_t &t : of_object_)
        if (t >= 0) t = place[std::size_t(t)];
}

// Whether a target was found where a detection of another one is: it is behind that one, or gone.
bool TargetSet::taken(const TrackedObjects &objects, const Target &t) const {
    for (std::size_t i = 0; i < objects.size(); ++i)
        if (of_object_[i] >= 0 && overlap_of(t.response.found, objects.corners[i]) > kSame)
            return true;
    return false;
}

void TargetSet::step(const TrackedObjects &objects, std::int64_t elapsed, Image *image, Looks looks,
                     std::array<double, 2> size) {
    ended_.clear();
    ++steps_;
    image_ = size;
    expect(elapsed, image);
    associate(objects, looks);
    for (std::size_t t = 0; t < targets_.size(); ++t) {
        Target &target = targets_[t];
        if (of_target_[t] >= 0) {
            const auto i = std::size_t(of_target_[t]);
            take(target, objects.corners[i], looks.size ? looks.values + i * looks.size : nullptr,
                 looks.size);
        } else {
            ++target.shadow;
            if (target.state == State::kActive) target.state = State::kInactive;
            if (target.located && !taken(objects, target))
                target.motion.correct(target.response.found, false);
        }
    }
    end();
    start(objects, looks);
    if (correlator_ && image)
        learn(*image, [](Target &t) -> std::optional<Placement> {
            if (t.shadow) return std::nullopt;
            if (t.filter.empty()) t.confidence = 1;
            return t.last;
        });
    for (Target &t : targets_) remember(t);
}

void TargetSet::pass_over(std::int64_t elapsed, Image *image, std::array<double, 2>) {
    ended_.clear();
    of_object_.clear();
    expect(elapsed, image);
    for (Target &t : targets_) {
        const bool searched = correlator_ && image && !t.filter.empty();
        if (t.located) t.motion.correct(t.response.found, false);
        if (t.shadow > 0 || (searched && !t.located && t.state == State::kActive)) ++t.shadow;
        if (searched && t.state != State::kTentative)
            t.state = t.located && t.shadow == 0 ? State::kActive : State::kInactive;
        remember(t);
    }
    if (correlator_ && image)
        learn(*image, [](const Target &t) -> std::optional<Placement> {
            if (!t.located || t.shadow) return std::nullopt;
            return t.motion.state();
        });
    end();
}

void TargetSet::name(std::int64_t key, std::int64_t id) {
    const auto named = std::find_if(targets_.begin(), targets_.end(),
                                    [&](const Target &t) { return t.key == key; });
    if (named == targets_.end()) return;
    const auto before = std::find_if(targets_.begin(), targets_.end(),
                                     [&](const Target &t) { return t.id == id && t.key != key; });
    named->id = id;
    if (before == targets_.end()) return;
    named->age = std::max(named->age, before->age);
    named->looks.insert(named->looks.begin(), before->looks.begin(), before->looks.end());
    while (named->looks.size() > std::size_t(std::max<std::int64_t>(1, set_.reid_history)))
        named->looks.pop_front();
    const auto gone = std::int32_t(before - targets_.begin());
    targets_.erase(before);
    for (std::int32_t &t : of_object_) t = t == gone ? -1 : t - (t > gone);
}

}  // namespace headrace::track
