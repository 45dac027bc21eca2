/* Images of a batch, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVBUFSURFACE_H
#define HEADRACE_NVBUFSURFACE_H

#include "headrace/glib.h"
#include "headrace/generation.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NVBUFSURFACE_CHROMA_SUBSAMPLING_HORIZ_DEFAULT 0
#define NVBUFSURFACE_CHROMA_SUBSAMPLING_VERT_DEFAULT 1
#define NVBUFSURFACE_CHROMA_SUBSAMPLING_PARAMS_DEFAULT {0, 1}
#define STRUCTURE_PADDING 4
#define NVBUF_MAX_PLANES 4
#define NVBUF_ALIGN_VAL 256

typedef enum {
    NVBUF_MEM_DEFAULT = 0,
    NVBUF_MEM_CUDA_PINNED = 1,
    NVBUF_MEM_CUDA_DEVICE = 2,
    NVBUF_MEM_CUDA_UNIFIED = 3,
    NVBUF_MEM_SURFACE_ARRAY = 4,
    NVBUF_MEM_HANDLE = 5,
    NVBUF_MEM_SYSTEM = 6,
    NVBUF_MEM_CUDA_ARRAY = 7
} NvBufSurfaceMemType;

typedef enum {
    NVBUF_MAP_READ = 0,
    NVBUF_MAP_WRITE = 1,
    NVBUF_MAP_READ_WRITE = 2
} NvBufSurfaceMemMapFlags;

typedef enum {
    NVBUF_LAYOUT_PITCH = 0,
    NVBUF_LAYOUT_BLOCK_LINEAR = 1
} NvBufSurfaceLayout;

typedef enum {
    NVBUF_DISPLAYSCANFORMAT_PROGRESSIVE = 0,
    NVBUF_DISPLAYSCANFORMAT_INTERLACED = 1
} NvBufSurfaceDisplayScanFormat;

typedef enum {
    NvBufSurfaceTag_NONE = 0,
    NvBufSurfaceTag_CAMERA = 512,
    NvBufSurfaceTag_VIDEO_CONVERT = 3841,
    NvBufSurfaceTag_VIDEO_ENC = 4608,
    NvBufSurfaceTag_VIDEO_DEC = 5120,
    NvBufSurfaceTag_JPEG = 5376,
    NvBufSurfaceTag_PROTECTED = 5380
} NvBufSurfaceTag;

typedef enum {
    NVBUF_COLOR_FORMAT_INVALID = 0,
    NVBUF_COLOR_FORMAT_GRAY8 = 1,
    NVBUF_COLOR_FORMAT_YUV420 = 2,
    NVBUF_COLOR_FORMAT_YVU420 = 3,
    NVBUF_COLOR_FORMAT_YUV420_ER = 4,
    NVBUF_COLOR_FORMAT_YVU420_ER = 5,
    NVBUF_COLOR_FORMAT_NV12 = 6,
    NVBUF_COLOR_FORMAT_NV12_ER = 7,
    NVBUF_COLOR_FORMAT_NV21 = 8,
    NVBUF_COLOR_FORMAT_NV21_ER = 9,
    NVBUF_COLOR_FORMAT_UYVY = 10,
    NVBUF_COLOR_FORMAT_UYVY_ER = 11,
    NVBUF_COLOR_FORMAT_VYUY = 12,
    NVBUF_COLOR_FORMAT_VYUY_ER = 13,
    NVBUF_COLOR_FORMAT_YUYV = 14,
    NVBUF_COLOR_FORMAT_YUYV_ER = 15,
    NVBUF_COLOR_FORMAT_YVYU = 16,
    NVBUF_COLOR_FORMAT_YVYU_ER = 17,
    NVBUF_COLOR_FORMAT_YUV444 = 18,
    NVBUF_COLOR_FORMAT_RGBA = 19,
    NVBUF_COLOR_FORMAT_BGRA = 20,
    NVBUF_COLOR_FORMAT_ARGB = 21,
    NVBUF_COLOR_FORMAT_ABGR = 22,
    NVBUF_COLOR_FORMAT_RGBx = 23,
    NVBUF_COLOR_FORMAT_BGRx = 24,
    NVBUF_COLOR_FORMAT_xRGB = 25,
    NVBUF_COLOR_FORMAT_xBGR = 26,
    NVBUF_COLOR_FORMAT_RGB = 27,
    NVBUF_COLOR_FORMAT_BGR = 28,
    NVBUF_COLOR_FORMAT_NV12_10LE = 29,
    NVBUF_COLOR_FORMAT_NV12_12LE = 30,
    NVBUF_COLOR_FORMAT_YUV420_709 = 31,
    NVBUF_COLOR_FORMAT_YUV420_709_ER = 32,
    NVBUF_COLOR_FORMAT_NV12_709 = 33,
    NVBUF_COLOR_FORMAT_NV12_709_ER = 34,
    NVBUF_COLOR_FORMAT_YUV420_2020 = 35,
    NVBUF_COLOR_FORMAT_NV12_2020 = 36,
    NVBUF_COLOR_FORMAT_NV12_10LE_ER = 37,
    NVBUF_COLOR_FORMAT_NV12_10LE_709 = 38,
    NVBUF_COLOR_FORMAT_NV12_10LE_709_ER = 39,
    NVBUF_COLOR_FORMAT_NV12_10LE_2020 = 40,
    NVBUF_COLOR_FORMAT_SIGNED_R16G16 = 41,
    NVBUF_COLOR_FORMAT_R8_G8_B8 = 42,
    NVBUF_COLOR_FORMAT_B8_G8_R8 = 43,
    NVBUF_COLOR_FORMAT_R32F_G32F_B32F = 44,
    NVBUF_COLOR_FORMAT_B32F_G32F_R32F = 45,
    NVBUF_COLOR_FORMAT_YUV422 = 46,
    NVBUF_COLOR_FORMAT_NV21_10LE = 47,
    NVBUF_COLOR_FORMAT_NV21_12LE = 48,
    NVBUF_COLOR_FORMAT_NV12_12LE_2020 = 49,
    NVBUF_COLOR_FORMAT_NV16 = 50,
    NVBUF_COLOR_FORMAT_NV16_10LE = 51,
    NVBUF_COLOR_FORMAT_NV24 = 52,
    NVBUF_COLOR_FORMAT_NV24_10LE = 53,
    NVBUF_COLOR_FORMAT_NV16_ER = 54,
    NVBUF_COLOR_FORMAT_NV24_ER = 55,
    NVBUF_COLOR_FORMAT_NV16_709 = 56,
    NVBUF_COLOR_FORMAT_NV24_709 = 57,
    NVBUF_COLOR_FORMAT_NV16_709_ER = 58,
    NVBUF_COLOR_FORMAT_NV24_709_ER = 59,
    NVBUF_COLOR_FORMAT_NV24_10LE_709 = 60,
    NVBUF_COLOR_FORMAT_NV24_10LE_709_ER = 61,
    NVBUF_COLOR_FORMAT_NV24_10LE_2020 = 62,
    NVBUF_COLOR_FORMAT_NV24_12LE_2020 = 63,
    NVBUF_COLOR_FORMAT_RGBA_10_10_10_2_709 = 64,
    NVBUF_COLOR_FORMAT_RGBA_10_10_10_2_2020 = 65,
    NVBUF_COLOR_FORMAT_BGRA_10_10_10_2_709 = 66,
    NVBUF_COLOR_FORMAT_BGRA_10_10_10_2_2020 = 67,
    NVBUF_COLOR_FORMAT_A32 = 68,
    NVBUF_COLOR_FORMAT_UYVP = 69,
    NVBUF_COLOR_FORMAT_UYVP_ER = 70,
    NVBUF_COLOR_FORMAT_YUV444_ER = 71,
    NVBUF_COLOR_FORMAT_YUV444_709 = 72,
    NVBUF_COLOR_FORMAT_YUV444_709_ER = 73,
    NVBUF_COLOR_FORMAT_YUV444_2020 = 74,
    NVBUF_COLOR_FORMAT_YUV444_10LE = 75,
    NVBUF_COLOR_FORMAT_YUV444_10LE_ER = 76,
    NVBUF_COLOR_FORMAT_YUV444_10LE_709 = 77,
    NVBUF_COLOR_FORMAT_YUV444_10LE_709_ER = 78,
    NVBUF_COLOR_FORMAT_YUV444_10LE_2020 = 79,
    NVBUF_COLOR_FORMAT_YUV444_12LE = 80,
    NVBUF_COLOR_FORMAT_YUV444_12LE_ER = 81,
    NVBUF_COLOR_FORMAT_YUV444_12LE_709 = 82,
    NVBUF_COLOR_FORMAT_YUV444_12LE_709_ER = 83,
    NVBUF_COLOR_FORMAT_YUV444_12LE_2020 = 84,
    NVBUF_COLOR_FORMAT_NV12_12LE_ER = 85,
    NVBUF_COLOR_FORMAT_NV12_12LE_709 = 86,
    NVBUF_COLOR_FORMAT_NV12_12LE_709_ER = 87,
    NVBUF_COLOR_FORMAT_GRAY8_ER = 88,
    NVBUF_COLOR_FORMAT_UYVY_709 = 89,
    NVBUF_COLOR_FORMAT_UYVY_709_ER = 90,
    NVBUF_COLOR_FORMAT_UYVY_2020 = 91,
    NVBUF_COLOR_FORMAT_GRAY16_LE = 92,
    NVBUF_COLOR_FORMAT_BGRA64_LE = 93,
    NVBUF_COLOR_FORMAT_NV16_2020 = 94,
    NVBUF_COLOR_FORMAT_NV16_10LE_ER = 95,
    NVBUF_COLOR_FORMAT_NV16_10LE_709 = 96,
    NVBUF_COLOR_FORMAT_NV16_10LE_709_ER = 97,
    NVBUF_COLOR_FORMAT_NV16_10LE_2020 = 98,
    NVBUF_COLOR_FORMAT_NV16_12LE = 99,
    NVBUF_COLOR_FORMAT_NV16_12LE_ER = 100,
    NVBUF_COLOR_FORMAT_NV16_12LE_709 = 101,
    NVBUF_COLOR_FORMAT_NV16_12LE_709_ER = 102,
    NVBUF_COLOR_FORMAT_NV16_12LE_2020 = 103,
    NVBUF_COLOR_FORMAT_NV24_2020 = 104,
    NVBUF_COLOR_FORMAT_NV24_10LE_ER = 105,
    NVBUF_COLOR_FORMAT_NV24_12LE = 106,
    NVBUF_COLOR_FORMAT_NV24_12LE_ER = 107,
    NVBUF_COLOR_FORMAT_NV24_12LE_709 = 108,
    NVBUF_COLOR_FORMAT_NV24_12LE_709_ER = 109,
    NVBUF_COLOR_FORMAT_UYVP_709 = 110,
    NVBUF_COLOR_FORMAT_UYVP_709_ER = 111,
    NVBUF_COLOR_FORMAT_UYVP_2020 = 112,
    NVBUF_COLOR_FORMAT_LAST = 113
} NvBufSurfaceColorFormat;

typedef enum {
    NVBUF_DRIVER_TYPE_UNKNOWN = 0,
    NVBUF_DRIVER_TYPE_NVGPU = 1,
    NVBUF_DRIVER_TYPE_RM = 2
} NvBufSurfaceDriverType;

typedef enum {
    NVBUF_PLATFORM_TYPE_UNKNOWN = 0,
    NVBUF_PLATFORM_TYPE_T186 = 1,
    NVBUF_PLATFORM_TYPE_T194 = 2,
    NVBUF_PLATFORM_TYPE_T210 = 3,
    NVBUF_PLATFORM_TYPE_T234 = 4,
    NVBUF_PLATFORM_TYPE_T256 = 5,
    NVBUF_PLATFORM_TYPE_T264 = 6
} NvBufSurfacePlatformType;

typedef struct _NvBufSurfacePlaneParams NvBufSurfacePlaneParams;
typedef struct _NvBufSurfaceMappedAddr NvBufSurfaceMappedAddr;
typedef struct _NvBufSurfaceChromaSubsamplingParams NvBufSurfaceChromaSubsamplingParams;
typedef struct _NvBufSurfacePlaneParamsEx NvBufSurfacePlaneParamsEx;
typedef struct _NvBufSurfaceParamsEx NvBufSurfaceParamsEx;
typedef struct _NvBufSurfaceParams NvBufSurfaceParams;
typedef struct _NvBufSurface NvBufSurface;
typedef struct _NvBufSurfaceCreateParams NvBufSurfaceCreateParams;
typedef struct _NvBufSurfaceAllocateParams NvBufSurfaceAllocateParams;
typedef struct _NvBufSurfaceMapPlaneParams NvBufSurfaceMapPlaneParams;
typedef struct _NvBufSurfaceMapParams NvBufSurfaceMapParams;
typedef struct _NvBufSurfaceExtendedMapParams NvBufSurfaceExtendedMapParams;
typedef struct _NvBufSurfaceCudaBuffer NvBufSurfaceCudaBuffer;
typedef struct _NvBufSurfaceNvmmBuffer NvBufSurfaceNvmmBuffer;
typedef struct _NvBufSurfaceCudaIpcMemHandle NvBufSurfaceCudaIpcMemHandle;
typedef struct _NvBufSurfaceDeviceInfo NvBufSurfaceDeviceInfo;
typedef struct _NvBufSurfaceGPUL2SyncParams NvBufSurfaceGPUL2SyncParams;
typedef int NvBufSurfaceGPUL2SyncCacheOps;

struct _NvBufSurfacePlaneParams {
    uint32_t num_planes;
    uint32_t width[4];
    uint32_t height[4];
    uint32_t pitch[4];
    uint32_t offset[4];
    uint32_t psize[4];
    uint32_t bytesPerPix[4];
    void* _reserved[16];
};

struct _NvBufSurfaceMappedAddr {
    void* addr[4];
    void* eglImage;
    void* nvmmPtr;
    void* cudaPtr;
    void* _reserved[4];
};

struct _NvBufSurfaceChromaSubsamplingParams {
    uint8_t chromaLocHoriz;
    uint8_t chromaLocVert;
    uint8_t _reserved[6];
};

struct _NvBufSurfacePlaneParamsEx {
    NvBufSurfaceDisplayScanFormat scanformat[4];
    uint32_t secondfieldoffset[4];
    uint32_t blockheightlog2[4];
    uint32_t physicaladdress[4];
    uint64_t flags[4];
    uint64_t drmModifier[4];
    void* _reserved[16];
};

struct _NvBufSurfaceParamsEx {
    int32_t startofvaliddata;
    int32_t sizeofvaliddatainbytes;
    NvBufSurfaceChromaSubsamplingParams chromaSubsampling;
    bool is_protected;
    NvBufSurfacePlaneParamsEx planeParamsex;
    void* _reserved[4];
};

struct _NvBufSurfaceParams {
    uint32_t width;
    uint32_t height;
    uint32_t pitch;
    NvBufSurfaceColorFormat colorFormat;
    NvBufSurfaceLayout layout;
    uint64_t bufferDesc;
    uint32_t dataSize;
    void* dataPtr;
    NvBufSurfacePlaneParams planeParams;
    NvBufSurfaceMappedAddr mappedAddr;
    NvBufSurfaceParamsEx* paramex;
    NvBufSurfaceCudaBuffer* cudaBuffer;
    void* _reserved[4];
};

struct _NvBufSurface {
    uint32_t gpuId;
    uint32_t batchSize;
    uint32_t numFilled;
    bool isContiguous;
    NvBufSurfaceMemType memType;
    NvBufSurfaceParams* surfaceList;
    bool isImportedBuf;
    void* _reserved[4];
};

struct _NvBufSurfaceCreateParams {
    uint32_t gpuId;
    uint32_t width;
    uint32_t height;
    uint32_t size;
    bool isContiguous;
    NvBufSurfaceColorFormat colorFormat;
    NvBufSurfaceLayout layout;
    NvBufSurfaceMemType memType;
    void* _reserved[4];
};

struct _NvBufSurfaceAllocateParams {
    NvBufSurfaceCreateParams params;
    NvBufSurfaceDisplayScanFormat displayscanformat;
    NvBufSurfaceChromaSubsamplingParams chromaSubsampling;
    NvBufSurfaceTag memtag;
    bool disablePitchPadding;
    uint32_t _reservedParam;
    void* _reserved[4];
};

struct _NvBufSurfaceMapPlaneParams {
    uint32_t width;
    uint32_t height;
    uint32_t pitch;
    uint32_t offset;
    uint32_t psize;
    uint32_t secondfieldoffset;
    uint32_t blockheightlog2;
    uint64_t flags;
    uint8_t reserved[64];
};

struct _NvBufSurfaceMapParams {
    uint32_t num_planes;
    uint32_t gpuId;
    uint64_t fd;
    uint32_t totalSize;
    NvBufSurfaceMemType memType;
    NvBufSurfaceLayout layout;
    NvBufSurfaceDisplayScanFormat scanformat;
    NvBufSurfaceColorFormat colorFormat;
    NvBufSurfaceChromaSubsamplingParams chromaSubsampling;
    NvBufSurfaceMapPlaneParams planes[4];
    void* extendedMapParams;
    void* _reserved[4];
};

struct _NvBufSurfaceCudaBuffer {
    void* basePtr;
    void* dataPtr;
    void* extMem;
    void* mipmap;
    uint8_t reserved[64];
};

struct _NvBufSurfaceNvmmBuffer {
    void* dataPtr;
    uint64_t bufferDesc;
    uint8_t reserved[64];
};

struct _NvBufSurfaceCudaIpcMemHandle {
    char reserved[64];
};

struct _NvBufSurfaceExtendedMapParams {
    NvBufSurfaceCudaIpcMemHandle memHandle;
    void* reserved[64];
};

struct _NvBufSurfaceDeviceInfo {
    NvBufSurfaceDriverType driverType;
    bool isVicPresent;
    bool isIntegratedGpu;
    bool reserved1;
    bool reserved2;
    NvBufSurfacePlatformType platformType;
    uint8_t reserved[60];
};

struct _NvBufSurfaceGPUL2SyncParams {
    NvBufSurfaceGPUL2SyncCacheOps type;
    void* reserved[4];
};

int NvBufSurface2Raw(NvBufSurface * Surf,unsigned int index,unsigned int plane,unsigned int out_width,unsigned int out_height,unsigned char * ptr);
int NvBufSurfaceAllocate(NvBufSurface ** surf,uint32_t batchSize,NvBufSurfaceAllocateParams * paramsext);
int NvBufSurfaceCopy(NvBufSurface * srcSurf,NvBufSurface * dstSurf);
int NvBufSurfaceCreate(NvBufSurface ** surf,uint32_t batchSize,NvBufSurfaceCreateParams * params);
int NvBufSurfaceDestroy(NvBufSurface * surf);
int NvBufSurfaceFromFd(int dmabuf_fd,void ** buffer);
int NvBufSurfaceGetDeviceInfo(NvBufSurfaceDeviceInfo * info);
int NvBufSurfaceGetMapParams(const NvBufSurface * surf,int index,NvBufSurfaceMapParams * params);
int NvBufSurfaceImport(NvBufSurface ** out_nvbuf_surf,const NvBufSurfaceMapParams * in_params);
int NvBufSurfaceMap(NvBufSurface * surf,int index,int plane,NvBufSurfaceMemMapFlags type);
int NvBufSurfaceMapCudaBuffer(NvBufSurface * surf,int index);
int NvBufSurfaceMapEglImage(NvBufSurface * surf,int index);
int NvBufSurfaceMapNvmmBuffer(NvBufSurface * surf,int index);
int NvBufSurfaceMemSet(NvBufSurface * surf,int index,int plane,uint8_t value);
int NvBufSurfaceSyncForCpu(NvBufSurface * surf,int index,int plane);
int NvBufSurfaceSyncForDevice(NvBufSurface * surf,int index,int plane);
int NvBufSurfaceSyncGpuL2CacheForDevice(NvBufSurface * surf,int index,NvBufSurfaceGPUL2SyncParams * params);
int NvBufSurfaceUnMap(NvBufSurface * surf,int index,int plane);
int NvBufSurfaceUnMapCudaBuffer(NvBufSurface * surf,int index);
int NvBufSurfaceUnMapEglImage(NvBufSurface * surf,int index);
int NvBufSurfaceUnMapNvmmBuffer(NvBufSurface * surf,int index);
int Raw2NvBufSurface(unsigned char * ptr,unsigned int index,unsigned int plane,unsigned int in_width,unsigned int in_height,NvBufSurface * Surf);

#ifdef __cplusplus
}
#endif

#endif
