// groupRectangles: integer boxes, connected components of similar ones, their mean. Source: spec
// B.4.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cluster/cluster.h"

namespace headrace::cluster {
namespace {

constexpr float kScore = -0.1f;  // every object's; member scores are lost
constexpr double kIntMax = std::numeric_limits<std::int32_t>::max();
constexpr double kIntMin = std::numeric_limits<std::int32_t>::min();

struct IntRect {
    std::int64_t x = 0, y = 0, w = 0, h = 0;
};

// Out of range is clamped and NaN is 0: undefined in the original.
std::int64_t clamped(double v) {
    return v != v ? 0 : static_cast<std::int64_t>(std::clamp(v, kIntMin, kIntMax));
}

// To nearest, halves to even (the default rounding mode).
std::int64_t rounded(double v) { return clamped(std::nearbyint(v)); }

bool similar(const IntRect &a, const IntRect &b, double eps) {
    const double delta = eps * static_cast<double>(std::min(a.w, b.w) + std::min(a.h, b.h)) * 0.5;
    auto close = [delta](std::int64_t u, std::int64_t v) {
        return static_cast<double>(std::abs(u - v)) <= delta;
    };
    return close(a.x, b.x) && close(a.y, b.y) && close(a.x + a.w, b.x + b.w) &&
           close(a.y + a.h, b.y + b.h);
}

// Component of each rectangle, numbered by first member.
std::vector<std::size_t> components(const std::vector<IntRect> &rects, double eps,
                                    std::size_t &count) {
    std::vector<std::size_t> parent(rects.size());
    std::iota(parent.begin(), parent.end(), std::size_t{0});
    auto find = [&parent](std::size_t i) {
        while (parent[i] != i) i = parent[i] = parent[parent[i]];
        return i;
    };
    for (std::size_t i = 0; i < rects.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (similar(rects[i], rects[j], eps)) {
                const std::size_t a = find(i), b = find(j);
                parent[std::max(a, b)] = std::min(a, b);  // the root is the first member
            }
    std::vector<std::size_t> label(rects.size());
    count = 0;
    for (std::size_t i = 0; i < rects.size(); ++i) {
        const std::size_t root = find(i);
        label[i] = root == i ? count++ : label[root];
    }
    return label;
}

struct Cluster {
    IntRect rect;
    std::int32_t members = 0, first = -1;
};

bool contains(const Cluster &outer, const Cluster &inner, double eps) {
    const IntRect &b = outer.rect, &a = inner.rect;
    const std::int64_t dx = rounded(static_cast<double>(b.w) * eps);
    const std::int64_t dy = rounded(static_cast<double>(b.h) * eps);
    return a.x >= b.x - dx && a.y >= b.y - dy && a.x + a.w <= b.x + b.w + dx &&
           a.y + a.h <= b.y + b.h + dy &&
           (outer.members > std::max(3, inner.members) || inner.members < 3);
}

Object object_of(const IntRect &r, std::int32_t row, std::int32_t members) {
    return {{static_cast<float>(r.x), static_cast<float>(r.y), static_cast<float>(r.w),
             static_cast<float>(r.h)},
            kScore,
            row,
            members};
}

}  // namespace

void group_rectangles(const Input &in, const Rows &rows, const ClassParams &p,
                      std::vector<Object> &out, Trace *trace) {
    const double eps = p.eps;
    std::vector<IntRect> rects;
    for (std::int32_t row : rows) {
        const float *b = in.boxes + 4 * static_cast<std::size_t>(row);
        auto toward_zero = [](float v) { return clamped(std::trunc(static_cast<double>(v))); };
        rects.push_back(
            {toward_zero(b[0]), toward_zero(b[1]), toward_zero(b[2]), toward_zero(b[3])});
    }
    if (p.group_threshold <= 0) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (trace) trace->object[rows[i]] = static_cast<std::int32_t>(out.size());
            out.push_back(object_of(rects[i], rows[i], 0));
        }
        return;
    }
    std::size_t count = 0;
    const std::vector<std::size_t> label = components(rects, eps, count);
    std::vector<Cluster> clusters(count);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        Cluster &c = clusters[label[i]];
        c.rect.x += rects[i].x;
        c.rect.y += rects[i].y;
        c.rect.w += rects[i].w;
        c.rect.h += rects[i].h;
        if (c.members++ == 0) c.first = rows[i];
    }
    for (Cluster &c : clusters) {
        const float scale = 1.0f / static_cast<float>(c.members);
        auto mean = [scale](std::int64_t sum) { return rounded(static_cast<float>(sum) * scale); };
        c.rect = {mean(c.rect.x), mean(c.rect.y), mean(c.rect.w), mean(c.rect.h)};
    }
    std::vector<Reason> fate(count, kMerged);
    std::vector<std::int32_t> place(count, -1), by(count, -1);
    for (std::size_t i = 0; i < count; ++i) {
        if (clusters[i].members <= p.group_threshold) {
            fate[i] = kGroupThreshold;
            continue;
        }
        for (std::size_t j = 0; j < count && fate[i] == kMerged; ++j)
            if (j != i && clusters[j].members > p.group_threshold &&
                contains(clusters[j], clusters[i], eps)) {
                fate[i] = kContained;
                by[i] = clusters[j].first;
            }
        if (fate[i] != kMerged) continue;
        place[i] = static_cast<std::int32_t>(out.size());
        out.push_back(object_of(clusters[i].rect, clusters[i].first, clusters[i].members));
    }
    if (!trace) return;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::size_t c = label[i];
        if (place[c] < 0)
            trace->drop(rows[i], fate[c], by[c]);
        else
            trace->object[rows[i]] = place[c];
    }
}

}  // namespace headrace::cluster
