// Objects from network space to the frame, with the filters on the way. Source: spec B.6.
#include "cluster/attach.h"

#include <algorithm>

namespace headrace::cluster {
namespace {

// Positions and sizes are binary32; the ratio divides in binary64.
float mapped(float v, float offset, double ratio, double origin) {
    return static_cast<float>(static_cast<double>(v - offset) / ratio + origin);
}

void clip_to_region(float &start, float &size, float low, float extent, bool old) {
    const float high = low + extent;
    if (start + size > high) {
        size = high - start;
        if (!old && size < 0.0f) size = 0.0f;
    }
    if (start < low) {
        if (!old) {
            size -= low - start;
            if (size < 0.0f) size = 0.0f;
        }
        start = low;
    }
}

// What of the rectangle lies inside the frame, relative to the parent; false if nothing does.
bool cut(float *r, const AttachItem &item) {
    const float size[2] = {static_cast<float>(item.frame_width),
                           static_cast<float>(item.frame_height)};
    for (int k = 0; k < 2; ++k) {
        const float low = -item.parent[k], high = size[k] - item.parent[k];
        const float start = std::max(r[k], low), end = std::min(r[k] + r[k + 2], high);
        if (r[k] < low || r[k] + r[k + 2] > high) r[k + 2] = end - start;
        r[k] = start;
        if (r[k] >= high || !(r[k + 2] > 0.0f)) return false;
    }
    return true;
}

// The rows that a class leaves out at the top and bottom, of a box inside the frame.
Drop outside_rows(float *r, const AttachClass &c, const AttachItem &item) {
    const auto limit = static_cast<float>(item.frame_height - c.roi_bottom);
    const bool above = c.roi_top > 0.0f && r[1] < c.roi_top;
    const bool below = c.roi_bottom > 0 && r[1] + r[3] > limit;
    if (!item.crop) return above ? kRoiTopOffset : below ? kRoiBottomOffset : kAttached;
    const float end = below ? limit : r[1] + r[3];
    if (above) r[1] = c.roi_top;
    if (above || below) r[3] = end - r[1];
    return r[3] > 0.0f ? kAttached : above ? kRoiTopOffset : kRoiBottomOffset;
}

// Steps 3 to 9; changes the rectangle.
Drop filter(float *r, const AttachClass &c, const AttachItem &item, int &shifted) {
    if (item.modern) {
        if (!cut(r, item)) return kOutside;
    } else if (!item.old) {
        shifted += r[1] < -0.5f || r[0] < -0.5f;
        if (r[1] < 0.0f) r[1] = 0.0f;
        if (r[0] < 0.0f) r[0] = 0.0f;
    }
    if (c.filtered) return kFilterOutClassIds;
    if (r[2] < c.min_w) return kDetectedMinW;
    if (r[3] < c.min_h) return kDetectedMinH;
    if (c.max_w > 0.0f && r[2] > c.max_w) return kDetectedMaxW;
    if (c.max_h > 0.0f && r[3] > c.max_h) return kDetectedMaxH;
    if (item.modern) return outside_rows(r, c, item);
    // Unsigned as in the original: an offset beyond the frame wraps around and never drops.
    const auto limit = static_cast<float>(item.frame_height - c.roi_bottom);
    if (!item.crop) {
        if (r[1] < c.roi_top) return c.roi_top > 0.0f ? kRoiTopOffset : kFrameTop;
        if (r[1] + r[3] > limit) return c.roi_bottom > 0 ? kRoiBottomOffset : kFrameBottom;
        return kAttached;
    }
    const auto frame_width = static_cast<float>(item.frame_width);
    if (item.old && r[0] < 0.0f) r[0] = 0.0f;
    if (r[1] < c.roi_top) r[1] = c.roi_top;
    if (r[0] + r[2] >= frame_width) r[2] = frame_width - r[0];
    if (r[1] + r[3] > limit) r[3] = limit - r[1];
    return kAttached;
}

}  // namespace

Drop attach(const float *box, const AttachClass &c, const AttachItem &item, float *rect,
            int &shifted) {
    for (int k = 0; k < 2; ++k) {
        rect[k] = mapped(box[k], item.offset[k], item.ratio[k], item.origin[k]);
        rect[k + 2] = mapped(box[k + 2], 0.0f, item.ratio[k], 0.0);
        if (item.clip)
            clip_to_region(rect[k], rect[k + 2], item.region[k], item.region[k + 2], item.old);
    }
    int moved = 0;
    const Drop drop = filter(rect, c, item, moved);
    if (drop == kAttached) shifted += moved;
    for (int k = 0; k < 2; ++k) rect[k] += item.parent[k];
    return drop;
}

}  // namespace headrace::cluster
