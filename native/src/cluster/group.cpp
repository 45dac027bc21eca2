// groupRectangles: integer boxes, connected components of similar ones, their mean. Source: spec
// B.4.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "cluster/cluster.h"

namespace headrace::cluster {
namespace {

constexpr float kScore = -0.1f;  // every object's; member scores are lost
constexpr double kIntMax = std::numeric_limits<std::int32_t>::max();
constexpr double kIntMin = std::numeric_limits<std::int32_t>::min();

constexpr std::size_t kSwept = 256;  // rectangles from which sorting pays

struct IntRect {
    std::int64_t x = 0, y = 0, w = 0, h = 0;
};

// Out of range is clamped and NaN is 0: undefined in the original.
std::int64_t clamped(double v) {
    return v != v ? 0 : static_cast<std::int64_t>(std::clamp(v, kIntMin, kIntMax));
}

// To nearest, halves to even (the default rounding mode).
std::int64_t rounded(double v) { return clamped(std::nearbyint(v)); }

inline bool similar(const IntRect &a, const IntRect &b, double eps) {
    const double delta = eps * static_cast<double>(std::min(a.w, b.w) + std::min(a.h, b.h)) * 0.5;
    auto close = [delta](std::int64_t u, std::int64_t v) {
        return static_cast<double>(std::abs(u - v)) <= delta;
    };
    return close(a.x, b.x) && close(a.y, b.y) && close(a.x + a.w, b.x + b.w) &&
           close(a.y + a.h, b.y + b.h);
}

// Sets of rectangles that belong together; the root of each is its first member.
class Sets {
public:
    explicit Sets(std::size_t n) : parent_(n) {
        std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    }

    std::size_t root(std::size_t i) {
        while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
        return i;
    }

    void join(std::size_t i, std::size_t j) {
        const std::size_t a = root(i), b = root(j);
        parent_[std::max(a, b)] = std::min(a, b);
    }

private:
    std::vector<std::size_t> parent_;
};

// An edge of many rectangles, in its order: similar ones lie within a rectangle's reach of it.
struct Sorted {
    std::vector<std::pair<std::int64_t, std::size_t>> edges;
    std::vector<std::size_t> end;  // of each edge, the first one beyond its reach
    std::size_t pairs = 0;

    Sorted(const std::vector<IntRect> &rects, const std::vector<std::size_t> &which, double eps,
           std::int64_t (*edge)(const IntRect &)) {
        for (std::size_t i : which) edges.emplace_back(edge(rects[i]), i);
        std::sort(edges.begin(), edges.end());
        for (std::size_t k = 0; k < edges.size(); ++k) {
            const IntRect &r = rects[edges[k].second];
            // No pair has a larger delta than its smaller member, rounded alike.
            const double reach = eps * static_cast<double>(r.w + r.h) * 0.5;
            const auto beyond = std::partition_point(
                edges.begin() + static_cast<std::ptrdiff_t>(k) + 1, edges.end(),
                [&](const auto &e) {
                    return static_cast<double>(e.first - edges[k].first) <= reach;
                });
            end.push_back(static_cast<std::size_t>(beyond - edges.begin()));
            pairs += end.back() - k - 1;
        }
    }
};

// Joins similar rectangles: compares all.
void join_few(const std::vector<IntRect> &rects, double eps, Sets &sets, Patience &patience) {
    for (std::size_t i = 0; i < rects.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j)
            if (similar(rects[i], rects[j], eps)) sets.join(i, j);
        patience.spend(i);
    }
}

// The same: equal ones first, then those whose edges come near each other along the axis that
// leaves the fewest pairs. Only for an eps that is no less than 0.
void join_many(const std::vector<IntRect> &rects, double eps, Sets &sets, Patience &patience) {
    const auto key = [&](std::size_t i) {
        const IntRect &r = rects[i];
        return std::make_tuple(r.x, r.y, r.w, r.h);
    };
    std::vector<std::size_t> order(rects.size()), different;
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    for (std::size_t i : order) {
        if (different.empty() || key(different.back()) != key(i))
            different.push_back(i);
        else if (similar(rects[i], rects[i], eps))
            sets.join(different.back(), i);
    }
    using Edge = std::int64_t (*)(const IntRect &);
    const Edge edges[] = {
        [](const IntRect &r) { return r.x; }, [](const IntRect &r) { return r.y; },
        [](const IntRect &r) { return r.x + r.w; }, [](const IntRect &r) { return r.y + r.h; }};
    Sorted best(rects, different, eps, edges[0]);
    for (const Edge edge : {edges[1], edges[2], edges[3]}) {
        Sorted next(rects, different, eps, edge);
        if (next.pairs < best.pairs) best = std::move(next);
    }
    for (std::size_t k = 0; k < best.edges.size(); ++k) {
        const std::size_t i = best.edges[k].second;
        for (std::size_t l = k + 1; l < best.end[k]; ++l) {
            const std::size_t j = best.edges[l].second;
            if (similar(rects[i], rects[j], eps)) sets.join(i, j);
        }
        patience.spend(4 * (best.end[k] - k));
    }
}

// Component of each rectangle, numbered by first member.
std::vector<std::size_t> components(const std::vector<IntRect> &rects, double eps,
                                    std::size_t &count, Patience &patience) {
    Sets sets(rects.size());
    if (rects.size() < kSwept || !(eps >= 0.0))
        join_few(rects, eps, sets, patience);
    else
        join_many(rects, eps, sets, patience);
    std::vector<std::size_t> label(rects.size());
    count = 0;
    for (std::size_t i = 0; i < rects.size(); ++i) {
        const std::size_t root = sets.root(i);
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
                      std::vector<Object> &out, Trace *trace, Patience &patience) {
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
    const std::vector<std::size_t> label = components(rects, eps, count, patience);
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
    std::vector<std::size_t> large;
    for (std::size_t i = 0; i < count; ++i)
        if (clusters[i].members > p.group_threshold) large.push_back(i);
    for (std::size_t i = 0; i < count; ++i) {
        if (clusters[i].members <= p.group_threshold) {
            fate[i] = kGroupThreshold;
            continue;
        }
        const auto outer = std::find_if(large.begin(), large.end(), [&](std::size_t j) {
            return j != i && contains(clusters[j], clusters[i], eps);
        });
        patience.spend(large.size());
        if (outer != large.end()) {
            fate[i] = kContained;
            by[i] = clusters[*outer].first;
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
