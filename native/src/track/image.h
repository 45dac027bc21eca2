// The pixels of a frame as a visual tracker reads them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "preprocess/pass.h"

namespace headrace::track {

struct Image {
    preprocess::Layout layout;
    std::array<preprocess::PlaneView, 3> planes;
    int width, height;
    preprocess::ColorMatrix matrix;
    double across, down;  // pixels of the image for one that boxes are in
};

// A part of an image, brought to `side` x `side` samples by taking the pixel under each; what lies
// outside of the image has the values of its border. Fills three planes, one after the other.
void sample(const Image &image, double left, double top, double width, double height, int side,
            std::vector<std::uint8_t> &rgb);

}  // namespace headrace::track
