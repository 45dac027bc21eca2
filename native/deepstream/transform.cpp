// Scaling, cropping, turning and conversion of images: NvBufSurfTransform on the processor.
#include "nvbufsurftransform.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "generation.h"
#include "library.h"
#include "pixels.h"

using namespace headrace::deepstream;

namespace {

thread_local NvBufSurfTransformConfigParams session{};

Area whole_of(const NvBufSurfaceParams &image) { return {0, 0, image.width, image.height}; }

// The area that a rectangle means, if its flag is set; false where it leaves the image.
bool area_of(const NvBufSurfaceParams &image, bool asked, const NvBufSurfTransformRect *rect,
             uint32_t index, Area &area) {
    area = whole_of(image);
    if (!asked || rect == nullptr) return true;
    const NvBufSurfTransformRect &own = rect[index];
    area = {own.left, own.top, own.width, own.height};
    return area.width > 0 && area.height > 0 && area.left < image.width &&
           area.top < image.height && area.width <= image.width - area.left &&
           area.height <= image.height - area.top;
}

// Scales by pixel centres; an edge goes on beyond the image.
Rgba scaled(const Rgba &from, uint32_t width, uint32_t height, bool nearest) {
    if (from.width == width && from.height == height) return from;
    Rgba into(width, height);
    const float step_x = static_cast<float>(from.width) / static_cast<float>(width);
    const float step_y = static_cast<float>(from.height) / static_cast<float>(height);
    const float last_x = static_cast<float>(from.width - 1);
    const float last_y = static_cast<float>(from.height - 1);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            const float centre_x = (static_cast<float>(x) + 0.5F) * step_x;
            const float centre_y = (static_cast<float>(y) + 0.5F) * step_y;
            uint8_t *pixel = into.at(x, y);
            if (nearest) {
                const uint8_t *one = from.at(static_cast<uint32_t>(std::min(centre_x, last_x)),
                                             static_cast<uint32_t>(std::min(centre_y, last_y)));
                std::copy(one, one + 4, pixel);
                continue;
            }
            const float at_x = std::clamp(centre_x - 0.5F, 0.0F, last_x);
            const float at_y = std::clamp(centre_y - 0.5F, 0.0F, last_y);
            const auto left = static_cast<uint32_t>(at_x);
            const auto top = static_cast<uint32_t>(at_y);
            const uint32_t right = std::min(left + 1, from.width - 1);
            const uint32_t bottom = std::min(top + 1, from.height - 1);
            const float part_x = at_x - static_cast<float>(left);
            const float part_y = at_y - static_cast<float>(top);
            for (int c = 0; c < 4; c++) {
                const float above = static_cast<float>(from.at(left, top)[c]) * (1 - part_x) +
                                    static_cast<float>(from.at(right, top)[c]) * part_x;
                const float below = static_cast<float>(from.at(left, bottom)[c]) * (1 - part_x) +
                                    static_cast<float>(from.at(right, bottom)[c]) * part_x;
                pixel[c] = static_cast<uint8_t>(std::lround(above * (1 - part_y) + below * part_y));
            }
        }
    return into;
}

// Turns an image; quarters go with the clock.
Rgba turned(const Rgba &from, NvBufSurfTransform_Flip flip) {
    if (flip == NvBufSurfTransform_None) return from;
    const bool swaps =
        flip == NvBufSurfTransform_Rotate90 || flip == NvBufSurfTransform_Rotate270 ||
        flip == NvBufSurfTransform_Transpose || flip == NvBufSurfTransform_InvTranspose;
    const uint32_t right = from.width - 1;
    const uint32_t bottom = from.height - 1;
    Rgba into(swaps ? from.height : from.width, swaps ? from.width : from.height);
    for (uint32_t y = 0; y < into.height; y++)
        for (uint32_t x = 0; x < into.width; x++) {
            uint32_t from_x = x;
            uint32_t from_y = y;
            switch (flip) {
            case NvBufSurfTransform_Rotate90: from_x = y, from_y = bottom - x; break;
            case NvBufSurfTransform_Rotate180: from_x = right - x, from_y = bottom - y; break;
            case NvBufSurfTransform_Rotate270: from_x = right - y, from_y = x; break;
            case NvBufSurfTransform_FlipX: from_x = right - x; break;
            case NvBufSurfTransform_FlipY: from_y = bottom - y; break;
            case NvBufSurfTransform_Transpose: from_x = y, from_y = x; break;
            case NvBufSurfTransform_InvTranspose: from_x = right - y, from_y = bottom - x; break;
            default: break;
            }
            const uint8_t *pixel = from.at(from_x, from_y);
            std::copy(pixel, pixel + 4, into.at(x, y));
        }
    return into;
}

bool is_usable(const NvBufSurfaceParams &image, const char *side) {
    if (image.dataPtr != nullptr && !planes_of(image.colorFormat).empty() &&
        image.planeParams.num_planes >= planes_of(image.colorFormat).size())
        return true;
    std::fprintf(stderr,
                 "headrace: NvBufSurfTransform: the %s has no image of a format known here"
                 " (color format %d)\n",
                 side, image.colorFormat);
    return false;
}

NvBufSurfTransform_Error carry(const NvBufSurfaceParams &from, const Area &source,
                               const NvBufSurfaceParams &into, const Area &target,
                               NvBufSurfTransform_Flip flip, NvBufSurfTransform_Inter filter) {
    const Rgba part = turned(read_rgba(from, source), flip);
    const bool nearest = filter == NvBufSurfTransformInter_Nearest;
    write_rgba(scaled(part, target.width, target.height, nearest), into, target.left, target.top);
    return NvBufSurfTransformError_Success;
}

uint32_t filled(const NvBufSurface *surface) {
    const uint32_t count = surface->numFilled == 0 ? surface->batchSize : surface->numFilled;
    return std::min(count, surface->batchSize);
}

}  // namespace

HEADRACE_PUBLIC NvBufSurfTransform_Error NvBufSurfTransform(NvBufSurface *src, NvBufSurface *dst,
                                                            NvBufSurfTransformParams *params) {
    if (src == nullptr || dst == nullptr || params == nullptr || !HEADRACE_SAME_LAYOUT ||
        filled(src) > dst->batchSize)
        return NvBufSurfTransformError_Invalid_Params;
    const uint32_t flags = params->transform_flag;
    const bool flips = (flags & NVBUFSURF_TRANSFORM_FLIP) != 0;
    const auto filter = (flags & NVBUFSURF_TRANSFORM_FILTER) != 0 ? params->transform_filter
                                                                  : NvBufSurfTransformInter_Nearest;
    for (uint32_t i = 0; i < filled(src); i++) {
        const NvBufSurfaceParams &from = src->surfaceList[i];
        const NvBufSurfaceParams &into = dst->surfaceList[i];
        if (!is_usable(from, "source") || !is_usable(into, "target"))
            return NvBufSurfTransformError_Unsupported;
        Area source{};
        Area target{};
        if (!area_of(from, (flags & NVBUFSURF_TRANSFORM_CROP_SRC) != 0, params->src_rect, i,
                     source) ||
            !area_of(into, (flags & NVBUFSURF_TRANSFORM_CROP_DST) != 0, params->dst_rect, i,
                     target))
            return NvBufSurfTransformError_ROI_Error;
        carry(from, source, into, target, flips ? params->transform_flip : NvBufSurfTransform_None,
              filter);
    }
    dst->numFilled = filled(src);
    return NvBufSurfTransformError_Success;
}

// Reads an area inside of an image as rows of RGB without a gap; -1 where its format is not known.
HEADRACE_PUBLIC int headrace_read_rgb(const NvBufSurfaceParams *image,
                                      const NvBufSurfTransformRect *area, uint8_t *rgb) {
    if (!is_usable(*image, "source")) return -1;
    const Rgba part = read_rgba(*image, {area->left, area->top, area->width, area->height});
    for (size_t i = 0; i < part.bytes.size() / 4; i++)
        std::copy_n(part.bytes.data() + 4 * i, 3, rgb + 3 * i);
    return 0;
}

// Puts the images of a batch on one image, each into its rectangle.
HEADRACE_PUBLIC NvBufSurfTransform_Error NvBufSurfTransformComposite(
    NvBufSurface *src, NvBufSurface *dst, NvBufSurfTransformCompositeParams *params) {
    if (src == nullptr || dst == nullptr || params == nullptr || dst->batchSize == 0 ||
        params->dst_comp_rect == nullptr || params->input_buf_count > src->batchSize)
        return NvBufSurfTransformError_Invalid_Params;
    const NvBufSurfaceParams &into = dst->surfaceList[0];
    for (uint32_t i = 0; i < params->input_buf_count; i++) {
        const NvBufSurfaceParams &from = src->surfaceList[i];
        if (!is_usable(from, "source") || !is_usable(into, "target"))
            return NvBufSurfTransformError_Unsupported;
        Area source{};
        Area target{};
        if (!area_of(from, true, params->src_comp_rect, i, source) ||
            !area_of(into, true, params->dst_comp_rect, i, target))
            return NvBufSurfTransformError_ROI_Error;
        carry(from, source, into, target, NvBufSurfTransform_None, params->composite_filter);
    }
    dst->numFilled = 1;
    return NvBufSurfTransformError_Success;
}

// The work is done when these return: there is nothing to wait for.
HEADRACE_PUBLIC NvBufSurfTransform_Error
NvBufSurfTransformAsync(NvBufSurface *src, NvBufSurface *dst, NvBufSurfTransformParams *params,
                        NvBufSurfTransformSyncObj_t *sync) {
    if (sync != nullptr) *sync = nullptr;
    return NvBufSurfTransform(src, dst, params);
}
HEADRACE_PUBLIC NvBufSurfTransform_Error NvBufSurfTransformCompositeAsync(
    NvBufSurface *src, NvBufSurface *dst, NvBufSurfTransformCompositeParams *params,
    NvBufSurfTransformSyncObj_t *sync) {
    if (sync != nullptr) *sync = nullptr;
    return NvBufSurfTransformComposite(src, dst, params);
}
HEADRACE_PUBLIC NvBufSurfTransform_Error NvBufSurfTransformSyncObjWait(NvBufSurfTransformSyncObj_t,
                                                                       uint32_t) {
    return NvBufSurfTransformError_Success;
}
HEADRACE_PUBLIC NvBufSurfTransform_Error
NvBufSurfTransformSyncObjDestroy(NvBufSurfTransformSyncObj_t *sync) {
    if (sync != nullptr) *sync = nullptr;
    return NvBufSurfTransformError_Success;
}

HEADRACE_PUBLIC NvBufSurfTransform_Error NvBufSurfTransformSetDefaultSession(void) {
    session = {};
    return NvBufSurfTransformError_Success;
}
HEADRACE_PUBLIC NvBufSurfTransform_Error
NvBufSurfTransformSetSessionParams(NvBufSurfTransformConfigParams *params) {
    if (params == nullptr) return NvBufSurfTransformError_Invalid_Params;
    session = *params;
    return NvBufSurfTransformError_Success;
}
HEADRACE_PUBLIC NvBufSurfTransform_Error
NvBufSurfTransformGetSessionParams(NvBufSurfTransformConfigParams *params) {
    if (params == nullptr) return NvBufSurfTransformError_Invalid_Params;
    *params = session;
    return NvBufSurfTransformError_Success;
}
