// Tensors in the vectorised and channel-last formats of TensorRT, from row-major ones and back.
//
// All of them have one form: per image, blocks of `width` channels; in a block the positions, and
// at each position the channels of the block. Channel-last formats have one block of all channels.
// Channels that the tensor does not have are zero. Source: tensorrt-plugins spec 6.
#pragma once
#include <cstddef>

namespace headrace::plugins {

struct Packing {
    std::size_t images, channels, positions;
    std::size_t width;  // channels of a block, padding included
    std::size_t item;   // bytes of an element: 1, 2, 4 or 8
    int threads;
    int vectors = 64;  // bytes of the widest that are used, if the processor has them: 64, 32 or 0

    std::size_t blocks() const { return (channels + width - 1) / width; }
};

void pack(const Packing &shape, const char *rows, char *blocks);
void unpack(const Packing &shape, const char *blocks, char *rows);

}  // namespace headrace::plugins
