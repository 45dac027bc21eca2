// Drawing on an image in a GPU's memory: one thread makes four pixels with their chroma. The
// arithmetic is that of `Sheet` (native/src/draw/sheet.cpp), so that
// images have the same bytes. NVRTC compiles this file to PTX (`make ptx`); tests compile it by
// C++, with a loop in the place of the grid.
#include "component.h"

namespace headrace::draw {

enum { kFill, kOutline, kText };

// Mirrored by `COMMAND` of headrace/media/draw/device_canvas.py.
struct Command {
    int32_t kind, left, top, right, bottom;
    int32_t width;    // of an outline's border
    int32_t opacity;  // 0..255, of fills and outlines
    int32_t opaque;   // of a text: nothing of the image is seen through it
    uint8_t color[4];
    int32_t pitch;         // of a text: bytes from row to row of `cover`
    const uint8_t *cover;  // (bottom - top, right - left) how much of each pixel a text covers
    const struct Ink *inks;
};

// Of each level of a text's cover. Mirrored by `INK`.
struct Ink {
    float color[3];
    uint8_t bytes[3], alpha;
};

// Mirrored by `_Sheet`.
struct Sheet {
    preprocess::Component component[3];
    const Command *commands;
    uint8_t *luma, *chroma;  // NV12 with rows of `pitch` bytes
    int32_t count, wide, width, height, pitch;
};

HEADRACE_TARGET inline uint8_t mixed(unsigned under, unsigned over, unsigned alpha) {
    return uint8_t((under * (255 - alpha) + over * alpha + 127) / 255);
}

// Four pixels and their chroma, from column 2 * x and row 2 * y on.
struct Quad {
    int x, y;
    uint8_t luma[4], blue, red;
};

HEADRACE_TARGET inline int inside(int first, int start, int end) {
    return (first >= start && first < end) + (first + 1 >= start && first + 1 < end);
}

HEADRACE_TARGET inline void tint(uint8_t &value, uint8_t color, int opacity) {
    if (opacity > 0) value = opacity >= 255 ? color : mixed(value, color, unsigned(opacity));
}

HEADRACE_TARGET inline void fill(const Sheet &to, const Command &c, int left, int top, int right,
                                 int bottom, Quad &q) {
    left = left < 0 ? 0 : left, top = top < 0 ? 0 : top;
    right = right > to.width ? to.width : right, bottom = bottom > to.height ? to.height : bottom;
    if (left >= right || top >= bottom) return;
    for (int i = 0; i < 4; ++i) {
        const int x = 2 * q.x + i % 2, y = 2 * q.y + i / 2;
        if (x >= left && x < right && y >= top && y < bottom)
            tint(q.luma[i], c.color[0], c.opacity);
    }
    // the last sample of an odd size has one pixel only
    right += right == to.width ? to.width % 2 : 0,
        bottom += bottom == to.height ? to.height % 2 : 0;
    const int part = inside(2 * q.x, left, right) * inside(2 * q.y, top, bottom);
    tint(q.blue, c.color[1], c.opacity * part / 4);
    tint(q.red, c.color[2], c.opacity * part / 4);
}

HEADRACE_TARGET inline void outline(const Sheet &to, const Command &c, Quad &q) {
    const int left = c.left, top = c.top, right = c.right, bottom = c.bottom, width = c.width;
    if (right - left <= 2 * width || bottom - top <= 2 * width) {
        fill(to, c, left, top, right, bottom, q);
        return;
    }
    fill(to, c, left, top, right, top + width, q);
    fill(to, c, left, bottom - width, right, bottom, q);
    fill(to, c, left, top + width, left + width, bottom - width, q);
    fill(to, c, right - width, top + width, right, bottom - width, q);
}

HEADRACE_TARGET inline uint8_t rounded(float value) {
    value = value < 0.0f ? 0.0f : value > 255.0f ? 255.0f : value;
    return uint8_t(value + 0.5f);
}

// Colours of four pixels count as much as they are seen. The cover has even sides and an even
// place, so that a sample has all of its pixels in it.
HEADRACE_TARGET inline void text(const Sheet &to, const Command &c, Quad &q) {
    const int column = 2 * q.x - c.left, row = 2 * q.y - c.top;
    if (column < 0 || row < 0 || 2 * q.x >= c.right || 2 * q.y >= c.bottom) return;
    const uint8_t *first = c.cover + int64_t(row) * c.pitch + column, *second = first + c.pitch;
    const uint8_t levels[4] = {first[0], first[1], second[0], second[1]};
    for (int i = 0; i < 4; ++i) {
        const Ink &ink = c.inks[levels[i]];
        q.luma[i] = c.opaque ? ink.bytes[0] : mixed(q.luma[i], ink.bytes[0], ink.alpha);
    }
    uint8_t blue = 0, red = 0;
    unsigned alpha = 0;
    if (levels[0] == levels[1] && levels[0] == levels[2] && levels[0] == levels[3]) {
        const Ink &ink = c.inks[levels[0]];
        blue = ink.bytes[1], red = ink.bytes[2], alpha = ink.alpha;
    } else {
        unsigned seen = 0;
        float blues = 0, reds = 0;
        for (int i = 0; i < 4; ++i) {
            const Ink &ink = c.inks[levels[i]];
            const auto weight = float(ink.alpha);
            seen += ink.alpha;
            blues += ink.color[1] * weight;
            reds += ink.color[2] * weight;
        }
        if (seen) {
            blue = rounded(blues / float(seen)), red = rounded(reds / float(seen));
            alpha = (seen + 1 + (seen >> 2 & 1)) >> 2;  // a quarter, halves to even
        }
    }
    q.blue = mixed(q.blue, blue, alpha);
    q.red = mixed(q.red, red, alpha);
}

HEADRACE_TARGET inline void draw_quad(const Sheet &to, int x, int y) {
    Quad q{x, y, {0, 0, 0, 0}, 0, 0};
    for (int i = 0; i < 4; ++i) {
        const int column = 2 * x + i % 2, row = 2 * y + i / 2;
        if (column < to.width && row < to.height)
            q.luma[i] = uint8_t(preprocess::sample_of(to.component[0], to.wide, row, column));
    }
    q.blue = uint8_t(preprocess::sample_of(to.component[1], to.wide, y, x));
    q.red = uint8_t(preprocess::sample_of(to.component[2], to.wide, y, x));
    for (int i = 0; i < to.count; ++i) {
        const Command &c = to.commands[i];
        if (c.right <= 2 * x || c.left >= 2 * x + 2 || c.bottom <= 2 * y || c.top >= 2 * y + 2)
            continue;
        if (c.kind == kFill)
            fill(to, c, c.left, c.top, c.right, c.bottom, q);
        else if (c.kind == kOutline)
            outline(to, c, q);
        else
            text(to, c, q);
    }
    for (int i = 0; i < 4; ++i) {
        const int column = 2 * x + i % 2, row = 2 * y + i / 2;
        if (column < to.width && row < to.height)
            to.luma[int64_t(row) * to.pitch + column] = q.luma[i];
    }
    uint8_t *chroma = to.chroma + int64_t(y) * to.pitch + 2 * x;
    chroma[0] = q.blue, chroma[1] = q.red;
}

#ifdef __CUDACC_RTC__
// Grid: x and y over the chroma samples.
extern "C" __global__ void headrace_draw(Sheet sheet) {
    const int x = int(blockIdx.x * blockDim.x + threadIdx.x);
    const int y = int(blockIdx.y * blockDim.y + threadIdx.y);
    if (2 * x < sheet.width && 2 * y < sheet.height) draw_quad(sheet, x, y);
}
#endif

}  // namespace headrace::draw
