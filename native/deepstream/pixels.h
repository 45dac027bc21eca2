// Pixels of an NvBufSurface's images: which planes a format has, and one image as RGBA and back.
#pragma once

#include <cstdint>
#include <vector>

#include "nvbufsurface.h"

namespace headrace::deepstream {

struct PlaneForm {
    uint32_t divisor, bytes;  // of its size by that of the image; of a pixel
};

// Planes of a format; none where it is not known.
std::vector<PlaneForm> planes_of(NvBufSurfaceColorFormat format);

// A part of an image, in pixels.
struct Area {
    uint32_t left, top, width, height;
};

struct Rgba {
    uint32_t width, height;
    std::vector<uint8_t> bytes;  // 4 * width * height, row by row

    Rgba(uint32_t width, uint32_t height)
        : width(width), height(height), bytes(4 * static_cast<size_t>(width) * height) {}
    uint8_t *at(uint32_t x, uint32_t y) {
        return bytes.data() + 4 * (static_cast<size_t>(y) * width + x);
    }
    [[nodiscard]] const uint8_t *at(uint32_t x, uint32_t y) const {
        return bytes.data() + 4 * (static_cast<size_t>(y) * width + x);
    }
};

// Reads an area of an image, whose format must be known.
Rgba read_rgba(const NvBufSurfaceParams &image, const Area &area);
// Writes an image into another one of a known format, its upper left corner at (left, top).
void write_rgba(const Rgba &from, const NvBufSurfaceParams &image, uint32_t left, uint32_t top);

}  // namespace headrace::deepstream
