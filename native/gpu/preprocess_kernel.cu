// Pre-processing on the GPU: one thread makes one pixel of the network input.
//
// The steps and their arithmetic are those of `Pass` (native/src/preprocess/pass.cpp), the tables
// are made by the same functions on the CPU, so that the tensors have the same bits. NVRTC compiles
// this file to PTX (`make ptx`); tests compile it by C++, with a loop in the place of the grid.
#include "component.h"
#include "preprocess/pixel.h"

namespace headrace::preprocess {

// As `Layout`, `ModelColor` and `Filter` of the CPU number them.
enum { kLayoutI420, kLayoutNv12, kLayoutRgb, kLayoutBgr, kLayoutGray };
enum { kModelRgb, kModelBgr, kModelGray };
enum { kFilterNearest, kFilterBilinear, kFilterCubic, kFilterArea, kFilterLanczos, kFilterOpencv };

// Which samples make up each output along one axis, as 32-bit words from `at` on, `count` outputs.
// Nearest: first. Bilinear: first, weight. `opencv`: first, second, both weights in one word.
// Others: first, number of taps, `stride` weights of each output.
struct AxisTable {
    int32_t at, stride;
};

// One item of the batch. Mirrored by `ITEM` of headrace/infer/gpu/items.py.
struct Item {
    Component component[3];
    const int32_t *tables;
    AxisTable x[2], y[2];  // of whole planes and of chroma planes
    int32_t layout;
    int32_t wide;                      // samples are 16 bits, of which the upper byte counts (P010)
    int32_t left, top, width, height;  // of the image in the network input; 0 wide: zeros
    ColorMatrix matrix;
    IntMatrix integers;
};

// What all items have in common. Mirrored by `SETTINGS`.
struct Settings {
    void *out;
    const float *mean_image;  // (C, H, W), or null
    int32_t width, height, color, nhwc, filter, half;
    float scale, fill, mean[3];
};

HEADRACE_TARGET inline int sample(const Item &item, int component, int row, int column) {
    return sample_of(item.component[component], item.wide, row, column);
}

HEADRACE_TARGET inline float as_float(int32_t word) {
#ifdef __CUDACC_RTC__
    return __int_as_float(word);
#else
    float value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
#endif
}

HEADRACE_TARGET inline float bilinear(const Item &item, int c, int set, int dx, int dy) {
    const int32_t *x = item.tables + item.x[set].at, *y = item.tables + item.y[set].at;
    const int column = x[dx], row = y[dy];
    const int second = (x[item.width + dx] + 1) >> 1, weight = y[item.height + dy];
    const int next = second ? column + 1 : column, below = weight ? row + 1 : row;
    const int a = blended(sample(item, c, row, column), sample(item, c, below, column), weight);
    const int b = blended(sample(item, c, row, next), sample(item, c, below, next), weight);
    return linear_level(a, b, 16384 - second, second);
}

HEADRACE_TARGET inline float weighted(const Item &item, int c, int set, int dx, int dy) {
    const AxisTable across = item.x[set], down = item.y[set];
    const int32_t *x = item.tables + across.at, *y = item.tables + down.at;
    const int32_t *across_weights = x + 2 * item.width + dx * across.stride;
    const int32_t *down_weights = y + 2 * item.height + dy * down.stride;
    float level = 0;
    for (int i = 0; i < x[item.width + dx]; ++i) {
        float sum = 0;  // of one column, first as on the CPU
        for (int j = 0; j < y[item.height + dy]; ++j)
            sum += as_float(down_weights[j]) * float(sample(item, c, y[dy] + j, x[dx] + i));
        level += as_float(across_weights[i]) * sum;
    }
    return level;
}

// One pixel of a source row, `opencv`: bytes of R, G, B as FFmpeg converts them, or as they are.
HEADRACE_TARGET inline void pixel(const Item &item, bool converts, int count, int row, int column,
                                  int *to) {
    if (!converts) {
        for (int c = 0; c < count; ++c) to[c] = sample(item, c, row, column);
        return;
    }
    const IntMatrix &m = item.integers;
    const auto luma = uint8_t(sample(item, 0, row, column));
    const int16_t cb = centred(uint8_t(sample(item, 1, row / 2, column / 2)));
    const int16_t cr = centred(uint8_t(sample(item, 2, row / 2, column / 2)));
    to[0] = level_of(luma, high_product(cr, m.red_v), m);
    to[1] = level_of(luma, green_part(cb, cr, m), m);
    to[2] = level_of(luma, high_product(cb, m.blue_u), m);
}

HEADRACE_TARGET inline void opencv(const Item &item, bool converts, int count, int dx, int dy,
                                   float *to) {
    const int32_t *x = item.tables + item.x[0].at, *y = item.tables + item.y[0].at;
    const int32_t pair = x[2 * item.width + dx];
    const auto high = int16_t(y[2 * item.height + dy] >> 16);
    const auto low = int16_t(2048 - high);
    int16_t rows[2][3];
    for (int k = 0; k < 2; ++k) {
        const int row = y[k * item.height + dy];
        int first[3], second[3];
        pixel(item, converts, count, row, x[dx], first);
        pixel(item, converts, count, row, x[item.width + dx], second);
        for (int c = 0; c < count; ++c)
            rows[k][c] = mixed(first[c], second[c], int16_t(pair & 0xffff), int16_t(pair >> 16));
    }
    for (int c = 0; c < count; ++c) to[c] = float(blended_byte(rows[0][c], rows[1][c], low, high));
}

// Levels of the frame's own components, 0 ... 255, rounded to bytes or not as the filter has them.
HEADRACE_TARGET inline void levels(const Item &item, int filter, int count, int dx, int dy,
                                   float *to) {
    for (int c = 0; c < count; ++c) {
        const int set = c > 0 && item.layout <= kLayoutNv12 ? 1 : 0;
        if (filter == kFilterNearest)
            to[c] = float(sample(item, c, item.tables[item.y[set].at + dy],
                                 item.tables[item.x[set].at + dx]));
        else
            to[c] = filter == kFilterBilinear ? bilinear(item, c, set, dx, dy)
                                              : weighted(item, c, set, dx, dy);
    }
}

HEADRACE_TARGET inline void store(const Settings &to, uint64_t at, float value) {
    if (!to.half) {
        static_cast<float *>(to.out)[at] = value;
        return;
    }
#ifdef __CUDACC_RTC__
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    static_cast<uint16_t *>(to.out)[at] = bits;
#else
    static_cast<_Float16 *>(to.out)[at] = _Float16(value);
#endif
}

HEADRACE_TARGET inline void make_pixel(const Settings &to, const Item &item, int index, int px,
                                       int py) {
    const int channels = to.color == kModelGray ? 1 : 3;
    const uint64_t plane = uint64_t(to.width) * uint64_t(to.height);
    const uint64_t place = uint64_t(py) * uint64_t(to.width) + uint64_t(px);
    const int dx = px - item.left, dy = py - item.top;
    const bool inside = dx >= 0 && dx < item.width && dy >= 0 && dy < item.height;
    const bool yuv = item.layout <= kLayoutNv12, gray = to.color == kModelGray;
    float level[3] = {0, 0, 0}, byte[3] = {to.fill, to.fill, to.fill};
    if (inside) {
        const int count = item.layout == kLayoutGray || (yuv && gray) ? 1 : 3;
        bool planar = yuv;
        if (to.filter == kFilterOpencv) {
            opencv(item, yuv && !gray, count, dx, dy, level);
            planar = yuv && gray;  // the others are R, G, B by now
        } else {
            levels(item, to.filter, count, dx, dy, level);
        }
        const ColorMatrix &m = item.matrix;
        if (planar) {
            const float luma = luma_of(level[0], m);
            const float cb = level[1] - 128.0f, cr = level[2] - 128.0f;
            byte[0] = gray ? to_byte(luma) : red_of(luma, cr, m);
            byte[1] = green_of(luma, cb, cr, m);
            byte[2] = blue_of(luma, cb, m);
        } else if (count == 1) {
            byte[0] = byte[1] = byte[2] = to_byte(level[0]);
        } else if (gray) {
            byte[0] = grey_of(level[0], level[1], level[2]);
        } else {
            for (int c = 0; c < 3; ++c) byte[c] = to_byte(level[c]);
        }
    }
    for (int c = 0; c < channels; ++c) {
        const uint64_t at =
            uint64_t(index) * plane * uint64_t(channels) +
            (to.nhwc ? place * uint64_t(channels) + uint64_t(c) : uint64_t(c) * plane + place);
        const float mean = to.mean_image ? to.mean_image[uint64_t(c) * plane + place] : to.mean[c];
        const float value = byte[to.color == kModelBgr ? 2 - c : c];
        store(to, at, item.width > 0 ? to.scale * (value - mean) : 0.0f);
    }
}

#ifdef __CUDACC_RTC__
// Grid: x and y over the network input, z over the items.
extern "C" __global__ void headrace_preprocess(Settings settings, const Item *items) {
    const int px = int(blockIdx.x * blockDim.x + threadIdx.x);
    const int py = int(blockIdx.y * blockDim.y + threadIdx.y);
    if (px < settings.width && py < settings.height)
        make_pixel(settings, items[blockIdx.z], int(blockIdx.z), px, py);
}
#endif

}  // namespace headrace::preprocess
