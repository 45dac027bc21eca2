// One object from network space to frame space. Source: spec B.6.
#pragma once
#include <cstdint>

#include "cluster/numbers.h"

namespace headrace::cluster {

// Filters of one class; the original compares their integers as floats. A maximum of 0 is none.
struct AttachClass {
    float min_w, min_h, max_w, max_h, roi_top;
    std::uint32_t roi_bottom;
    bool filtered;
};

// What is the same for all objects of an item.
struct AttachItem {
    float offset[2];   // network pixels
    double ratio[2];   // network pixels per frame pixel
    double origin[2];  // whole pixels added to mapped positions, 0 outside tensor-input mode
    float region[4];   // left, top, width, height that `clip` cuts at
    float parent[2];   // added last
    std::uint32_t frame_width, frame_height;
    bool clip, crop, old;  // old: generation 6.2
    bool modern;           // cut boxes at the frame instead of moving and dropping them
};

// Writes left, top, width, height in frame pixels; says which test drops the object. `shifted`
// counts objects that were moved by more than half a pixel because they reach beyond the frame's
// left or top.
Drop attach(const float *box, const AttachClass &c, const AttachItem &item, float *rect,
            int &shifted);

}  // namespace headrace::cluster
