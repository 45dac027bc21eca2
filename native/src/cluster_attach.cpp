// Objects from network space to the frame, with the filters on the way. Source: spec B.6.
#include "cluster_attach.h"

#include <algorithm>

namespace noria::cluster {
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

// Steps 3 to 9; changes the rectangle.
Drop filter(float *r, const AttachClass &c, const AttachItem &item) {
    if (!item.old) {
        if (r[1] < 0.0f) r[1] = 0.0f;
        if (r[0] < 0.0f) r[0] = 0.0f;
    }
    if (c.filtered) return kFilterOutClassIds;
    if (r[2] < c.min_w) return kDetectedMinW;
    if (r[3] < c.min_h) return kDetectedMinH;
    if (c.max_w > 0.0f && r[2] > c.max_w) return kDetectedMaxW;
    if (c.max_h > 0.0f && r[3] > c.max_h) return kDetectedMaxH;
    // Unsigned as in the original: an offset beyond the frame wraps around and never drops.
    const auto limit = static_cast<float>(item.frame_height - c.roi_bottom);
    if (!item.crop) {
        if (r[1] < c.roi_top) return kRoiTopOffset;
        if (r[1] + r[3] > limit) return kRoiBottomOffset;
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

Drop attach(const float *box, const AttachClass &c, const AttachItem &item, float *rect) {
    for (int k = 0; k < 2; ++k) {
        rect[k] = mapped(box[k], item.offset[k], item.ratio[k], item.origin[k]);
        rect[k + 2] = mapped(box[k + 2], 0.0f, item.ratio[k], 0.0);
        if (item.clip)
            clip_to_region(rect[k], rect[k + 2], item.region[k], item.region[k + 2], item.old);
    }
    const Drop drop = filter(rect, c, item);
    for (int k = 0; k < 2; ++k) rect[k] += item.parent[k];
    return drop;
}

}  // namespace noria::cluster
