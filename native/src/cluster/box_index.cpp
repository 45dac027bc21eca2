// A hash of cells for each scale of boxes: cells of a scale are as large as its smallest boxes.
#include "cluster/box_index.h"

#include <algorithm>
#include <cmath>

namespace headrace::cluster {
namespace {

constexpr float kLargest = 1e15f, kSmallest = 1e-15f;  // areas neither overflow nor vanish
constexpr float kRounding = 1e-3f;                     // of a width by the rounding of its edge
constexpr double kMargin = 1.05;                       // what that can add to an IoU, and more
constexpr std::size_t kLeastHeads = 4096;              // a power of two
constexpr double kLow = -1e9, kMostCells = 1e5;

std::int64_t step(double v, int exponent) {
    return static_cast<std::int64_t>(std::floor(std::ldexp(v, -exponent)));
}

}  // namespace

BoxIndex::Kind BoxIndex::placed(const float *box, Place &place) {
    bool flat = false;
    for (int k = 0; k < 2; ++k) {
        const float start = box[k], size = box[k + 2], end = start + size;
        if (!(std::abs(start) <= kLargest && size >= 0.0f && size <= kLargest)) return Kind::kOdd;
        place.start[k] = start;
        place.end[k] = end;
        place.size[k] = size;
        if (end == start)
            flat = true;
        else if (size < kSmallest || std::abs((end - start) - size) > kRounding * size ||
                 std::abs(start) >= 0.5f * static_cast<float>(kBias) * size)
            return Kind::kOdd;
    }
    return flat ? Kind::kFlat : Kind::kPlain;
}

void BoxIndex::link(std::int32_t box) {
    const auto i = static_cast<std::size_t>(box);
    std::int32_t &head = heads_[slot(cells_[i])];
    next_[i] = head;
    head = box;
}

void BoxIndex::add(const float *box) {
    const auto number = static_cast<std::int32_t>(next_.size());
    next_.push_back(-1);
    cells_.push_back(0);
    Place place;
    const Kind kind = placed(box, place);
    if (kind == Kind::kOdd) odd_.push_back(number);
    if (kind != Kind::kPlain) return;  // a flat one shares no area with any but odd ones
    const Level level{std::ilogb(place.size[0]), std::ilogb(place.size[1])};
    const auto name =
        static_cast<std::uint64_t>(level.x + 64) << 8 | static_cast<std::uint64_t>(level.y + 64);
    const auto entry = level_of_.emplace(name, static_cast<std::int32_t>(levels_.size()));
    if (entry.second) levels_.push_back(level);
    cells_.back() = cell_of(static_cast<std::uint64_t>(entry.first->second),
                            step(place.start[0], level.x), step(place.start[1], level.y));
    if (next_.size() <= heads_.size()) {
        link(number);
        return;
    }
    heads_.assign(std::max(kLeastHeads, 4 * heads_.size()), -1);
    std::size_t odd = 0;
    for (std::int32_t i = 0; i <= number; ++i) {
        if (odd < odd_.size() && odd_[odd] == i)
            ++odd;
        else if (cells_[static_cast<std::size_t>(i)])  // kBias: no cell is 0
            link(i);
    }
}

bool BoxIndex::can_match(const Place &place, const Level &level) const {
    const int exponents[2] = {level.x, level.y};
    for (int k = 0; k < 2; ++k) {
        // An IoU is no higher than the ratio of the widths, nor of the heights.
        const double low = std::ldexp(1.0, exponents[k]), size = place.size[k];
        const double ratio = size < low ? size / low : size > 2 * low ? 2 * low / size : 1;
        if (ratio * kMargin < static_cast<double>(least_)) return false;
    }
    return true;
}

// The cells where boxes of a level start that reach into a place; false if these are too many.
bool BoxIndex::cells_of(const Place &place, const Level &level, std::int64_t *first,
                        std::int64_t *last) const {
    const int exponents[2] = {level.x, level.y};
    for (int k = 0; k < 2; ++k) {
        // Such boxes are narrower than two cells, and their edges round by less than 1/100. An IoU
        // is no higher than the share of the wider box that both have.
        const double cell = std::ldexp(1.0, exponents[k]);
        const double shared = static_cast<double>(least_) / kMargin * place.size[k];
        const double low = std::floor((place.start[k] + shared) / cell - 2.02);
        const double high = std::floor((place.end[k] - shared) / cell);
        if (high - low > kMostCells) return false;
        first[k] = std::max(static_cast<std::int64_t>(std::max(low, kLow)), -kBias + 1);
        last[k] = std::min(static_cast<std::int64_t>(std::min(high, -kLow)), kBias - 1);
    }
    return true;
}

}  // namespace headrace::cluster
