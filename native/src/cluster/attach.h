// One object from network space to frame space. Source: spec B.6.
#pragma once
#include <cstdint>

namespace headrace::cluster {

// Which test dropped an object; the numbers are headrace.infer.attach.DropReason.
enum Drop : std::uint8_t {
    kAttached = 0,
    kFilterOutClassIds = 1,
    kDetectedMinW = 2,
    kDetectedMinH = 3,
    kDetectedMaxW = 4,
    kDetectedMaxH = 5,
    kRoiTopOffset = 6,
    kRoiBottomOffset = 7,
    kFrameBottom = 8,  // the two tests above where no offset is set: the frame's own edges
    kFrameTop = 9,
    kOutside = 10,
};

constexpr std::size_t kDrops = 11;

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
