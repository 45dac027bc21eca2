// Best class and threshold in one pass over a score table; see decode.h for the contract.
#include "decode/scores.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "core/floats.h"
#include "core/unlocked.h"
#include "module.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace nb = nanobind;

namespace headrace::decode {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();
// Columns taken together in a class-major table: the running best stays in the first-level cache
// while the rows stream by in runs long enough for the prefetcher.
constexpr std::ptrdiff_t kBlock = 1024;
constexpr std::ptrdiff_t kRows = 8;         // classes compared per visit of the running best
constexpr std::ptrdiff_t kAhead = 12;       // candidates that are fetched before they are looked at
constexpr std::ptrdiff_t kGateAhead = 128;  // candidates whose objectness is fetched ahead
constexpr std::ptrdiff_t kGated = 256;  // candidates whose objectness is read before their scores
constexpr std::ptrdiff_t kRowAhead = 2048;  // scores of a row that are fetched ahead
constexpr std::ptrdiff_t kLookUps =
    48;  // of classes in a block that a pass over it costs as much as

struct Block {
    alignas(32) std::array<float, kBlock> best;
    alignas(32) std::array<std::int32_t, kBlock> class_id;
};

float weighted(const ScoreTable &table, std::ptrdiff_t candidate, float score) {
    return table.objectness ? table.objectness[candidate * table.objectness_stride] * score : score;
}

// Scores are at most 1, so a low objectness rules a candidate out before they are read.
bool ruled_out(const ScoreTable &table, std::ptrdiff_t candidate, float lowest) {
    return table.objectness && lowest > 0 &&
           !(table.objectness[candidate * table.objectness_stride] >= lowest);
}

void update_generic(const float *row, std::ptrdiff_t stride, std::ptrdiff_t first,
                    std::ptrdiff_t classes, std::ptrdiff_t from, std::ptrdiff_t n, Block &block) {
    for (std::ptrdiff_t c = 0; c < classes; ++c, row += stride)
        for (std::ptrdiff_t i = from; i < n; ++i) {
            const bool better = row[i] > block.best[i];
            block.best[i] = better ? row[i] : block.best[i];
            block.class_id[i] = better ? static_cast<std::int32_t>(first + c) : block.class_id[i];
        }
}

// The same without the classes: a quarter of the work.
void raise_generic(const float *row, std::ptrdiff_t stride, std::ptrdiff_t classes,
                   std::ptrdiff_t from, std::ptrdiff_t n, Block &block) {
    for (std::ptrdiff_t c = 0; c < classes; ++c, row += stride)
        for (std::ptrdiff_t i = from; i < n; ++i)
            block.best[i] = row[i] > block.best[i] ? row[i] : block.best[i];
}

float row_max_generic(const float *row, std::ptrdiff_t n) {
    float best = kNone;
    for (std::ptrdiff_t i = 0; i < n; ++i) best = row[i] > best ? row[i] : best;
    return best;
}

#if defined(HEADRACE_VECTOR)
using core::Floats, core::Ints, core::kLanes;

HEADRACE_VECTOR void update_vectors(const float *row, std::ptrdiff_t stride, std::ptrdiff_t first,
                                    std::ptrdiff_t classes, std::ptrdiff_t n, Block &block) {
    const std::ptrdiff_t whole = n - n % kLanes;
    for (std::ptrdiff_t i = 0; i < whole; i += kLanes) {
        Floats best = core::load(&block.best[i]);
        Ints id = core::load(&block.class_id[i]);
        const float *p = row + i;
        for (std::ptrdiff_t c = 0; c < classes; ++c, p += stride) {
            const Floats v = core::load(p);
            const auto better = core::above(v, best);
            best = core::higher(v, best);
            id = core::chosen(better, core::repeated(static_cast<std::int32_t>(first + c)), id);
        }
        core::store(&block.best[i], best);
        core::store(&block.class_id[i], id);
    }
    update_generic(row, stride, first, classes, whole, n, block);
}

HEADRACE_VECTOR void raise_vectors(const float *row, std::ptrdiff_t stride, std::ptrdiff_t classes,
                                   std::ptrdiff_t n, Block &block) {
    const std::ptrdiff_t whole = n - n % kLanes;
    for (std::ptrdiff_t i = 0; i < whole; i += kLanes) {
        Floats best = core::load(&block.best[i]);
        const float *p = row + i;
        for (std::ptrdiff_t c = 0; c < classes; ++c, p += stride)
            best = core::higher(core::load(p), best);
        core::store(&block.best[i], best);
    }
    raise_generic(row, stride, classes, whole, n, block);
}

HEADRACE_VECTOR float row_max_vectors(const float *row, std::ptrdiff_t n) {
    Floats a = core::repeated(kNone), b = a;
    std::ptrdiff_t i = 0;
    for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
        a = core::higher(core::load(row + i), a);
        b = core::higher(core::load(row + i + kLanes), b);
    }
    for (; i + kLanes <= n; i += kLanes) a = core::higher(core::load(row + i), a);
    float best = core::highest(core::higher(a, b));
    for (; i < n; ++i) best = row[i] > best ? row[i] : best;
    return best;
}
#endif

// Visits the rows of a block, `kRows` at a time.
template <typename Visit>
void by_rows(const ScoreTable &t, std::ptrdiff_t start, Visit visit) {
    for (std::ptrdiff_t c = 0; c < t.classes; c += kRows)
        visit(t.data + c * t.class_stride + start, c, std::min(kRows, t.classes - c));
}

void best_scores(const ScoreTable &t, std::ptrdiff_t start, std::ptrdiff_t n, Block &block,
                 [[maybe_unused]] bool simd) {
    std::fill_n(block.best.begin(), n, kNone);
    by_rows(t, start, [&](const float *row, std::ptrdiff_t, std::ptrdiff_t rows) {
#if defined(HEADRACE_VECTOR)
        if (simd) return raise_vectors(row, t.class_stride, rows, n, block);
#endif
        raise_generic(row, t.class_stride, rows, 0, n, block);
    });
}

void best_classes(const ScoreTable &t, std::ptrdiff_t start, std::ptrdiff_t n, Block &block,
                  [[maybe_unused]] bool simd) {
    std::fill_n(block.best.begin(), n, kNone);
    std::fill_n(block.class_id.begin(), n, 0);
    by_rows(t, start, [&](const float *row, std::ptrdiff_t c, std::ptrdiff_t rows) {
#if defined(HEADRACE_VECTOR)
        if (simd) return update_vectors(row, t.class_stride, c, rows, n, block);
#endif
        update_generic(row, t.class_stride, c, rows, 0, n, block);
    });
}

// The first class with the best score; 0 where nothing is above minus infinity.
std::int32_t class_of(const ScoreTable &t, std::ptrdiff_t candidate, float best) {
    if (best == kNone) return 0;
    const float *p = t.data + candidate;
    std::int32_t c = 0;
    for (; *p != best; p += t.class_stride) ++c;
    return c;
}

#if defined(HEADRACE_VECTOR)
// The best score of each candidate among those that reach the lowest threshold, and its class.
class Reaching {
public:
    explicit Reaching(std::ptrdiff_t candidates)
        : best_(candidates), class_(candidates), seen_((candidates + 63) / 64) {}

    void add(std::ptrdiff_t i, std::ptrdiff_t c, float score) {
        const std::uint64_t bit = std::uint64_t{1} << (i & 63);
        if ((seen_[i >> 6] & bit) && !(score > best_[i])) return;
        seen_[i >> 6] |= bit;
        best_[i] = score;
        class_[i] = static_cast<std::int32_t>(c);
    }

    void give(const Thresholds &thresholds, Hits &hits) const {
        for (std::size_t word = 0; word < seen_.size(); ++word)
            for (std::uint64_t bits = seen_[word]; bits; bits &= bits - 1) {
                const auto i = static_cast<std::ptrdiff_t>(64 * word) + __builtin_ctzll(bits);
                const std::int32_t k = class_[i];
                if (k < thresholds.count && best_[i] >= thresholds.data[k])
                    hits.add(i, k, best_[i]);
            }
    }

private:
    std::vector<float> best_;
    std::vector<std::int32_t> class_;
    std::vector<std::uint64_t> seen_;
};

HEADRACE_VECTOR std::ptrdiff_t keep_reaching(const float *row, std::ptrdiff_t n, float lowest,
                                             std::ptrdiff_t c, Reaching &kept) {
    constexpr std::ptrdiff_t kTogether = 32, kVectors = kTogether / kLanes;
    const Floats least = core::repeated(lowest);
    std::ptrdiff_t count = 0, i = 0;
    for (; i + kTogether <= n; i += kTogether) {
        const float *p = row + i;
        __builtin_prefetch(p + kRowAhead);
        __builtin_prefetch(p + kRowAhead + 16);
        core::Mask reach[kVectors];
        for (std::ptrdiff_t k = 0; k < kVectors; ++k)
            reach[k] = core::reaches(core::load(p + kLanes * k), least);
        core::Mask some = reach[0];
        for (std::ptrdiff_t k = 1; k < kVectors; ++k) some = core::either(some, reach[k]);
        if (!core::any(some)) continue;
        for (std::ptrdiff_t k = 0; k < kVectors; ++k)
            for (unsigned bits = core::bits(reach[k]); bits; bits &= bits - 1, ++count) {
                const std::ptrdiff_t at = kLanes * k + __builtin_ctz(bits);
                kept.add(i + at, c, p[at]);
            }
    }
    for (; i < n; ++i)
        if (row[i] >= lowest) kept.add(i, c, row[i]), ++count;
    return count;
}

// One pass in the order of memory, which comes twice as fast as blocks across the rows: most scores
// are below every threshold. False, and nothing is added, where too many are not.
bool scan_rows(const ScoreTable &t, const Thresholds &thresholds, Hits &hits) {
    Reaching kept(t.candidates);
    std::ptrdiff_t count = 0;
    for (std::ptrdiff_t c = 0; c < t.classes; ++c) {
        count +=
            keep_reaching(t.data + c * t.class_stride, t.candidates, thresholds.lowest, c, kept);
        if (count > t.candidates / 2) return false;
    }
    kept.give(thresholds, hits);
    return true;
}
#endif

// Few candidates reach a threshold: the classes are looked up for these, or, where they are many,
// found for the whole block in a second pass.
void scan_class_major(const ScoreTable &t, const Thresholds &thresholds, Hits &hits, bool simd) {
#if defined(HEADRACE_VECTOR)
    if (simd && !t.objectness && thresholds.lowest > 0 && scan_rows(t, thresholds, hits)) return;
#endif
    Block block;
    for (std::ptrdiff_t start = 0; start < t.candidates; start += kBlock) {
        const std::ptrdiff_t n = std::min(kBlock, t.candidates - start);
        best_scores(t, start, n, block, simd);
        std::ptrdiff_t reach = 0;
        for (std::ptrdiff_t i = 0; i < n; ++i)
            reach += weighted(t, start + i, block.best[i]) >= thresholds.lowest;
        if (!reach) continue;
        const bool all = reach > kLookUps;
        if (all) best_classes(t, start, n, block, simd);
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            const float score = weighted(t, start + i, block.best[i]);
            if (!(score >= thresholds.lowest) || ruled_out(t, start + i, thresholds.lowest))
                continue;
            const std::int32_t k = all ? block.class_id[i] : class_of(t, start + i, block.best[i]);
            if (k < thresholds.count && score >= thresholds.data[k]) hits.add(start + i, k, score);
        }
    }
}

// Outputs of a batch come from far away. Scattered ones go to the second-level cache, which fetches
// more at once than the first: half the time for a column of objectness.
void fetch_scattered([[maybe_unused]] const float *from, [[maybe_unused]] std::ptrdiff_t n) {
#if defined(__GNUC__)
    for (std::ptrdiff_t k = 0; k < n; k += 16) __builtin_prefetch(from + k, 0, 2);
#endif
}

void fetch_next([[maybe_unused]] const float *from, [[maybe_unused]] std::ptrdiff_t n) {
#if defined(__GNUC__)
    for (std::ptrdiff_t k = 0; k < n; k += 32) __builtin_prefetch(from + k);
#endif
}

// Lists the candidates [from, to) that their objectness does not rule out; returns how many.
std::ptrdiff_t list_open(const ScoreTable &t, float lowest, std::ptrdiff_t from, std::ptrdiff_t to,
                         std::int32_t *open) {
    std::ptrdiff_t count = 0;
    for (std::ptrdiff_t i = from; i < to; ++i) {
        fetch_scattered(t.objectness + (i + kGateAhead) * t.objectness_stride, 1);
        open[count] = static_cast<std::int32_t>(i);
        count += !ruled_out(t, i, lowest);
    }
    return count;
}

void scan_candidate_major(const ScoreTable &t, const Thresholds &thresholds, Hits &hits,
                          [[maybe_unused]] bool simd) {
    const auto row_of = [&](std::ptrdiff_t i) { return t.data + i * t.candidate_stride; };
    const auto look = [&](std::ptrdiff_t i) {
        const float *row = row_of(i);
#if defined(HEADRACE_VECTOR)
        const float best = simd ? row_max_vectors(row, t.classes) : row_max_generic(row, t.classes);
#else
        const float best = row_max_generic(row, t.classes);
#endif
        if (!(weighted(t, i, best) >= thresholds.lowest)) return;
        // Nothing above minus infinity (NaN only, say) leaves class 0, as the running best does.
        const std::ptrdiff_t k = best == kNone ? 0 : std::find(row, row + t.classes, best) - row;
        const float score = weighted(t, i, best == kNone ? kNone : row[k]);
        if (k < thresholds.count && score >= thresholds.data[k]) hits.add(i, k, score);
    };
    bool few = t.objectness && thresholds.lowest > 0;  // are open in the part before
    for (std::ptrdiff_t start = 0; start < t.candidates; start += kGated) {
        const std::ptrdiff_t end = std::min(start + kGated, t.candidates);
        if (few) {                                    // their rows are fetched together
            std::int32_t *open = hits.index + start;  // a hit takes its own place, or one before
            const std::ptrdiff_t count = list_open(t, thresholds.lowest, start, end, open);
            for (std::ptrdiff_t k = 0; k < count; ++k) fetch_scattered(row_of(open[k]), t.classes);
            for (std::ptrdiff_t k = 0; k < count; ++k) look(open[k]);
            few = 4 * count < end - start;
            continue;
        }
        std::ptrdiff_t count = 0;
        for (std::ptrdiff_t i = start; i < end; ++i) {
            if (!t.objectness) fetch_next(row_of(i + kAhead), t.classes);
            if (ruled_out(t, i, thresholds.lowest)) continue;
            look(i);
            ++count;
        }
        few = 4 * count < end - start;
    }
}

}  // namespace

bool best_class_has_simd() { return core::has_vectors(); }

bool half_to_float_has_simd() {
#if defined(__x86_64__)
    // GCC before 11 does not know the name f16c.
    static const bool has = [] {
        unsigned a = 0, b = 0, c = 0, d = 0;
        return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    }();
    return has;
#else
    return core::has_vectors();
#endif
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) void half_to_float(const std::uint16_t *half, float *single,
                                                       std::ptrdiff_t n) {
    std::ptrdiff_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i *>(half + i));
        _mm256_storeu_ps(single + i, _mm256_cvtph_ps(eight));
    }
    for (; i < n; ++i) single[i] = _cvtsh_ss(half[i]);
}
#elif defined(__aarch64__)
void half_to_float(const std::uint16_t *half, float *single, std::ptrdiff_t n) {
    const auto four = [](uint16x4_t bits) { return vcvt_f32_f16(vreinterpret_f16_u16(bits)); };
    std::ptrdiff_t i = 0;
    for (; i + 4 <= n; i += 4) vst1q_f32(single + i, four(vld1_u16(half + i)));
    for (; i < n; ++i) single[i] = vgetq_lane_f32(four(vdup_n_u16(half[i])), 0);
}
#else
void half_to_float(const std::uint16_t *, float *, std::ptrdiff_t) {}
#endif

void best_class(const ScoreTable &table, const Thresholds &thresholds, Hits &hits, bool simd) {
    simd = simd && best_class_has_simd();
    if (table.class_stride == 1)
        scan_candidate_major(table, thresholds, hits, simd);
    else
        scan_class_major(table, thresholds, hits, simd);
}

namespace {

using Scores = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;
using Line = nb::ndarray<const float, nb::ndim<1>, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::ptrdiff_t fill_hits(const Scores &scores, const Line &objectness, const Line &thresholds,
                         const Out<std::int32_t> &index, const Out<std::int32_t> &class_id,
                         const Out<float> &score, bool simd) {
    ScoreTable table{scores.data(),
                     static_cast<std::ptrdiff_t>(scores.shape(0)),
                     static_cast<std::ptrdiff_t>(scores.shape(1)),
                     static_cast<std::ptrdiff_t>(scores.stride(0)),
                     static_cast<std::ptrdiff_t>(scores.stride(1)),
                     objectness.shape(0) ? objectness.data() : nullptr,
                     objectness.shape(0) ? static_cast<std::ptrdiff_t>(objectness.stride(0)) : 0};
    Thresholds limits{thresholds.data(), static_cast<std::ptrdiff_t>(thresholds.shape(0)),
                      std::numeric_limits<float>::infinity()};
    for (std::ptrdiff_t i = 0; i < limits.count; ++i)
        limits.lowest = std::min(limits.lowest, limits.data[i]);
    for (const std::size_t room : {index.shape(0), class_id.shape(0), score.shape(0)})
        if (room < scores.shape(0)) throw nb::value_error("hits: no room for every candidate");
    Hits hits{index.data(), class_id.data(), score.data()};
    {
        core::Unlocked release;
        best_class(table, limits, hits, simd);
    }
    return hits.count;
}

bool fill_singles(const Out<const std::uint16_t> &half, const Out<float> &single) {
    if (!half_to_float_has_simd()) return false;
    core::Unlocked release;
    half_to_float(half.data(), single.data(), static_cast<std::ptrdiff_t>(half.shape(0)));
    return true;
}

}  // namespace

void bind_scores(nb::module_ &m) {
    m.def("best_class", &fill_hits, nb::arg("scores"), nb::arg("objectness"), nb::arg("thresholds"),
          nb::arg("index"), nb::arg("class_id"), nb::arg("score"), nb::arg("simd") = true,
          "Best class of each row of (candidates, classes) scores and the threshold of that class; "
          "fills the three arrays (room for every candidate), returns how many hits there are.");
    m.def("best_class_has_simd", &best_class_has_simd,
          "Whether this machine runs the vector path of best_class.");
    m.def("half_to_float", &fill_singles, nb::arg("half"), nb::arg("single"),
          "IEEE halves (as uint16) to float32; False, and nothing written, where the machine has "
          "no instruction for it.");
}

}  // namespace headrace::decode
