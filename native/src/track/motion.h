// Where a target is expected: constant-velocity filters, one for each number of a box.
#pragma once
#include <array>

#include "track/objects.h"

namespace headrace::track {

// A box by the middle of it, in pixels.
struct Placement {
    double x, y, width, height;

    static Placement of(const Box &b) {
        return {(b[0] + b[2]) / 2, (b[1] + b[3]) / 2, b[2] - b[0], b[3] - b[1]};
    }
    Box box() const { return {x - width / 2, y - height / 2, x + width / 2, y + height / 2}; }
};

// Numbered as `stateEstimatorType`; kSmoothed is that of generation 5.
enum class Motion { kNone = 0, kSimple = 1, kRegular = 2, kFoot = 3, kSmoothed = 4 };

struct MotionSettings {
    Motion kind = Motion::kNone;
    double process_loc, process_size, process_vel;  // variances
    double from_detector, from_tracker;             // variances of measurements
    double weight_loc, weight_vel;                  // deviations, in heights of the box
    bool aspect;                                    // the width is held as a part of the height
    double smooth_loc, smooth_scale, smooth_vel;    // weights of what is new
    double process_scale = 1, measurement_scale = 1;
};

class Estimator {
public:
    Estimator(const MotionSettings &settings, const Placement &first);

    // Moves on by a number of frames.
    void predict(double frames);

    // Takes a box in: the detector's, or the place at which a visual tracker found the target.
    void correct(const Placement &box, bool detector);

    Placement state() const;

    // Squared Mahalanobis distance of a detected box; a value held without noise counts nothing.
    double distance(const Placement &box) const;

private:
    struct Axis {
        double at, speed = 0, p = 0, pq = 0, q = 0;  // value, rate and their covariance
    };
    std::array<double, 4> measured(const Placement &box) const;
    std::array<double, 4> noise(bool detector) const;

    const MotionSettings *set_;
    std::array<Axis, 4> axes_;
    double height_;
};

}  // namespace headrace::track
