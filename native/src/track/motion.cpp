// The numbers of a box are independent of each other as long as their noise is: a Kalman filter of
// eight values is four of two.
#include "track/motion.h"

#include <algorithm>
#include <cmath>

namespace headrace::track {
namespace {

constexpr double kAspectProcess = 0.01, kAspectMeasured = 0.1, kAspectRate = 1e-5;
constexpr double kThinnest = 1e-3;  // pixels; a box of a filter gone astray still has an area

double square(double v) { return v * v; }

}  // namespace

Estimator::Estimator(const MotionSettings &settings, const Placement &first)
    : set_(&settings), height_(first.height) {
    const auto z = measured(first);
    for (std::size_t k = 0; k < 4; ++k) axes_[k] = {z[k]};
    if (set_->kind == Motion::kSimple || set_->kind == Motion::kFoot) {
        for (Axis &axis : axes_) {
            axis.p = set_->from_detector;
            axis.q = 2 * set_->from_detector;  // of the difference of two measurements
        }
    } else if (set_->kind == Motion::kRegular) {  // the start of the DeepSORT paper's filter
        for (std::size_t k = 0; k < 4; ++k) {
            const bool part = k == 2 && set_->aspect;
            axes_[k].p = square(part ? kAspectProcess : 2 * set_->weight_loc * height_);
            axes_[k].q = square(part ? kAspectRate : 10 * set_->weight_vel * height_);
        }
    }
}

std::array<double, 4> Estimator::measured(const Placement &b) const {
    switch (set_->kind) {
    case Motion::kFoot: return {b.x, b.y + b.height / 2, b.width, b.height};
    case Motion::kRegular:
        return {b.x, b.y, set_->aspect ? b.width / std::max(b.height, kThinnest) : b.width,
                b.height};
    default: return {b.x, b.y, b.width, b.height};
    }
}

Placement Estimator::state() const {
    double w = axes_[2].at, h = std::max(axes_[3].at, kThinnest);
    if (set_->kind == Motion::kRegular && set_->aspect) w *= h;
    const double y = set_->kind == Motion::kFoot ? axes_[1].at - h / 2 : axes_[1].at;
    return {axes_[0].at, y, std::max(w, kThinnest), h};
}

void Estimator::predict(double frames) {
    if (set_->kind == Motion::kNone) return;
    const double scale = set_->process_scale;
    const double height = std::max(axes_[3].at, kThinnest);
    for (std::size_t k = 0; k < 4; ++k) {
        Axis &a = axes_[k];
        double loc, vel = 0;
        bool moves = true;
        if (set_->kind == Motion::kRegular) {
            const bool part = k == 2 && set_->aspect;
            loc = square(part ? kAspectProcess : set_->weight_loc * height);
            vel = square(part ? kAspectRate : set_->weight_vel * height);
        } else {
            moves = k < 2;
            loc = moves ? set_->process_loc : set_->process_size;
            vel = set_->process_vel;
        }
        // the size of a foot point's box is the last measured one
        if (set_->kind == Motion::kFoot && !moves) continue;
        if (moves) a.at += frames * a.speed;
        if (set_->kind == Motion::kSmoothed) continue;
        if (moves) {
            a.p += frames * (2 * a.pq + frames * a.q);
            a.pq += frames * a.q;
            a.q += scale * vel * frames;
        }
        a.p += scale * loc * frames;
    }
}

std::array<double, 4> Estimator::noise(bool detector) const {
    const double scale = set_->measurement_scale;
    if (set_->kind == Motion::kRegular) {
        const double r = scale * square(set_->weight_loc * std::max(axes_[3].at, kThinnest));
        return {r, r, set_->aspect ? scale * square(kAspectMeasured) : r, r};
    }
    const double r = scale * (detector ? set_->from_detector : set_->from_tracker);
    return {r, r, r, r};
}

void Estimator::correct(const Placement &box, bool detector) {
    const auto z = measured(box);
    if (set_->kind == Motion::kNone || (set_->kind == Motion::kFoot && detector))
        for (std::size_t k = set_->kind == Motion::kNone ? 0 : 2; k < 4; ++k) axes_[k].at = z[k];
    if (set_->kind == Motion::kNone) return;
    const auto r = noise(detector);
    // a visual tracker finds a place, not a size
    const std::size_t count = set_->kind == Motion::kFoot || !detector ? 2 : 4;
    for (std::size_t k = 0; k < count; ++k) {
        Axis &a = axes_[k];
        const double off = z[k] - a.at;
        if (set_->kind == Motion::kSmoothed) {
            a.at += (k < 2 ? set_->smooth_loc : set_->smooth_scale) * off;
            if (k < 2) a.speed += set_->smooth_vel * off;
            continue;
        }
        const double total = a.p + r[k];
        if (!(total > 0)) {  // neither is in doubt: what was measured last holds
            a.at = z[k];
            continue;
        }
        const double gain = a.p / total, rate = a.pq / total;
        a.at += gain * off;
        a.speed += rate * off;
        a.q -= rate * a.pq;
        a.pq *= 1 - gain;
        a.p *= 1 - gain;
    }
}

double Estimator::distance(const Placement &box) const {
    if (set_->kind == Motion::kNone || set_->kind == Motion::kSmoothed) return 0;
    const auto z = measured(box), r = noise(true);
    double sum = 0;
    for (std::size_t k = 0; k < (set_->kind == Motion::kFoot ? 2 : 4); ++k) {
        const double total = axes_[k].p + r[k];
        if (total > 0) sum += square(z[k] - axes_[k].at) / total;
    }
    return sum;
}

}  // namespace headrace::track
