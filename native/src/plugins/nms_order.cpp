// Finding candidates and putting them in order.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "plugins/nms.h"

namespace headrace::plugins {
namespace {

constexpr std::size_t kPiece = 256;
constexpr std::size_t kFew = 512;      // so many are mostly enough to fill a hundred rows
constexpr std::size_t kSampled = 256;  // blocks of core::kScan scores that a threshold is judged by

// Whether score `i` is of a class to be looked at.
bool counts(std::size_t i, const Scores &all) {
    return all.background < 0 || i % all.classes != static_cast<std::size_t>(all.background);
}

// A threshold that about `limit` scores or somewhat more should reach, judged by blocks here and
// there; the least score that counts where few reach that.
float likely_threshold(const Scores &all, std::size_t limit) {
    thread_local std::vector<float> seen;
    seen.clear();
    const std::size_t blocks = all.total() / core::kScan, step = blocks / kSampled;
    if (step < 2 || limit >= all.total()) return all.least;
    for (std::size_t block = step / 2; block < blocks; block += step) {
        const std::size_t from = block * core::kScan;
        if (!core::any_at_least(all.values + from, all.least)) continue;
        for (std::size_t i = from; i < from + core::kScan; ++i)
            if (all.values[i] >= all.least && counts(i, all)) seen.push_back(all.values[i]);
    }
    const std::size_t rank = limit / step + limit / step / 4 + 12;  // too few would cost a pass
    if (seen.size() <= rank) return all.least;
    const auto nth = seen.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(seen.begin(), nth, seen.end(), std::greater<>());
    return *nth;
}

// The best `limit` scores, in no order; returns whether there may be more. Whenever twice as many
// are listed the worse half goes, and from then on only what beats the worst that stays is listed:
// a flood of candidates costs one pass.
bool candidates_of(const Scores &all, std::size_t limit, std::vector<Candidate> &list) {
    float threshold = likely_threshold(all, limit);
    bool more = threshold > all.least;
    list.clear();
    Candidate worst{-std::numeric_limits<float>::infinity(),
                    std::numeric_limits<std::uint32_t>::max()};
    auto shorten = [&] {
        const auto last = list.begin() + static_cast<std::ptrdiff_t>(limit) - 1;
        std::nth_element(list.begin(), last, list.end(), kBefore);
        worst = *last;
        // in the order of boxes an equal score that is still to come goes behind
        threshold = all.by_class ? worst.score : above(worst.score);
        list.resize(limit);
        more = true;
    };
    auto take = [&](std::size_t i) {
        if (!(all.values[i] >= threshold) || !counts(i, all)) return;
        const Candidate candidate{all.values[i], all.place(i)};
        if (!kBefore(candidate, worst)) return;
        list.push_back(candidate);
        if (list.size() >= 2 * limit) shorten();
    };
    auto scan = [&] {
        std::size_t i = 0;
        for (; i + core::kScan <= all.total(); i += core::kScan)
            if (core::any_at_least(all.values + i, threshold))
                for (std::size_t j = i; j < i + core::kScan; ++j) take(j);
        for (; i < all.total(); ++i) take(i);
    };
    scan();
    if (more && list.size() < limit) {  // the guess was too high
        list.clear();
        threshold = all.least;
        more = false;
        scan();
    }
    if (list.size() > limit) shorten();
    return more;
}

}  // namespace

float above(float score) {
    constexpr float kMost = std::numeric_limits<float>::infinity();
    return score == kMost ? std::numeric_limits<float>::quiet_NaN() : std::nextafter(score, kMost);
}

void Ordered::sort_piece() {
    const auto from = list_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    sorted_ = std::min(list_.size(), sorted_ + std::max(kPiece, sorted_));
    const auto to = list_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    if (to != list_.end()) std::nth_element(from, to, list_.end(), kBefore);
    std::sort(from, to, kBefore);
}

void Ordered::restart(std::size_t at) {
    sorted_ = 0;
    while (sorted_ < at) sort_piece();
    at_ = at;
}

Best::Best(const Scores &scores, std::int32_t rows, std::size_t most, std::vector<Candidate> &list)
    : scores_(scores), list_(list), ordered_(list), most_(std::min(most, scores.total())) {
    limit_ = std::min(most_, std::max(kFew, 4 * static_cast<std::size_t>(std::max(rows, 0))));
    more_ = candidates_of(scores_, limit_, list_);
}

const Candidate *Best::next() {
    const Candidate *found = ordered_.next();
    if (found || !more_ || limit_ == most_) return found;
    candidates_of(scores_, most_, list_);
    ordered_.restart(limit_);
    limit_ = most_;
    return ordered_.next();
}

}  // namespace headrace::plugins
