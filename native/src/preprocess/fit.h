#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace headrace::preprocess {

// One crop of a frame in the network input; the rules and their source: headrace/infer/geometry.py.
struct Fit {
    int32_t src[4], dst[4];  // left, top, width, height
    double ratio[2];         // x, y
};

struct FitRules {
    int frame[2], net[2];  // width, height
    bool keep_aspect, symmetric, modern;
};

// `fit_crop` as trainers letterbox: what is inside the frame, one ratio for both axes.
inline bool fit_modern(const double *ltwh, const FitRules &rules, Fit &fit) {
    int32_t *src = fit.src, *dst = fit.dst;
    for (int i = 0; i < 2; ++i) {
        const double end = ltwh[i] + ltwh[2 + i];
        if (!(std::fabs(ltwh[i]) < INFINITY && std::fabs(end) < INFINITY)) return false;
        src[i] = int32_t(std::clamp<double>(ltwh[i], 0, rules.frame[i]));
        src[2 + i] = int32_t(std::clamp<double>(end, 0, rules.frame[i])) - src[i];
    }
    if (src[2] <= 0 || src[3] <= 0) {
        fit = {};
        return false;
    }
    const double ratio = std::min(double(rules.net[1]) / src[3], double(rules.net[0]) / src[2]);
    for (int i = 0; i < 2; ++i) {
        dst[2 + i] = rules.net[i];
        fit.ratio[i] = double(rules.net[i]) / src[2 + i];
        if (!rules.keep_aspect) continue;
        // Trainers that centre round, the others truncate; `ratio` may be off by its last bit.
        const double size = src[2 + i] * ratio;
        dst[2 + i] = std::max(1, int32_t(rules.symmetric ? std::nearbyint(size) : size));
        fit.ratio[i] = ratio;
        if (rules.symmetric) dst[i] = (rules.net[i] - dst[2 + i]) / 2;
    }
    return true;
}

// False, and `fit` all zeros, where there is nothing to crop.
inline bool fit_crop(const double *ltwh, const FitRules &rules, Fit &fit) {
    constexpr double kLimit = 2147483646;
    fit = {};
    if (rules.modern) return fit_modern(ltwh, rules, fit);
    int32_t src[4];
    for (int i = 0; i < 4; ++i) {
        if (!(std::fabs(ltwh[i]) <= kLimit)) return false;  // NaN too
        const int32_t value = ltwh[i] > 0 ? int32_t(ltwh[i]) : 0;
        src[i] = i < 2 ? value + value % 2 : value - value % 2;
    }
    if (src[2] == 0 || src[3] == 0 || src[0] >= rules.frame[0] || src[1] >= rules.frame[1])
        return false;
    int32_t size[2] = {rules.net[0], rules.net[1]};
    if (rules.keep_aspect) {
        const double high = double(int64_t(rules.net[0]) * src[3]) / src[2];
        if (high <= rules.net[1])
            size[1] = high < 1 ? 1 : int32_t(high);
        else
            size[0] = int32_t(std::fmax(1, double(int64_t(rules.net[1]) * src[2]) / src[3]));
    }
    for (int i = 0; i < 2; ++i) {
        fit.dst[i] = rules.keep_aspect && rules.symmetric ? (rules.net[i] - size[i]) / 2 : 0;
        fit.dst[2 + i] = size[i];
        fit.ratio[i] = double(size[i]) / src[2 + i];
    }
    for (int i = 0; i < 4; ++i) fit.src[i] = src[i];
    return true;
}

}  // namespace headrace::preprocess
