// Targets of one source by the original's published rules: life cycle, association, state.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "track/associate.h"
#include "track/correlation.h"
#include "track/image.h"
#include "track/motion.h"
#include "track/objects.h"

namespace headrace::track {

// Numbered as `TRACKER_STATE` of the original.
enum class State { kActive = 1, kInactive = 2, kTentative = 3 };

enum class Matcher { kGreedy = 0, kCascaded = 1, kGlobal = 2 };

struct TargetSettings {
    // targets
    double min_confidence, min_tracker_confidence, max_new_iou, duplicate_iou, min_size;
    std::int64_t max_targets, probation, max_shadow, early, duplicate_interval, history;
    bool unclip;
    // association
    Matcher matcher;
    bool use_prediction;
    double min_overall, min_size_similarity, min_iou, min_visual, min_reid;
    double weight_iou, weight_size, weight_visual, weight_reid, weight_age;
    double tentative_confidence, tentative_iou, mahalanobis;
    std::int64_t reid_history;
    MotionSettings motion;
    std::optional<VisualSettings> visual;
};

struct Target {
    std::int64_t key;    // of this target, from 1
    std::int64_t group;  // of its objects
    Estimator motion;
    Placement last;       // where it was found last
    std::int64_t id = 0;  // 0 until it is reported
    std::int64_t age = 1, shadow = 0;
    State state = State::kTentative;
    float confidence = 1;
    Filter filter;
    std::array<double, 2> full = {0, 0};    // size before the border of the image cut it
    std::deque<std::vector<float>> looks;   // ReID vectors, oldest first
    std::deque<std::array<double, 5>> way;  // frame, and box: the last of them
    // of this frame
    Placement expected = {};
    Response response = {};
    bool located = false;  // by its look
};

// The looks of the objects of a frame, (N, size); none without values.
struct Looks {
    const float *values;
    std::size_t size;
};

class TargetSet {
public:
    explicit TargetSet(const TargetSettings &settings);
    TargetSet(const TargetSet &) = delete;  // its targets point at its settings
    TargetSet &operator=(const TargetSet &) = delete;

    // A frame with the objects that a detector found in it. `elapsed` frames after the last.
    void step(const TrackedObjects &objects, std::int64_t elapsed, Image *image, Looks looks,
              std::array<double, 2> size);

    // A frame that no detector looked at.
    void pass_over(std::int64_t elapsed, Image *image, std::array<double, 2> size);

    // Other numbers from the next frame on; the motion and what filters look at stay as they are.
    void change(const TargetSettings &settings);

    // Gives the target an id. One that has it already, in the shadow, ends: it is the same object.
    void name(std::int64_t key, std::int64_t id);

    const std::vector<Target> &targets() const { return targets_; }
    const std::vector<std::int32_t> &of_objects() const { return of_object_; }
    const std::vector<Target> &ended() const { return ended_; }

private:
    void expect(std::int64_t elapsed, Image *image);
    void locate(Image &image);
    void associate(const TrackedObjects &objects, const Looks &looks);
    void candidates(const TrackedObjects &objects, const Looks &looks, std::size_t t,
                    std::vector<Candidate> &pairs) const;
    void by_overlap(const TrackedObjects &objects, State state, bool confirmed, double least,
                    bool above_zero);
    bool looks_back(const Target &target) const;
    template <class Chosen>
    void learn(Image &image, const Chosen &place_of);
    bool taken(const TrackedObjects &objects, const Target &target) const;
    void take(Target &target, const Box &box, const float *look, std::size_t size);
    Box clipped(Box box, const Box &detection) const;
    double overlap_of(const Placement &target, const Box &detection) const;
    Placement unclipped(const Target &target, const Box &box) const;
    void start(const TrackedObjects &objects, const Looks &looks);
    void remember(Target &target);
    void end();
    bool usable(const TrackedObjects &objects, std::size_t i) const;

    TargetSettings set_;
    std::unique_ptr<Correlator> correlator_;
    std::vector<Target> targets_, ended_;  // oldest first
    std::vector<std::int32_t> of_object_, of_target_;
    std::array<double, 2> image_ = {0, 0};  // its width and height
    std::int64_t next_key_ = 1, frame_ = 0, steps_ = 0;
};

}  // namespace headrace::track
