// Which detection continues which target.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::track {

// A pair that may be one object.
struct Candidate {
    double score;
    std::int32_t target, detection;
};

// Takes the best pair that is left until none is; of equal ones the older target, then the first
// detection. Each pair taken is written into `of_detection` and `of_target`, which are -1 before.
void pair_greedily(std::vector<Candidate> pairs, std::vector<std::int32_t> &of_detection,
                   std::vector<std::int32_t> &of_target);

// Takes the pairs with the greatest sum of scores (Hungarian method); a pair that is no candidate
// is never taken.
void pair_globally(const std::vector<Candidate> &pairs, std::vector<std::int32_t> &of_detection,
                   std::vector<std::int32_t> &of_target);

}  // namespace headrace::track
