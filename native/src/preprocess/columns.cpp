#include <algorithm>

#include "preprocess/rows.h"

namespace headrace::preprocess {

Shuffle make_shuffle(const std::vector<int32_t> &from, int row_bytes) {
    constexpr int kBlock = Shuffle::kBlock;
    Shuffle shuffle;
    const size_t blocks = (from.size() + kBlock - 1) / kBlock;
    int span = 0;
    shuffle.base.resize(blocks);
    for (size_t b = 0; b < blocks; ++b) {
        const auto begin = from.begin() + ptrdiff_t(b * kBlock);
        const auto end = from.begin() + ptrdiff_t(std::min(from.size(), (b + 1) * kBlock));
        const auto [low, high] = std::minmax_element(begin, end);
        shuffle.base[b] = *low;
        span = std::max(span, *high - *low + 1);
    }
    const int parts = (span + kBlock - 1) / kBlock;
    if (parts > Shuffle::kMostParts || parts * kBlock > row_bytes) return shuffle;
    shuffle.parts = parts;
    shuffle.masks.assign(blocks * size_t(parts * kBlock), 0x80);
    for (size_t i = 0; i < from.size(); ++i) {
        const size_t b = i / kBlock;
        shuffle.base[b] = std::min(shuffle.base[b], row_bytes - parts * kBlock);
        const int at = from[i] - shuffle.base[b];
        uint8_t *mask = &shuffle.masks[(b * size_t(parts) + size_t(at / kBlock)) * kBlock];
        mask[i % kBlock] = uint8_t(at % kBlock);
    }
    return shuffle;
}

Columns make_columns(std::vector<int32_t> index, const std::vector<int32_t> &weight, int components,
                     int pixels, bool shuffle) {
    const int count = int(index.size()), n = components;
    Columns columns{count, std::move(index), {}, 0, {}};
    const bool linear = !weight.empty();
    for (int32_t w : weight) {
        const int second = (w + 1) >> 1;
        columns.pair.push_back((16384 - second) | second << 16);
    }
    const std::vector<int32_t> &at = columns.index;
    // A word is the power of two that holds one pixel, or two neighbours.
    const int word = n == 3 ? (linear ? 8 : 4) : n * (linear ? 2 : 1);
    while (columns.safe < count && n * at[size_t(columns.safe)] + word <= n * pixels)
        ++columns.safe;
    if (!shuffle || n == 3) return columns;
    // Each block holds the components of its pixels one after the other, or, when interpolating,
    // pixel by pixel: the two neighbours of each component.
    const int per_block = Shuffle::kBlock / (linear ? 2 * n : n);
    std::vector<int32_t> from;
    from.reserve(size_t(count + per_block) * size_t(linear ? 2 * n : n));
    for (int x = 0; x < count; x += per_block) {
        auto pixel = [&](int i) { return at[size_t(std::min(x + i, count - 1))]; };
        if (linear) {
            for (int i = 0; i < per_block; ++i)
                for (int c = 0; c < n; ++c)
                    for (int k = 0; k < 2; ++k)
                        from.push_back(n * std::min(pixel(i) + k, pixels - 1) + c);
        } else {
            for (int c = 0; c < n; ++c)
                for (int i = 0; i < per_block; ++i) from.push_back(n * pixel(i) + c);
        }
    }
    columns.shuffle = make_shuffle(from, n * pixels);
    if (linear)
        columns.pair.resize(size_t((count + 7) / 8) * 8, 16384);  // whole vectors of weights
    return columns;
}

Columns make_pairs(std::vector<int32_t> first, const std::vector<int32_t> &second, int components,
                   int pixels, bool shuffle) {
    const int count = int(first.size()), n = components;
    Columns columns{count, std::move(first), {}, 0, {}};
    const std::vector<int32_t> &at = columns.index;
    for (size_t x = 0; x < at.size(); ++x) columns.pair.push_back(second[x] - at[x]);
    const int word = 8;  // two pixels of three components, and what comes along
    while (columns.safe < count && n * at[size_t(columns.safe)] + word <= n * pixels)
        ++columns.safe;
    if (!shuffle || n == 3) return columns;
    const int per_block = Shuffle::kBlock / (2 * n);
    std::vector<int32_t> from;
    for (int x = 0; x < count; x += per_block)
        for (int c = 0; c < n; ++c)
            for (int i = 0; i < per_block; ++i) {
                const auto place = size_t(std::min(x + i, count - 1));
                from.push_back(n * at[place] + c);
                from.push_back(n * second[place] + c);
            }
    columns.shuffle = make_shuffle(from, n * pixels);
    return columns;
}

}  // namespace headrace::preprocess
