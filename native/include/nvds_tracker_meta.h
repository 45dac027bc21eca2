/* Results of trackers, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDS_TRACKER_META_H
#define HEADRACE_NVDS_TRACKER_META_H

#include "nvdsmeta.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    EMPTY = 0,
    ACTIVE = 1,
    INACTIVE = 2,
    TENTATIVE = 3,
    PROJECTED = 4,
    QUASIACTIVE = 5
} TRACKER_STATE;

typedef struct _NvDsTargetMiscDataFrame NvDsTargetMiscDataFrame;
typedef struct _NvDsTargetMiscDataObject NvDsTargetMiscDataObject;
typedef struct _NvDsTargetMiscDataStream NvDsTargetMiscDataStream;
typedef struct _NvDsTargetMiscDataBatch NvDsTargetMiscDataBatch;
typedef struct _NvDsReidTensorBatch NvDsReidTensorBatch;
typedef struct _NvDsObjReid NvDsObjReid;
typedef struct _NvDsObjConvexHull NvDsObjConvexHull;
typedef struct _NvDsObj3DBbox NvDsObj3DBbox;

struct _NvDsTargetMiscDataFrame {
    uint32_t frameNum;
    NvOSD_RectParams tBbox;
    float confidence;
    uint32_t age;
    TRACKER_STATE trackerState;
    float visibility;
    float ptWorldFeet[2];
};

struct _NvDsTargetMiscDataObject {
    NvDsTargetMiscDataFrame* list;
    uint32_t numObj;
    uint32_t numAllocated;
    uint64_t uniqueId;
    uint16_t classId;
    char objLabel[128];
};

struct _NvDsTargetMiscDataStream {
    NvDsTargetMiscDataObject* list;
    uint32_t streamID;
    uint64_t surfaceStreamID;
    uint32_t numAllocated;
    uint32_t numFilled;
};

struct _NvDsTargetMiscDataBatch {
    NvDsTargetMiscDataStream* list;
    uint32_t numAllocated;
    uint32_t numFilled;
    void* priv_data;
};

struct _NvDsReidTensorBatch {
    uint32_t featureSize;
    uint32_t numFilled;
    float* ptr_host;
    float* ptr_dev;
    void* priv_data;
};

struct _NvDsObjReid {
    uint32_t featureSize;
    float* ptr_host;
    float* ptr_dev;
};

struct _NvDsObjConvexHull {
    int* list;
    uint32_t numPointsAllocated;
    uint32_t numPoints;
};

struct _NvDsObj3DBbox {
    float xCentre;
    float yCentre;
    float zCentre;
    float xLen;
    float yLen;
    float zLen;
    float xRot;
    float yRot;
    float zRot;
    float xVel;
    float yVel;
    float zVel;
};

#ifdef __cplusplus
}
#endif

#endif
