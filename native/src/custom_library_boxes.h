// Boxes as the NumPy arrays that Python is given.
#pragma once
#include <nanobind/nanobind.h>

#include "custom_library_detector.h"

// Arrays of one frame, not yet filled, all in one block: with few boxes, making memory and an owner
// for each array would take longer than filling them.
class NumpyBoxes {
public:
    NumpyBoxes(size_t count, bool with_angles);

    const BoxArrays &arrays() const { return block_.arrays; }
    size_t bytes() const { return block_.bytes; }
    void *start() const;

    nanobind::object boxes() const;   // (N, 4) float32
    nanobind::object scores() const;  // (N,) float32
    nanobind::object ids() const;     // (N,) int32
    nanobind::object angles() const;  // (N,) float32, or None

private:
    nanobind::object array(void *data, int dims, int type) const;

    nanobind::object owner_;
    BoxBlock block_;
    size_t count_;
};
