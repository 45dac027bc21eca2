// Sizes and offsets that are binary interface. Source: custom-library spec 1.3, 1.4.
#include <cstddef>

#include "nvdsinfer_context.h"
#include "nvdsinfer_custom_impl.h"

#define SIZE(type, bytes) static_assert(sizeof(type) == bytes, #type)
#define AT(type, field, offset) static_assert(offsetof(type, field) == offset, #type "." #field)

SIZE(NvDsInferDims, 40);
AT(NvDsInferDims, numElements, 36);
SIZE(NvDsInferDimsCHW, 12);
SIZE(NvDsInferLayerInfo, 72);
AT(NvDsInferLayerInfo, inferDims, 4);
AT(NvDsInferLayerInfo, bindingIndex, 44);
AT(NvDsInferLayerInfo, layerName, 48);
AT(NvDsInferLayerInfo, buffer, 56);
AT(NvDsInferLayerInfo, isInput, 64);
SIZE(NvDsInferNetworkInfo, 12);
SIZE(NvDsInferObjectDetectionInfo, HEADRACE_BOX_BYTES);
AT(NvDsInferObjectDetectionInfo, detectionConfidence, 20);
SIZE(NvDsInferInstanceMaskInfo, 48);
AT(NvDsInferInstanceMaskInfo, mask_size, 40);
SIZE(NvDsInferAttribute, 24);
AT(NvDsInferAttribute, attributeLabel, 16);
SIZE(NvDsInferParseDetectionParams, 64);
SIZE(NvDsInferBatchDimsLayerInfo, 208);
SIZE(NvDsInferDetectionParams, 32);
SIZE(NvDsInferObject, 64);
AT(NvDsInferObject, confidence, 32);
AT(NvDsInferObject, rotation_angle, 60);
SIZE(NvDsInferFrameOutput, 40);
AT(NvDsInferContextInitParams, uffInputOrder, 24596);
AT(NvDsInferContextInitParams, tltModelKey, 25628);
AT(NvDsInferContextInitParams, networkScaleFactor, 38944);
AT(NvDsInferContextInitParams, numDetectedClasses, 38980);
AT(NvDsInferContextInitParams, customLibPath, 39012);
AT(NvDsInferContextInitParams, useDLA, 45164);
AT(NvDsInferContextInitParams, clusterMode, 50316);
AT(NvDsInferContextInitParams, numOutputIOFormats, 51352);
#if HEADRACE_NVDSINFER_GENERATION == 6
SIZE(NvDsInferContextInitParams, 51384);
AT(NvDsInferContextInitParams, layerDevicePrecisions, 51360);
AT(NvDsInferContextInitParams, disableOutputHostCopy, 51380);
#else
SIZE(NvDsInferContextInitParams, 56576);
AT(NvDsInferContextInitParams, customSegmentationParseFuncName, 51356);
AT(NvDsInferContextInitParams, layerDevicePrecisions, 52384);
AT(NvDsInferContextInitParams, maxGPUMemPer, 52416);
AT(NvDsInferContextInitParams, warmupEngine, 56572);
#endif

static_assert(FLOAT == 0 && HALF == 1 && INT8 == 2 && INT32 == 3 && INT64 == 4 && UINT8 == 5, "");
constexpr int unknown_error = HEADRACE_NVDSINFER_GENERATION == 6 ? 9 : 10;
static_assert(NVDSINFER_TRITON_ERROR == 8 && NVDSINFER_UNKNOWN_ERROR == unknown_error, "");
static_assert(NvDsInferNetworkType_Other == 100 && NVDSINFER_CLUSTER_NONE == 4, "");

// Older names still mean the same.
static_assert(std::is_same<NvDsInferParseObjectInfo, NvDsInferObjectDetectionInfo>::value, "");
static_assert(NvDsInferUffOrder_kNHWC == NvDsInferTensorOrder_kNHWC, "");

// Functions of fixed names get their C linkage from the header.
bool NvDsInferInitializeInputLayers(const std::vector<NvDsInferLayerInfo> &,
                                    const NvDsInferNetworkInfo &, unsigned int) {
    return true;
}
IModelParser *NvDsInferCreateModelParser(const NvDsInferContextInitParams *) { return nullptr; }

// Every macro, on a function of its type.
#define LAYERS const std::vector<NvDsInferLayerInfo> &, const NvDsInferNetworkInfo &
extern "C" {
bool Boxes(LAYERS, const NvDsInferParseDetectionParams &,
           std::vector<NvDsInferObjectDetectionInfo> &) {
    return true;
}
bool Masks(LAYERS, const NvDsInferParseDetectionParams &, std::vector<NvDsInferInstanceMaskInfo> &) {
    return true;
}
bool Classes(LAYERS, float, std::vector<NvDsInferAttribute> &, std::string &) { return true; }
bool Segments(LAYERS, float, unsigned int, int *, float *&) { return true; }
bool Engine(nvinfer1::IBuilder *, nvinfer1::IBuilderConfig *, const NvDsInferContextInitParams *,
            nvinfer1::DataType, nvinfer1::ICudaEngine *&) {
    return false;
}
}
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(Boxes);
CHECK_CUSTOM_INSTANCE_MASK_PARSE_FUNC_PROTOTYPE(Masks);
CHECK_CUSTOM_CLASSIFIER_PARSE_FUNC_PROTOTYPE(Classes);
CHECK_CUSTOM_SEM_SEGMENTATION_PARSE_FUNC_PROTOTYPE(Segments);
CHECK_CUSTOM_ENGINE_CREATE_FUNC_PROTOTYPE(Engine);
