// ROI pooling on whole places. Source: standard-plugins spec 4.3.
#include <algorithm>
#include <cmath>
#include <vector>

#include "plugins/sample.h"

namespace headrace::plugins {
namespace {

struct Span {
    std::size_t begin, end;
};

std::vector<Span> spans(std::int64_t first, std::int64_t last, std::size_t bins, std::size_t size) {
    const auto length = static_cast<float>(std::max<std::int64_t>(last - first + 1, 1));
    const float step = length / static_cast<float>(bins);
    const auto limit = static_cast<std::int64_t>(size);
    auto inside = [&](float offset) {
        const std::int64_t at = static_cast<std::int64_t>(offset) + first;
        return static_cast<std::size_t>(std::min(std::max<std::int64_t>(at, 0), limit));
    };
    std::vector<Span> result(bins);
    for (std::size_t i = 0; i < bins; ++i)
        result[i] = {inside(std::floor(static_cast<float>(i) * step)),
                     inside(std::ceil(static_cast<float>(i + 1) * step))};
    return result;
}

}  // namespace

void pool(const Map &map, std::size_t image, const Region &region, std::size_t bins_y,
          std::size_t bins_x, float *out) {
    const std::vector<Span> rows = spans(region.y0, region.y1, bins_y, map.height);
    const std::vector<Span> columns = spans(region.x0, region.x1, bins_x, map.width);
    const float *data = map.data + image * map.channels * map.height * map.width;
    for (std::size_t c = 0; c < map.channels; ++c) {
        const float *plane = data + c * map.height * map.width;
        for (const Span &row : rows)
            for (const Span &column : columns) {
                if (row.end <= row.begin || column.end <= column.begin) {
                    *out++ = 0.0f;
                    continue;
                }
                float best = plane[row.begin * map.width + column.begin];
                for (std::size_t y = row.begin; y < row.end; ++y)
                    for (std::size_t x = column.begin; x < column.end; ++x)
                        best = std::max(best, plane[y * map.width + x]);
                *out++ = best;
            }
    }
}

}  // namespace headrace::plugins
