// Boxes by place and size: finds those that may overlap another enough, without looking at all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/suppression.h"

namespace headrace::cluster {

// Leaves out only pairs whose IoU, as binary32 rounds it, is certainly no higher than the least
// that matters; what it gives is compared as ever, so that results stay the same bits. Boxes
// that this cannot be proven of (not finite, edges reversed, so small that their edges round) are
// given for every other box, and to them every box is given.
class BoxIndex {
public:
    // IoUs of at most `least` do not matter; it is 0 or above.
    explicit BoxIndex(float least) : least_(least) {}

    std::size_t size() const { return next_.size(); }

    // `box`: left, top, width, height; boxes are numbered in the order they are added.
    void add(const float *box);

    // A box that no other matters to.
    void add_alone() {
        next_.push_back(-1);
        cells_.push_back(0);
    }

    // Calls take(number) of all boxes that may matter, in any order, each once, until it returns
    // false. Gives up, and returns false, where a look at all boxes costs no more.
    template <typename Take>
    bool visit(const float *box, const Take &take) const {
        Place place;
        const Kind kind = placed(box, place);
        if (kind == Kind::kOdd) return false;
        for (std::int32_t i : odd_)
            if (!take(i)) return true;
        if (kind == Kind::kFlat || heads_.empty()) return true;
        std::size_t cost = odd_.size();
        for (std::size_t l = 0; l < levels_.size(); ++l) {
            ++cost;
            if (!can_match(place, levels_[l])) continue;
            std::int64_t first[2], last[2];
            if (!cells_of(place, levels_[l], first, last)) return false;
            cost += static_cast<std::size_t>((last[0] - first[0] + 1) * (last[1] - first[1] + 1)) *
                    kCellCost;
            if (cost > size()) return false;
            for (std::int64_t x = first[0]; x <= last[0]; ++x)
                for (std::int64_t y = first[1]; y <= last[1]; ++y) {
                    const std::uint64_t cell = cell_of(l, x, y);
                    for (std::int32_t i = heads_[slot(cell)]; i >= 0;
                         i = next_[static_cast<std::size_t>(i)]) {
                        cost += kBoxCost;
                        if (cells_[static_cast<std::size_t>(i)] == cell && !take(i)) return true;
                    }
                    if (cost > size()) return false;
                }
        }
        return true;
    }

private:
    // In boxes that a look at all of them compares meanwhile.
    static constexpr std::size_t kCellCost = 16, kBoxCost = 4;
    static constexpr std::int64_t kBias = 1 << 24;

    // Widths from 2^x to 2^(x + 1), heights from 2^y to 2^(y + 1).
    struct Level {
        int x, y;
    };
    struct Place {
        float size[2], start[2], end[2];
    };
    enum class Kind { kPlain, kFlat, kOdd };

    static std::uint64_t cell_of(std::uint64_t level, std::int64_t x, std::int64_t y) {
        return level << 50 | static_cast<std::uint64_t>(x + kBias) << 25 |
               static_cast<std::uint64_t>(y + kBias);
    }
    static Kind placed(const float *box, Place &place);
    bool can_match(const Place &place, const Level &level) const;
    bool cells_of(const Place &place, const Level &level, std::int64_t *first,
                  std::int64_t *last) const;
    std::size_t slot(std::uint64_t cell) const {
        return (cell * 0x9E3779B97F4A7C15u >> 20) & (heads_.size() - 1);
    }
    void link(std::int32_t box);

    float least_;
    std::vector<Level> levels_;
    std::unordered_map<std::uint64_t, std::int32_t> level_of_;
    std::vector<std::int32_t> heads_;   // of chains through next_, by the hash of a cell
    std::vector<std::int32_t> next_;    // of each box, -1 at the end
    std::vector<std::uint64_t> cells_;  // of each box
    std::vector<std::int32_t> odd_;
};

}  // namespace headrace::cluster
