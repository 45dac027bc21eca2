/* The interface for low-level trackers, in the layout of 9.1, or of HEADRACE_NVMOT:
 * compile with -DHEADRACE_NVMOT=630 for 6.3 (500, 600, 630, 640, 700, 800, 900, 910).
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDSTRACKER_H
#define HEADRACE_NVDSTRACKER_H

#ifndef HEADRACE_NVMOT
#define HEADRACE_NVMOT 910
#endif

#include <stdint.h>
#include <time.h>
#ifdef __cplusplus
#include <string>
#endif

#include "nvbufsurface.h"
#include "nvds_tracker_meta.h"

#if HEADRACE_NVMOT < 900
/* Records without what came with 9.0. */
typedef struct _HeadraceOldRect {
    float left;
    float top;
    float width;
    float height;
    uint64_t style[11];
} HeadraceOldRect;
typedef struct _HeadraceOldFrame {
    uint32_t frameNum;
    HeadraceOldRect tBbox;
    float confidence;
    uint32_t age;
#if HEADRACE_NVMOT >= 640
    uint32_t trackerState;
#endif
#if HEADRACE_NVMOT >= 640
    float visibility;
#endif
} HeadraceOldFrame;
typedef struct _HeadraceOldObject {
    HeadraceOldFrame* list;
    uint32_t numObj;
    uint32_t numAllocated;
    uint64_t uniqueId;
    uint16_t classId;
    char objLabel[128];
} HeadraceOldObject;
typedef struct _HeadraceOldStream {
    HeadraceOldObject* list;
    uint32_t streamID;
    uint64_t surfaceStreamID;
    uint32_t numAllocated;
    uint32_t numFilled;
} HeadraceOldStream;
typedef struct _HeadraceOldBatch {
    HeadraceOldStream* list;
    uint32_t numAllocated;
    uint32_t numFilled;
#if HEADRACE_NVMOT >= 630
    void* priv_data;
#endif
} HeadraceOldBatch;
#define NvDsTargetMiscDataFrame HeadraceOldFrame
#define NvDsTargetMiscDataObject HeadraceOldObject
#define NvDsTargetMiscDataStream HeadraceOldStream
#define NvDsTargetMiscDataBatch HeadraceOldBatch
#endif
#if HEADRACE_NVMOT < 640
#define NvDsPastFrameObj NvDsTargetMiscDataFrame
#define NvDsPastFrameObjList NvDsTargetMiscDataObject
#define NvDsPastFrameObjStream NvDsTargetMiscDataStream
#define NvDsPastFrameObjBatch NvDsTargetMiscDataBatch
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define NVMOT_MAX_TRANSFORMS 4
#define NVMOTCOMP_GPU 0x01
#define NVMOTCOMP_CPU 0x02
#define NVMOTCOMP_PVA 0x04
#define NVMOTCOMP_ANY 0xff
#define NVMOTCOMP_DEFAULT NVMOTCOMP_ANY

typedef uint64_t NvMOTStreamId;
typedef uint32_t NvMOTFrameNum;
typedef uint16_t NvMOTClassId;
typedef uint8_t NvMOTCompute;
typedef struct NvMOTContext *NvMOTContextHandle;

typedef enum {
    NvMOTConfigStatus_OK,
    NvMOTConfigStatus_Error,
    NvMOTConfigStatus_Invalid,
    NvMOTConfigStatus_Unsupported
} NvMOTConfigStatus;

typedef enum {
    NvMOTBatchMode_Error = 0,
    NvMOTBatchMode_Batch = 1,
    NvMOTBatchMode_NonBatch = 2,
    NvMOTBatchMode_MaxValue = 3
} NvMOTBatchMode;

typedef enum { NvMOTStatus_OK, NvMOTStatus_Error, NvMOTStatus_Invalid_Path } NvMOTStatus;

typedef struct _NvMOTPerTransformBatchConfig {
    NvBufSurfaceMemType bufferType;
    uint32_t maxWidth;
    uint32_t maxHeight;
    uint32_t maxPitch;
    uint32_t maxSize;
#if HEADRACE_NVMOT < 700
    uint32_t colorFormat;
#endif
} NvMOTPerTransformBatchConfig;

typedef struct _NvMOTMiscConfig {
    uint32_t gpuId;
#if HEADRACE_NVMOT < 700
    uint32_t maxObjPerStream;
#endif
#if HEADRACE_NVMOT < 700
    uint32_t maxObjPerBatch;
#endif
} NvMOTMiscConfig;

typedef struct _NvMOTConfig {
    NvMOTCompute computeConfig;
    uint32_t maxStreams;
#if HEADRACE_NVMOT >= 600
    uint32_t maxBufSurfAddrSize;
#endif
    uint8_t numTransforms;
    NvMOTPerTransformBatchConfig* perTransformBatchConfig;
    NvMOTMiscConfig miscConfig;
    uint16_t customConfigFilePathSize;
    char* customConfigFilePath;
} NvMOTConfig;

typedef struct _NvMOTConfigResponse {
    NvMOTConfigStatus summaryStatus;
    NvMOTConfigStatus computeStatus;
    NvMOTConfigStatus transformBatchStatus;
    NvMOTConfigStatus miscConfigStatus;
    NvMOTConfigStatus customConfigStatus;
} NvMOTConfigResponse;

typedef struct _NvMOTRect {
    float x;
    float y;
    float width;
    float height;
} NvMOTRect;

#if HEADRACE_NVMOT >= 800
typedef struct _NvMOTMask {
    float* data;
    uint32_t width;
    uint32_t height;
    uint32_t allocatedSize;
} NvMOTMask;
#endif

typedef struct _NvMOTObjToTrack {
    uint16_t classId;
    NvMOTRect bbox;
    float confidence;
    bool doTracking;
    void* pPreservedData;
} NvMOTObjToTrack;

typedef struct _NvMOTObjToTrackList {
    bool detectionDone;
    NvMOTObjToTrack* list;
    uint32_t numAllocated;
    uint32_t numFilled;
} NvMOTObjToTrackList;

#if HEADRACE_NVMOT >= 910
typedef struct _NvMOTTimeMeta {
    uint32_t frameNum;
    uint64_t frameTimeStamp;
    uint64_t localTimestamp;
    bool frameTimeValid;
} NvMOTTimeMeta;
#endif

typedef struct _NvMOTFrame {
    NvMOTStreamId streamID;
#if HEADRACE_NVMOT >= 640
    uint32_t seq_index;
#endif
    uint32_t frameNum;
#if HEADRACE_NVMOT >= 910
    NvMOTTimeMeta timeMeta;
#endif
#if HEADRACE_NVMOT >= 600
    uint32_t srcFrameWidth;
#endif
#if HEADRACE_NVMOT >= 600
    uint32_t srcFrameHeight;
#endif
#if HEADRACE_NVMOT < 910
    time_t timeStamp;
#endif
#if HEADRACE_NVMOT < 910
    bool timeStampValid;
#endif
    bool doTracking;
    bool reset;
    uint8_t numBuffers;
    NvBufSurfaceParams** bufferList;
    NvMOTObjToTrackList objectsIn;
#if HEADRACE_NVMOT >= 910
    char* sensorName;
#endif
} NvMOTFrame;

typedef struct _NvMOTTrackedObj {
    uint16_t classId;
    uint64_t trackingId;
    NvMOTRect bbox;
    float confidence;
    uint32_t age;
    NvMOTObjToTrack* associatedObjectIn;
#if HEADRACE_NVMOT >= 630 && HEADRACE_NVMOT < 700
    int32_t reidInd;
#endif
#if HEADRACE_NVMOT >= 700
    NvDsObjReid reid;
#endif
#if HEADRACE_NVMOT >= 640
    float visibility;
#endif
#if HEADRACE_NVMOT >= 640
    float ptImgFeet[2];
#endif
#if HEADRACE_NVMOT >= 640
    float ptWorldFeet[2];
#endif
#if HEADRACE_NVMOT >= 640
    NvDsObjConvexHull convexHull;
#endif
#if HEADRACE_NVMOT >= 800
    NvMOTMask mask;
#endif
#if HEADRACE_NVMOT >= 800
    NvDsObj3DBbox bbox3DWorld;
#endif
#if HEADRACE_NVMOT >= 800
    float bbox3DImg[8][2];
#endif
    uint8_t reserved[128];
} NvMOTTrackedObj;

typedef struct _NvMOTTrackedObjList {
    NvMOTStreamId streamID;
    uint32_t frameNum;
    bool valid;
    NvMOTTrackedObj* list;
    uint32_t numAllocated;
    uint32_t numFilled;
} NvMOTTrackedObjList;

typedef struct _NvMOTTrackedObjBatch {
    NvMOTTrackedObjList* list;
    uint32_t numAllocated;
    uint32_t numFilled;
#if HEADRACE_NVMOT >= 630
    NvDsReidTensorBatch* pReidTensorBatch;
#endif
} NvMOTTrackedObjBatch;

#if HEADRACE_NVMOT >= 630
typedef struct _NvMOTTrackerMiscData {
    NvDsTargetMiscDataBatch* pPastFrameObjBatch;
#if HEADRACE_NVMOT >= 640
    NvDsTargetMiscDataBatch* pTerminatedTrackBatch;
#endif
#if HEADRACE_NVMOT >= 640
    NvDsTargetMiscDataBatch* pShadowTrackBatch;
#endif
} NvMOTTrackerMiscData;
#endif

typedef struct _NvMOTProcessParams {
    uint32_t numFrames;
    NvMOTFrame* frameList;
} NvMOTProcessParams;

typedef struct _NvMOTQuery {
    NvMOTCompute computeConfig;
    uint8_t numTransforms;
#if HEADRACE_NVMOT < 630
    NvBufSurfaceColorFormat colorFormats[4];
#endif
#if HEADRACE_NVMOT >= 630
    NvBufSurfaceColorFormat colorFormats[1];
#endif
    NvBufSurfaceMemType memType;
#if HEADRACE_NVMOT >= 630
    uint32_t maxTargetsPerStream;
#endif
#if HEADRACE_NVMOT >= 630
    uint32_t maxShadowTrackingAge;
#endif
#if HEADRACE_NVMOT >= 630
    bool outputReidTensor;
#endif
#if HEADRACE_NVMOT >= 630
    uint32_t reidFeatureSize;
#endif
#if HEADRACE_NVMOT >= 630
    bool outputTrajectory;
#endif
#if HEADRACE_NVMOT >= 640
    bool outputVisibility;
#endif
#if HEADRACE_NVMOT >= 640
    bool outputFootLocation;
#endif
#if HEADRACE_NVMOT >= 640
    bool outputConvexHull;
#endif
#if HEADRACE_NVMOT >= 640
    uint32_t maxConvexHullSize;
#endif
#if HEADRACE_NVMOT < 600
    bool supportBatchProcessing;
#endif
    bool supportPastFrame;
#if HEADRACE_NVMOT >= 600
    NvMOTBatchMode batchMode;
#endif
#if HEADRACE_NVMOT >= 640
    bool outputTerminatedTracks;
#endif
#if HEADRACE_NVMOT >= 640
    uint32_t maxTrajectoryBufferLength;
#endif
#if HEADRACE_NVMOT >= 640
    bool outputShadowTracks;
#endif
#if HEADRACE_NVMOT >= 700
    NvMOTContextHandle contextHandle;
#endif
} NvMOTQuery;

NvMOTStatus NvMOT_Query(uint16_t length, char *config, NvMOTQuery *query);
NvMOTStatus NvMOT_Init(NvMOTConfig *config, NvMOTContextHandle *context,
                       NvMOTConfigResponse *response);
void NvMOT_DeInit(NvMOTContextHandle context);
NvMOTStatus NvMOT_Process(NvMOTContextHandle context, NvMOTProcessParams *params,
                          NvMOTTrackedObjBatch *tracked);
#if HEADRACE_NVMOT < 630
NvMOTStatus NvMOT_ProcessPast(NvMOTContextHandle context, NvMOTProcessParams *params,
                              NvDsPastFrameObjBatch *past);
#else
NvMOTStatus NvMOT_RetrieveMiscData(NvMOTContextHandle context, NvMOTProcessParams *params,
                                   NvMOTTrackerMiscData *data);
#endif
#if HEADRACE_NVMOT < 600
void NvMOT_RemoveStreams(NvMOTContextHandle context, NvMOTStreamId mask);
#else
NvMOTStatus NvMOT_RemoveStreams(NvMOTContextHandle context, NvMOTStreamId mask);
#endif

#ifdef __cplusplus
}
#if HEADRACE_NVMOT >= 800
extern "C" NvMOTStatus NvMOT_UpdateParams(NvMOTContextHandle context, const std::string &text);
#endif
#endif

#endif
