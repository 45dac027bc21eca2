// Scans over the raw outputs of detector heads.
#pragma once
#include <cstddef>
#include <cstdint>

namespace headrace::decode {

// A [candidates, classes] table of scores with any strides (in elements), one of which is 1.
struct ScoreTable {
    const float *data;
    std::ptrdiff_t candidates, classes;
    std::ptrdiff_t candidate_stride, class_stride;
    const float *objectness;  // one per candidate, or nullptr; scores are at most 1 then
    std::ptrdiff_t objectness_stride;
};

// Per-class lowest scores; a best class at or above `count` is dropped.
struct Thresholds {
    const float *data;
    std::ptrdiff_t count;
    float lowest;  // min of data: prunes before the class is known
};

struct Hits {
    std::int32_t *index;
    std::int32_t *class_id;
    float *score;
    std::ptrdiff_t count = 0;

    void add(std::ptrdiff_t candidate, std::ptrdiff_t class_index, float value) {
        index[count] = static_cast<std::int32_t>(candidate);
        class_id[count] = static_cast<std::int32_t>(class_index);
        score[count] = value;
        ++count;
    }
};

// The best class of each candidate (the lowest index among equals; NaN never wins), kept when its
// score (times objectness) reaches the threshold of that class. Candidates stay in order. An
// objectness below all thresholds, these above 0, rules its candidate out whatever its scores are.
// `simd` false takes the portable path; both give the same bits.
void best_class(const ScoreTable &table, const Thresholds &thresholds, Hits &hits, bool simd);

// n IEEE half floats to single; needs half_to_float_has_simd().
void half_to_float(const std::uint16_t *half, float *single, std::ptrdiff_t n);
bool half_to_float_has_simd();

// True when this machine runs the vector path.
bool best_class_has_simd();

}  // namespace headrace::decode
