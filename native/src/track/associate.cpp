#include "track/associate.h"

#include <algorithm>
#include <limits>

namespace headrace::track {

void pair_greedily(std::vector<Candidate> pairs, std::vector<std::int32_t> &of_detection,
                   std::vector<std::int32_t> &of_target) {
    std::sort(pairs.begin(), pairs.end(), [](const Candidate &a, const Candidate &b) {
        if (a.score != b.score) return a.score > b.score;
        if (a.target != b.target) return a.target < b.target;
        return a.detection < b.detection;
    });
    for (const Candidate &pair : pairs) {
        auto &target = of_detection[static_cast<std::size_t>(pair.detection)];
        auto &detection = of_target[static_cast<std::size_t>(pair.target)];
        if (target >= 0 || detection >= 0) continue;
        target = pair.target;
        detection = pair.detection;
    }
}

namespace {

// Numbers rows or columns that occur, from 0.
class Numbering {
public:
    explicit Numbering(std::size_t size) : place_(size, -1) {}
    std::size_t of(std::int32_t i) {
        auto &place = place_[static_cast<std::size_t>(i)];
        if (place < 0) {
            place = static_cast<std::int32_t>(members_.size());
            members_.push_back(i);
        }
        return static_cast<std::size_t>(place);
    }
    const std::vector<std::int32_t> &members() const { return members_; }

private:
    std::vector<std::int32_t> place_, members_;
};

}  // namespace

// Shortest augmenting paths with potentials, a row at a time. A pair that is no candidate costs 0
// and is dropped, candidates cost less.
void pair_globally(const std::vector<Candidate> &pairs, std::vector<std::int32_t> &of_detection,
                   std::vector<std::int32_t> &of_target) {
    Numbering rows(of_target.size()), columns(of_detection.size());
    for (const Candidate &pair : pairs) {
        rows.of(pair.target);
        columns.of(pair.detection);
    }
    const std::size_t n = rows.members().size();
    const std::size_t m = std::max(columns.members().size(), n);
    constexpr double kAllowed = 1e-9;  // a candidate of score 0 is better than none
    std::vector<double> cost(n * m, 0.0);
    for (const Candidate &pair : pairs)
        cost[rows.of(pair.target) * m + columns.of(pair.detection)] =
            -std::max(pair.score, 0.0) - kAllowed;
    constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
    std::vector<double> of_row(n, 0.0), of_column(m, 0.0);
    std::vector<std::size_t> row_of(m, kNone);
    for (std::size_t first = 0; first < n; ++first) {
        std::vector<double> least(m, std::numeric_limits<double>::infinity());
        std::vector<std::size_t> before(m, kNone);
        std::vector<bool> done(m, false);
        std::size_t row = first, column = kNone;
        do {
            if (column != kNone) done[column] = true;
            double step = std::numeric_limits<double>::infinity();
            std::size_t next = kNone;
            for (std::size_t j = 0; j < m; ++j) {
                if (done[j]) continue;
                const double reduced = cost[row * m + j] - of_row[row] - of_column[j];
                if (reduced < least[j]) {
                    least[j] = reduced;
                    before[j] = column;
                }
                if (least[j] < step) {
                    step = least[j];
                    next = j;
                }
            }
            of_row[first] += step;
            for (std::size_t j = 0; j < m; ++j) {
                if (done[j]) {
                    of_row[row_of[j]] += step;
                    of_column[j] -= step;
                } else {
                    least[j] -= step;
                }
            }
            column = next;
            row = row_of[column];
        } while (row != kNone);
        for (std::size_t j = column; j != kNone;) {
            const std::size_t from = before[j];
            row_of[j] = from == kNone ? first : row_of[from];
            j = from;
        }
    }
    for (std::size_t j = 0; j < columns.members().size(); ++j) {
        if (row_of[j] == kNone || !(cost[row_of[j] * m + j] < 0)) continue;
        const auto target = rows.members()[row_of[j]], detection = columns.members()[j];
        of_detection[static_cast<std::size_t>(detection)] = target;
        of_target[static_cast<std::size_t>(target)] = detection;
    }
}

}  // namespace headrace::track
