// Regions of interest. The mean of samples on a grid is a weighted sum of rows, then of columns.
#include <algorithm>
#include <cmath>
#include <vector>

#include "plugins/sample.h"

namespace headrace::plugins {
namespace {

// Where one sample falls on an axis: two neighbours and the weight of the second.
struct Place {
    std::size_t low, high;
    float fraction;
    bool valid;
};

Place place_at(float at, std::size_t size, Outside outside) {
    const float last = static_cast<float>(size) - 1.0f;
    bool valid = at == at && size > 0;
    if (outside == kZero) valid = valid && at >= 0.0f && at <= last;
    if (outside == kZeroFar) valid = valid && at >= -1.0f && at <= last + 1.0f;
    if (!valid) return {0, 0, 0.0f, false};
    at = std::min(std::max(at, 0.0f), last);
    const auto low = static_cast<std::size_t>(at);
    return {low, std::min(low + 1, size - 1), at - static_cast<float>(low), true};
}

float position(const Axis &axis, std::size_t bin, std::int32_t k, float offset) {
    return axis.start + axis.step * static_cast<float>(bin) +
           axis.step * (static_cast<float>(k) + offset) / static_cast<float>(axis.count);
}

// The weights of one bin: of `weights.size()` places from `first` on.
struct Bin {
    std::size_t first = 0;
    std::vector<float> weights;
};

std::vector<Bin> bins_of(const Axis &axis, std::size_t bins, std::size_t size,
                         const RoiRule &rule) {
    std::vector<Bin> result(bins);
    std::vector<Place> places;
    for (std::size_t i = 0; i < bins; ++i) {
        std::size_t first = size, end = 0;
        places.clear();
        for (std::int32_t k = 0; k < axis.count; ++k) {
            const Place place = place_at(position(axis, i, k, rule.offset), size, rule.outside);
            if (!place.valid) continue;
            first = std::min(first, place.low);
            end = std::max(end, place.high + 1);
            places.push_back(place);
        }
        if (places.empty()) continue;
        result[i].first = first;
        result[i].weights.assign(end - first, 0.0f);
        for (const Place &place : places) {
            result[i].weights[place.low - first] += 1.0f - place.fraction;
            result[i].weights[place.high - first] += place.fraction;
        }
        for (float &weight : result[i].weights) weight /= static_cast<float>(axis.count);
    }
    return result;
}

void mean(const Map &map, const float *image, const Axis &y, const Axis &x, std::size_t bins_y,
          std::size_t bins_x, const RoiRule &rule, float *out) {
    const std::vector<Bin> rows = bins_of(y, bins_y, map.height, rule);
    const std::vector<Bin> columns = bins_of(x, bins_x, map.width, rule);
    std::size_t first = map.width, end = 0;
    for (const Bin &bin : columns) {
        if (bin.weights.empty()) continue;
        first = std::min(first, bin.first);
        end = std::max(end, bin.first + bin.weights.size());
    }
    std::vector<float> line(map.width);
    for (std::size_t c = 0; c < map.channels; ++c) {
        const float *plane = image + c * map.height * map.width;
        for (const Bin &row : rows) {
            std::fill(line.begin(), line.end(), 0.0f);
            for (std::size_t r = 0; r < row.weights.size(); ++r) {
                const float weight = row.weights[r];
                const float *source = plane + (row.first + r) * map.width;
                for (std::size_t i = first; i < end; ++i) line[i] += weight * source[i];
            }
            for (const Bin &column : columns) {
                float sum = 0.0f;
                for (std::size_t i = 0; i < column.weights.size(); ++i)
                    sum += column.weights[i] * line[column.first + i];
                *out++ = sum;
            }
        }
    }
}

void largest(const Map &map, const float *image, const Axis &y, const Axis &x, std::size_t bins_y,
             std::size_t bins_x, const RoiRule &rule, float *out) {
    std::vector<Place> rows, columns;
    for (std::size_t i = 0; i < bins_y; ++i)
        for (std::int32_t k = 0; k < y.count; ++k)
            rows.push_back(place_at(position(y, i, k, rule.offset), map.height, rule.outside));
    for (std::size_t i = 0; i < bins_x; ++i)
        for (std::int32_t k = 0; k < x.count; ++k)
            columns.push_back(place_at(position(x, i, k, rule.offset), map.width, rule.outside));
    for (std::size_t c = 0; c < map.channels; ++c) {
        const float *plane = image + c * map.height * map.width;
        for (std::size_t i = 0; i < bins_y; ++i)
            for (std::size_t j = 0; j < bins_x; ++j) {
                float best = 0.0f;
                bool some = false;
                for (std::int32_t p = 0; p < y.count; ++p)
                    for (std::int32_t q = 0; q < x.count; ++q) {
                        const Place &r = rows[i * y.count + p], &s = columns[j * x.count + q];
                        float value = 0.0f;
                        if (r.valid && s.valid) {
                            const float *top = plane + r.low * map.width;
                            const float *bottom = plane + r.high * map.width;
                            const float u = 1.0f - r.fraction, v = 1.0f - s.fraction;
                            value =
                                std::max(std::max(u * v * top[s.low], u * s.fraction * top[s.high]),
                                         std::max(r.fraction * v * bottom[s.low],
                                                  r.fraction * s.fraction * bottom[s.high]));
                        }
                        best = some ? std::max(best, value) : value;
                        some = true;
                    }
                *out++ = best;
            }
    }
}

}  // namespace

void roi(const Map &map, std::size_t image, const Axis &y, const Axis &x, std::size_t bins_y,
         std::size_t bins_x, const RoiRule &rule, float *out) {
    const float *from = map.data + image * map.channels * map.height * map.width;
    (rule.largest ? largest : mean)(map, from, y, x, bins_y, bins_x, rule, out);
}

}  // namespace headrace::plugins
