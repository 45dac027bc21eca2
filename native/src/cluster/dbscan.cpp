// The one-hop DBSCAN of the original, which is not the textbook's. Source: spec B.5.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cluster/box_index.h"
#include "cluster/cluster.h"

namespace headrace::cluster {
namespace {

constexpr float kMaxAreaToHitRatio = 60.0f;  // fixed and always on in the original

struct Boxes {
    std::vector<float> x0, y0, x1, y1, area;

    Boxes(const Input &in, const Rows &rows) {
        for (std::int32_t row : rows) {
            const float *b = in.boxes + 4 * static_cast<std::size_t>(row);
            x0.push_back(b[0]);
            y0.push_back(b[1]);
            x1.push_back(b[0] + b[2]);
            y1.push_back(b[1] + b[3]);
            // std::min and std::max may lose a NaN: one in the area makes every distance NaN.
            const bool nan = b[0] != b[0] || b[1] != b[1];
            area.push_back(nan ? std::numeric_limits<float>::quiet_NaN() : b[2] * b[3]);
        }
    }

    // A distance of NaN (0/0, or a NaN coordinate) compares false: never a neighbour.
    bool near(std::size_t a, std::size_t b, float eps) const {
        const float w = std::min(x1[a], x1[b]) - std::max(x0[a], x0[b]);
        const float h = std::min(y1[a], y1[b]) - std::max(y0[a], y0[b]);
        const float inter = w > 0.0f && h > 0.0f ? w * h : 0.0f;
        return 1.0f - inter / (area[a] + area[b] - inter) < eps;
    }

    // Shares nothing with any box, nor has a distance below 1.
    bool alone(std::size_t i) const {
        return !(x1[i] > x0[i] && y1[i] > y0[i] && area[i] == area[i]);
    }

    std::size_t size() const { return area.size(); }
};

// The boxes near each box. Few boxes are all compared; of many, those that an index gives, in which
// a distance below eps is an IoU above 1 - eps. From 1 on boxes that share nothing are near, too.
class Neighbours {
public:
    Neighbours(const Input &in, const Rows &rows, float eps, Patience &patience)
        : boxes_(in, rows),
          eps_(eps),
          patience_(patience),
          index_(std::max(1.0f - eps - kRounding, 0.0f)) {
        if (rows.size() < kIndexed || !(eps <= 1.0f)) return;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (boxes_.alone(i))
                index_.add_alone();
            else
                index_.add(in.boxes + 4 * static_cast<std::size_t>(rows[i]));
        }
        in_ = &in;
        rows_ = &rows;
    }

    // Whether at least `least` boxes are near, counting itself.
    bool dense(std::size_t i, std::int32_t least) {
        std::int32_t count = 0;
        if (static_cast<std::int64_t>(least) > static_cast<std::int64_t>(boxes_.size()))
            return false;
        visit(
            i, [&] { count = 1; },  // itself
            [&](std::size_t j) {
                count += j != i && boxes_.near(i, j, eps_);
                return count < least;
            });
        return count >= least;
    }

    // The boxes near one, without those that are visited.
    const std::vector<std::size_t> &unvisited(std::size_t i, const std::vector<char> &visited) {
        visit(
            i, [&] { near_.clear(); },
            [&](std::size_t j) {
                if (!visited[j] && boxes_.near(i, j, eps_)) near_.push_back(j);
                return true;
            });
        return near_;
    }

private:
    static constexpr std::size_t kIndexed = 1024;
    static constexpr float kRounding = 1e-5f;

    // Calls begin(), then take(j) of boxes that may be near until it returns false; perhaps again.
    template <typename Begin, typename Take>
    void visit(std::size_t i, const Begin &begin, const Take &take) {
        std::size_t looked = 0;
        begin();
        if (in_) {
            if (boxes_.alone(i)) return;
            const bool done = index_.visit(in_->boxes + 4 * static_cast<std::size_t>((*rows_)[i]),
                                           [&](std::int32_t j) {
                                               ++looked;
                                               return take(static_cast<std::size_t>(j));
                                           });
            patience_.spend(looked + 16);
            if (done) return;
            looked = 0;
            begin();
        }
        while (looked < boxes_.size() && take(looked)) ++looked;
        patience_.spend(looked);
    }

    Boxes boxes_;
    float eps_;
    Patience &patience_;
    BoxIndex index_;
    const Input *in_ = nullptr;
    const Rows *rows_ = nullptr;
    std::vector<std::size_t> near_;
};

struct Merge {
    float total = 0, best = 0, sum[4] = {0, 0, 0, 0};
    std::int32_t first = -1, members = 0;
};

}  // namespace

std::int32_t dbscan_labels(const Input &in, const Rows &rows, const ClassParams &p,
                           std::vector<std::int32_t> &labels, Patience &patience) {
    Neighbours boxes(in, rows, p.eps, patience);
    const std::size_t n = rows.size();
    labels.assign(n, -1);
    std::vector<char> visited(n, 0);
    std::int32_t next = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (visited[i]) continue;
        visited[i] = 1;
        if (!boxes.dense(i, p.min_boxes)) continue;
        labels[i] = next;
        for (std::size_t j : boxes.unvisited(i, visited)) {
            visited[j] = 1;  // consumed, with or without a label
            if (boxes.dense(j, p.min_boxes)) labels[j] = next;
        }
        ++next;
    }
    return next;
}

void dbscan_merge(const Input &in, const Rows &rows, const ClassParams &p, std::vector<Object> &out,
                  Trace *trace, Patience &patience) {
    std::vector<std::int32_t> labels;
    const std::int32_t count = dbscan_labels(in, rows, p, labels, patience);
    std::vector<Merge> merges(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (labels[i] < 0) continue;
        Merge &m = merges[static_cast<std::size_t>(labels[i])];
        const float *b = in.boxes + 4 * static_cast<std::size_t>(rows[i]);
        const float score = in.scores[rows[i]];
        m.total += score;
        m.best = std::max(m.best, score);
        for (int k = 0; k < 4; ++k) m.sum[k] += score * b[k];
        if (m.members++ == 0) m.first = rows[i];
    }
    std::vector<Reason> fate(merges.size(), kMerged);
    std::vector<std::int32_t> place(merges.size(), -1);
    for (std::size_t c = 0; c < merges.size(); ++c) {
        const Merge &m = merges[c];
        float box[4];
        for (int k = 0; k < 4; ++k) box[k] = m.sum[k] / m.total;
        // A total of 0 has no weighted mean (0/0 in the original): treated as too low a score.
        if (m.total < p.min_score || m.total == 0.0f) {
            fate[c] = kMinScore;
        } else if (std::sqrt(box[2] * box[3]) / static_cast<float>(m.members + 1) >
                   kMaxAreaToHitRatio) {
            fate[c] = kAreaToHitRatio;
        } else {
            place[c] = static_cast<std::int32_t>(out.size());
            out.push_back({{box[0], box[1], box[2], box[3]}, m.best, m.first, m.members});
        }
    }
    if (!trace) return;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto c = static_cast<std::size_t>(labels[i]);
        if (labels[i] < 0)
            trace->drop(rows[i], kNoise);
        else if (place[c] < 0)
            trace->drop(rows[i], fate[c]);
        else
            trace->object[rows[i]] = place[c];
    }
}

Rows dbscan_members(const Input &in, const Rows &rows, const ClassParams &p, Trace *trace,
                    Patience &patience) {
    std::vector<std::int32_t> labels;
    dbscan_labels(in, rows, p, labels, patience);
    Rows members;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (labels[i] >= 0)
            members.push_back(rows[i]);
        else if (trace)
            trace->drop(rows[i], kNoise);
    }
    return members;
}

}  // namespace headrace::cluster
