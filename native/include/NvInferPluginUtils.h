// Parameters of the standard plugins. Part of headrace, Apache-2.0.
#if !defined(HEADRACE_NV_INFER_PLUGIN_UTILS_H) && !defined(NV_INFER_PLUGIN_UTILS_H)
#define HEADRACE_NV_INFER_PLUGIN_UTILS_H
#define NV_INFER_PLUGIN_UTILS_H  // NVIDIA's own header, before or after this one, declares the same

#include "NvInferRuntimeCommon.h"

namespace nvinfer1 {
namespace plugin {

enum class CodeTypeSSD : int32_t { CORNER = 0, CENTER_SIZE = 1, CORNER_SIZE = 2, TF_CENTER = 3 };

struct Quadruple {
    int32_t data[4];
};

struct PriorBoxParameters {
    float *minSize, *maxSize, *aspectRatios;
    int32_t numMinSize, numMaxSize, numAspectRatios;
    bool flip, clip;
    float variance[4];
    int32_t imgH, imgW;
    float stepH, stepW, offset;
};

struct RPROIParams {
    int32_t poolingH, poolingW, featureStride, preNmsTop, nmsMaxOut;
    int32_t anchorsRatioCount, anchorsScaleCount;
    float iouThreshold, minBoxSize, spatialScale;
};

struct GridAnchorParameters {
    float minSize, maxSize;
    float *aspectRatios;
    int32_t numAspectRatios, H, W;
    float variance[4];
};

struct DetectionOutputParameters {
    bool shareLocation, varianceEncodedInTarget;
    int32_t backgroundLabelId, numClasses, topK, keepTopK;
    float confidenceThreshold, nmsThreshold;
    CodeTypeSSD codeType;
    int32_t inputOrder[3];
    bool confSigmoid, isNormalized, isBatchAgnostic;
};

struct softmaxTree {
    int32_t *leaf;
    int32_t n;
    int32_t *parent, *child, *group;
    char **name;
    int32_t groups;
    int32_t *groupSize, *groupOffset;
};

struct RegionParameters {
    int32_t num, coords, classes;
    softmaxTree *smTree;
};

struct NMSParameters {
    bool shareLocation;
    int32_t backgroundLabelId, numClasses, topK, keepTopK;
    float scoreThreshold, iouThreshold;
    bool isNormalized;
};

}  // namespace plugin
}  // namespace nvinfer1

#endif  // HEADRACE_NV_INFER_PLUGIN_UTILS_H
