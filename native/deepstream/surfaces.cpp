// Images of a batch in main memory: NvBufSurface and what copies and maps it.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "generation.h"
#include "library.h"
#include "nvbufsurface.h"
#include "pixels.h"

using namespace headrace::deepstream;

namespace {

constexpr uint32_t kRowAlignment = 256;

bool fill(NvBufSurfaceParams &image, const NvBufSurfaceCreateParams &params) {
    const std::vector<PlaneForm> planes = planes_of(params.colorFormat);
    if (planes.empty()) return false;
    image.width = params.width;
    image.height = params.height;
    image.colorFormat = params.colorFormat;
    image.layout = params.layout;
    image.planeParams.num_planes = static_cast<uint32_t>(planes.size());
    uint32_t offset = 0;
    for (size_t i = 0; i < planes.size(); i++) {
        auto &plane = image.planeParams;
        plane.width[i] = (params.width + planes[i].divisor - 1) / planes[i].divisor;
        plane.height[i] = (params.height + planes[i].divisor - 1) / planes[i].divisor;
        plane.bytesPerPix[i] = planes[i].bytes;
        const uint32_t row = plane.width[i] * planes[i].bytes;
        plane.pitch[i] = (row + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
        plane.offset[i] = offset;
        plane.psize[i] = plane.pitch[i] * plane.height[i];
        offset += plane.psize[i];
    }
    image.pitch = image.planeParams.pitch[0];
    image.dataSize = offset;
    image.dataPtr = allocate(offset);
    return true;
}

bool has(const NvBufSurface *surface, int index) {
    return surface != nullptr && index >= -1 && index < static_cast<int>(surface->batchSize);
}

// Calls an action with each image that an index means: -1 means all.
template <typename F>
int each_image(NvBufSurface *surface, int index, F &&action) {
    if (!has(surface, index)) return -1;
    for (uint32_t i = 0; i < surface->batchSize; i++)
        if ((index < 0 || static_cast<uint32_t>(index) == i) && action(surface->surfaceList[i]))
            return -1;
    return 0;
}

// Calls an action with the place in rows without a gap, the address and the size of each row.
template <typename F>
int copy_rows(NvBufSurface *surface, unsigned int index, unsigned int plane, unsigned int width,
              unsigned int height, F &&action) {
    if (!has(surface, static_cast<int>(index))) return -1;
    const NvBufSurfaceParams &image = surface->surfaceList[index];
    const auto &all = image.planeParams;
    if (plane >= all.num_planes || width > all.width[plane] || height > all.height[plane])
        return -1;
    const size_t size = static_cast<size_t>(width) * all.bytesPerPix[plane];
    for (size_t y = 0; y < height; y++)
        action(y * size,
               static_cast<char *>(image.dataPtr) + all.offset[plane] + y * all.pitch[plane], size);
    return 0;
}

// Says once that a function of hardware is not there.
int refused(const char *name) {
    std::fprintf(stderr,
                 "headrace: %s: there is no buffer of hardware on a CPU; NvBufSurfaceMap"
                 " maps images\n",
                 name);
    return -1;
}

}  // namespace

HEADRACE_PUBLIC int NvBufSurfaceCreate(NvBufSurface **surface, uint32_t count,
                                       NvBufSurfaceCreateParams *params) {
    if (surface == nullptr || params == nullptr || count == 0 || !HEADRACE_SAME_LAYOUT) return -1;
    auto *made = static_cast<NvBufSurface *>(allocate(sizeof(NvBufSurface)));
    made->batchSize = count;
    made->gpuId = params->gpuId;
    made->memType = params->memType == NVBUF_MEM_DEFAULT ? NVBUF_MEM_CUDA_UNIFIED : params->memType;
    made->surfaceList =
        static_cast<NvBufSurfaceParams *>(allocate(count * sizeof(NvBufSurfaceParams)));
    for (uint32_t i = 0; i < count; i++) {
        if (fill(made->surfaceList[i], *params)) continue;
        std::fprintf(stderr, "headrace: NvBufSurfaceCreate: color format %d is not known\n",
                     params->colorFormat);
        NvBufSurfaceDestroy(made);
        return -1;
    }
    *surface = made;
    return 0;
}

HEADRACE_PUBLIC int NvBufSurfaceDestroy(NvBufSurface *surface) {
    if (surface == nullptr) return -1;
    for (uint32_t i = 0; i < surface->batchSize; i++) release(surface->surfaceList[i].dataPtr);
    release(surface->surfaceList);
    release(surface);
    return 0;
}

HEADRACE_PUBLIC int NvBufSurfaceMap(NvBufSurface *surface, int index, int plane,
                                    NvBufSurfaceMemMapFlags) {
    if (!HEADRACE_SAME_LAYOUT) return -1;
    return each_image(surface, index, [plane](NvBufSurfaceParams &image) {
        const auto count = static_cast<int>(image.planeParams.num_planes);
        if (image.dataPtr == nullptr || plane < -1 || plane >= count) return true;
        for (int i = 0; i < count; i++)
            if (plane < 0 || plane == i)
                image.mappedAddr.addr[i] =
                    static_cast<char *>(image.dataPtr) + image.planeParams.offset[i];
        return false;
    });
}

HEADRACE_PUBLIC int NvBufSurfaceUnMap(NvBufSurface *surface, int index, int plane) {
    return each_image(surface, index, [plane](NvBufSurfaceParams &image) {
        for (int i = 0; i < NVBUF_MAX_PLANES; i++)
            if (plane < 0 || plane == i) image.mappedAddr.addr[i] = nullptr;
        return false;
    });
}

HEADRACE_PUBLIC int NvBufSurfaceSyncForCpu(NvBufSurface *surface, int index, int) {
    return has(surface, index) ? 0 : -1;
}
HEADRACE_PUBLIC int NvBufSurfaceSyncForDevice(NvBufSurface *surface, int index, int) {
    return has(surface, index) ? 0 : -1;
}

HEADRACE_PUBLIC int NvBufSurfaceMemSet(NvBufSurface *surface, int index, int plane, uint8_t value) {
    return each_image(surface, index, [plane, value](NvBufSurfaceParams &image) {
        const auto &all = image.planeParams;
        for (uint32_t i = 0; i < all.num_planes; i++)
            if (plane < 0 || static_cast<uint32_t>(plane) == i)
                std::memset(static_cast<char *>(image.dataPtr) + all.offset[i], value,
                            static_cast<size_t>(all.pitch[i]) * all.height[i]);
        return false;
    });
}

HEADRACE_PUBLIC int NvBufSurfaceCopy(NvBufSurface *source, NvBufSurface *target) {
    if (source == nullptr || target == nullptr || source->batchSize > target->batchSize) return -1;
    for (uint32_t n = 0; n < source->batchSize; n++) {
        const auto &from = source->surfaceList[n];
        auto &into = target->surfaceList[n];
        const auto &a = from.planeParams;
        const auto &b = into.planeParams;
        if (from.width != into.width || from.height != into.height || a.num_planes != b.num_planes)
            return -1;
        for (uint32_t i = 0; i < a.num_planes; i++)
            for (uint32_t y = 0; y < a.height[i]; y++)
                std::memcpy(static_cast<char *>(into.dataPtr) + b.offset[i] + y * b.pitch[i],
                            static_cast<char *>(from.dataPtr) + a.offset[i] + y * a.pitch[i],
                            static_cast<size_t>(a.width[i]) * a.bytesPerPix[i]);
    }
    target->numFilled = source->numFilled;
    return 0;
}

// Allocation with more wishes; those beyond the usual ones have no meaning in main memory.
HEADRACE_PUBLIC int NvBufSurfaceAllocate(NvBufSurface **surface, uint32_t count,
                                         NvBufSurfaceAllocateParams *params) {
    return params == nullptr ? -1 : NvBufSurfaceCreate(surface, count, &params->params);
}

// Copies between an image's plane and rows without a gap.
HEADRACE_PUBLIC int NvBufSurface2Raw(NvBufSurface *surface, unsigned int index, unsigned int plane,
                                     unsigned int width, unsigned int height, unsigned char *into) {
    return copy_rows(
        surface, index, plane, width, height,
        [into](size_t at, char *row, size_t size) { std::memcpy(into + at, row, size); });
}
HEADRACE_PUBLIC int Raw2NvBufSurface(unsigned char *from, unsigned int index, unsigned int plane,
                                     unsigned int width, unsigned int height,
                                     NvBufSurface *surface) {
    return copy_rows(
        surface, index, plane, width, height,
        [from](size_t at, char *row, size_t size) { std::memcpy(row, from + at, size); });
}

// There are no buffers of hardware here: programs that ask for one are told, and get an error.
HEADRACE_PUBLIC int NvBufSurfaceFromFd(int, void **) { return refused("NvBufSurfaceFromFd"); }
HEADRACE_PUBLIC int NvBufSurfaceMapEglImage(NvBufSurface *, int) {
    return refused("NvBufSurfaceMapEglImage");
}
HEADRACE_PUBLIC int NvBufSurfaceUnMapEglImage(NvBufSurface *, int) { return 0; }

HEADRACE_PUBLIC int NvBufSurfaceGetDeviceInfo(NvBufSurfaceDeviceInfo *info) {
    if (info == nullptr) return -1;
    std::memset(info, 0, sizeof *info);
    info->driverType = NVBUF_DRIVER_TYPE_RM;
    info->isIntegratedGpu = false;
    return 0;
}
