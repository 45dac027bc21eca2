#pragma once
// One component of an image in a GPU's memory, and a sample of it.
#include "kernel_types.h"

namespace headrace::preprocess {

// Y, or R, or both chroma components of one plane in turn.
struct Component {
    const uint8_t *data;
    int32_t pitch, step;  // bytes from row to row and from pixel to pixel
};

// `wide`: samples are 16 bits, of which the upper byte counts (P010).
HEADRACE_TARGET inline int sample_of(const Component &from, int wide, int row, int column) {
    const uint8_t *at =
        from.data + uint64_t(row) * uint64_t(from.pitch) + uint64_t(column) * uint64_t(from.step);
    if (!wide) return *at;
    const int level = (at[0] + 256 * at[1] + 128) >> 8;  // nearest byte
    return level > 255 ? 255 : level;
}

}  // namespace headrace::preprocess
