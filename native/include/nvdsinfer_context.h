/* Types of the inference context that engine creators and model parsers read, in the layout of 9.1
 * or, with HEADRACE_NVDSINFER_GENERATION=6, of 6.2.
 *
 * Part of headrace, Apache-2.0. Written from a description of the binary interface. Field offsets
 * up to and including numOutputIOFormats are those of every generation from 6.0 on. Types only:
 * there is no context library to call.
 */
#ifndef HEADRACE_NVDSINFER_CONTEXT_H
#define HEADRACE_NVDSINFER_CONTEXT_H

#include "nvdsinfer.h"

#ifdef __cplusplus
extern "C" {
#endif

#define _PATH_MAX 4096
#define _MAX_STR_LENGTH 1024
#define _MAX_CHANNELS 4
#define NVDSINFER_MAX_BATCH_SIZE 1024
#define NVDSINFER_MIN_OUTPUT_BUFFERPOOL_SIZE 2

typedef enum {
    NvDsInferNetworkMode_FP32 = 0,
    NvDsInferNetworkMode_INT8,
    NvDsInferNetworkMode_FP16,
    NvDsInferNetworkMode_BEST /* since 7.0 */
} NvDsInferNetworkMode;

typedef enum {
    NvDsInferNetworkType_Detector = 0,
    NvDsInferNetworkType_Classifier,
    NvDsInferNetworkType_Segmentation,
    NvDsInferNetworkType_InstanceSegmentation,
    NvDsInferNetworkType_Other = 100
} NvDsInferNetworkType;

typedef enum {
    NvDsInferFormat_RGB = 0,
    NvDsInferFormat_BGR,
    NvDsInferFormat_GRAY,
    NvDsInferFormat_RGBA,
    NvDsInferFormat_BGRx,
    NvDsInferFormat_Tensor,
    NvDsInferFormat_Unknown = 0xFFFFFFFF
} NvDsInferFormat;

typedef enum {
    NvDsInferTensorOrder_kNCHW = 0,
    NvDsInferTensorOrder_kNHWC,
    NvDsInferTensorOrder_kNC
} NvDsInferTensorOrder;

/* Older names. */
#define NvDsInferUffOrder NvDsInferTensorOrder
#define NvDsInferUffOrder_kNCHW NvDsInferTensorOrder_kNCHW
#define NvDsInferUffOrder_kNHWC NvDsInferTensorOrder_kNHWC
#define NvDsInferUffOrder_kNC NvDsInferTensorOrder_kNC

typedef enum {
    NVDSINFER_CLUSTER_GROUP_RECTANGLES = 0,
    NVDSINFER_CLUSTER_DBSCAN,
    NVDSINFER_CLUSTER_NMS,
    NVDSINFER_CLUSTER_DBSCAN_NMS_HYBRID,
    NVDSINFER_CLUSTER_NONE
} NvDsInferClusterMode;

/* Thresholds and clustering of one class. */
typedef struct {
    union {
        float threshold _DS_DEPRECATED_("use preClusterThreshold");
        float preClusterThreshold;
    };
    float postClusterThreshold;
    float eps;
    int minBoxes;
    int groupThreshold;
    float minScore;
    float nmsIOUThreshold;
    int topK;
} NvDsInferDetectionParams;

/* The configuration as an engine creator sees it. Strings are NUL-terminated. */
typedef struct _NvDsInferContextInitParams {
    unsigned int uniqueID;
    NvDsInferNetworkMode networkMode;
    char protoFilePath[_PATH_MAX];
    char modelFilePath[_PATH_MAX];
    char uffFilePath[_PATH_MAX];
    char onnxFilePath[_PATH_MAX];
    char tltEncodedModelFilePath[_PATH_MAX];
    char int8CalibrationFilePath[_PATH_MAX];
    union {
        NvDsInferDimsCHW inputDims _DS_DEPRECATED_("use inferInputDims");
        NvDsInferDimsCHW uffDimsCHW _DS_DEPRECATED_("use inferInputDims");
    };
    NvDsInferTensorOrder uffInputOrder;
    char uffInputBlobName[_MAX_STR_LENGTH];
    NvDsInferTensorOrder netInputOrder;
    char tltModelKey[_MAX_STR_LENGTH];
    char modelEngineFilePath[_PATH_MAX];
    unsigned int maxBatchSize;
    char labelsFilePath[_PATH_MAX];
    char meanImageFilePath[_PATH_MAX];
    float networkScaleFactor;
    NvDsInferFormat networkInputFormat;
    float offsets[_MAX_CHANNELS];
    unsigned int numOffsets;
    NvDsInferNetworkType networkType;
    int useDBScan _DS_DEPRECATED_("use clusterMode");
    unsigned int numDetectedClasses;
    NvDsInferDetectionParams *perClassDetectionParams;
    float classifierThreshold;
    float segmentationThreshold;
    char **outputLayerNames;
    unsigned int numOutputLayers;
    char customLibPath[_PATH_MAX];
    char customBBoxParseFuncName[_MAX_STR_LENGTH];
    char customClassifierParseFuncName[_MAX_STR_LENGTH];
    int copyInputToHostBuffers;
    unsigned int gpuID;
    int useDLA;
    int dlaCore;
    unsigned int outputBufferPoolSize;
    char customNetworkConfigFilePath[_PATH_MAX];
    char customEngineCreateFuncName[_MAX_STR_LENGTH];
    int forceImplicitBatchDimension;
    unsigned int workspaceSize; /* MiB */
    NvDsInferDimsCHW inferInputDims;
    NvDsInferClusterMode clusterMode;
    char customBBoxInstanceMaskParseFuncName[_MAX_STR_LENGTH];
    char **outputIOFormats;
    unsigned int numOutputIOFormats;
#if HEADRACE_NVDSINFER_GENERATION >= 9
    char customSegmentationParseFuncName[_MAX_STR_LENGTH]; /* since 8.0 */
#endif
    char **layerDevicePrecisions;
    unsigned int numLayerDevicePrecisions;
    NvDsInferTensorOrder segmentationOutputOrder;
    int inputFromPreprocessedTensor;
    int disableOutputHostCopy;
#if HEADRACE_NVDSINFER_GENERATION >= 9
    int autoIncMem; /* since 6.3, as what follows */
    double maxGPUMemPer;
    int dumpIpTensor;
    int dumpOpTensor;
    int overwriteIpTensor;
    char ipTensorFilePath[_PATH_MAX];
    int overwriteOpTensor;
    char **opTensorFilePath;
    int useStronglyTyped; /* since 9.0, as all that follows */
    char **dynamicPropertyKeys;
    char **dynamicPropertyValues;
    unsigned int numDynamicProperties;
    int warmupEngine;
#endif
} NvDsInferContextInitParams;

/* One object after clustering. */
typedef struct {
    float left;
    float top;
    float width;
    float height;
    int classIndex;
    char *label;
    float confidence;
    float *mask;
    unsigned int mask_width;
    unsigned int mask_height;
    unsigned int mask_size;
    float rotation_angle; /* since 9.0, in former padding */
} NvDsInferObject;

typedef struct {
    NvDsInferObject *objects;
    unsigned int numObjects;
} NvDsInferDetectionOutput;

typedef struct {
    NvDsInferAttribute *attributes;
    unsigned int numAttributes;
    char *label;
} NvDsInferClassificationOutput;

typedef struct {
    unsigned int width;
    unsigned int height;
    unsigned int classes;
    int *class_map;               /* class_map[y * width + x] */
    float *class_probability_map; /* [c * width * height + y * width + x] */
} NvDsInferSegmentationOutput;

typedef struct {
    NvDsInferNetworkType outputType;
    union {
        NvDsInferDetectionOutput detectionOutput;
        NvDsInferClassificationOutput classificationOutput;
        NvDsInferSegmentationOutput segmentationOutput;
    };
} NvDsInferFrameOutput;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_NVDSINFER_CONTEXT_H */
