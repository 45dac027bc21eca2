// Functions that make standard plugins of their parameters, as libnvinfer_plugin had them up to 8.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_PLUGIN_FACTORIES_H
#define HEADRACE_TRT_PLUGIN_FACTORIES_H

#include "NvInfer.h"
#include "NvInferPluginUtils.h"

namespace headrace {
inline namespace HEADRACE_GENERATION {

// Fields of a creator. It keeps the numbers, not the lists.
class FieldsOf {
public:
    FieldsOf &add(const char *name, int32_t value) {
        return add(name, &(integers_[used_] = value), nvinfer1::PluginFieldType::kINT32, 1);
    }
    FieldsOf &add(const char *name, float value) {
        return add(name, &(numbers_[used_] = value), nvinfer1::PluginFieldType::kFLOAT32, 1);
    }
    FieldsOf &add(const char *name, const int32_t *values, int32_t count) {
        return add(name, values, nvinfer1::PluginFieldType::kINT32, count);
    }
    FieldsOf &add(const char *name, const void *values, int64_t count) {
        return add(name, values, nvinfer1::PluginFieldType::kFLOAT32, static_cast<int32_t>(count));
    }
    // The standard plugin; null where it is refused, which the host is told of.
    nvinfer1::IPluginV2 *plugin(const char *type) const {
        nvinfer1::IPluginRegistry *registry = nvinfer1::headraceGetPluginRegistry();
        nvinfer1::IPluginCreator *creator =
            registry ? registry->getPluginCreator(type, "1") : nullptr;
        const nvinfer1::PluginFieldCollection all{used_, fields_};
        return creator ? creator->createPlugin(type, &all) : nullptr;
    }

private:
    FieldsOf &add(const char *name, const void *data, nvinfer1::PluginFieldType type,
                  int32_t count) {
        fields_[used_++] = nvinfer1::PluginField{name, data, type, count};
        return *this;
    }
    enum { kMOST = 16 };
    nvinfer1::PluginField fields_[kMOST];
    int32_t integers_[kMOST];
    float numbers_[kMOST];
    int32_t used_ = 0;
};

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

static inline nvinfer1::IPluginV2 *createRPNROIPlugin(int32_t featureStride, int32_t preNmsTop,
                                                      int32_t nmsMaxOut, float iouThreshold,
                                                      float minBoxSize, float spatialScale,
                                                      nvinfer1::DimsHW pooling,
                                                      nvinfer1::Weights anchorRatios,
                                                      nvinfer1::Weights anchorScales) {
    return headrace::FieldsOf()
        .add("poolingH", static_cast<int32_t>(pooling.h()))
        .add("poolingW", static_cast<int32_t>(pooling.w()))
        .add("featureStride", featureStride)
        .add("preNmsTop", preNmsTop)
        .add("nmsMaxOut", nmsMaxOut)
        .add("anchorsRatioCount", static_cast<int32_t>(anchorRatios.count))
        .add("anchorsScaleCount", static_cast<int32_t>(anchorScales.count))
        .add("iouThreshold", iouThreshold)
        .add("minBoxSize", minBoxSize)
        .add("spatialScale", spatialScale)
        .add("anchorsRatios", anchorRatios.values, anchorRatios.count)
        .add("anchorsScales", anchorScales.values, anchorScales.count)
        .plugin("RPROI_TRT");
}

static inline nvinfer1::IPluginV2 *createReorgPlugin(int32_t stride) {
    return headrace::FieldsOf().add("stride", stride).plugin("Reorg_TRT");
}

// The tree of classes is not read: scores are those of single classes.
static inline nvinfer1::IPluginV2 *createRegionPlugin(nvinfer1::plugin::RegionParameters params) {
    return headrace::FieldsOf()
        .add("num", params.num)
        .add("coords", params.coords)
        .add("classes", params.classes)
        .add("smTree", static_cast<const int32_t *>(nullptr), 1)
        .plugin("Region_TRT");
}

static inline nvinfer1::IPluginV2 *createNormalizePlugin(const nvinfer1::Weights *scales,
                                                         bool acrossSpatial, bool channelShared,
                                                         float eps) {
    if (!scales) return nullptr;
    return headrace::FieldsOf()
        .add("weights", scales->values, scales->count)
        .add("acrossSpatial", static_cast<int32_t>(acrossSpatial))
        .add("channelShared", static_cast<int32_t>(channelShared))
        .add("nbWeights", 1)
        .add("eps", eps)
        .plugin("Normalize_TRT");
}

static inline nvinfer1::IPluginV2 *createPriorBoxPlugin(nvinfer1::plugin::PriorBoxParameters p) {
    return headrace::FieldsOf()
        .add("minSize", p.minSize, static_cast<int64_t>(p.numMinSize))
        .add("maxSize", p.maxSize, static_cast<int64_t>(p.numMaxSize))
        .add("aspectRatios", p.aspectRatios, static_cast<int64_t>(p.numAspectRatios))
        .add("flip", static_cast<int32_t>(p.flip))
        .add("clip", static_cast<int32_t>(p.clip))
        .add("variance", static_cast<const void *>(p.variance), int64_t{4})
        .add("imgH", p.imgH)
        .add("imgW", p.imgW)
        .add("stepH", p.stepH)
        .add("stepW", p.stepW)
        .add("offset", p.offset)
        .plugin("PriorBox_TRT");
}

// Whether items of a batch are apart is what only newer releases ask: they are.
static inline nvinfer1::IPluginV2 *createNMSPlugin(nvinfer1::plugin::DetectionOutputParameters p) {
    return headrace::FieldsOf()
        .add("shareLocation", static_cast<int32_t>(p.shareLocation))
        .add("varianceEncodedInTarget", static_cast<int32_t>(p.varianceEncodedInTarget))
        .add("backgroundLabelId", p.backgroundLabelId)
        .add("numClasses", p.numClasses)
        .add("topK", p.topK)
        .add("keepTopK", p.keepTopK)
        .add("confidenceThreshold", p.confidenceThreshold)
        .add("nmsThreshold", p.nmsThreshold)
        .add("inputOrder", p.inputOrder, 3)
        .add("confSigmoid", static_cast<int32_t>(p.confSigmoid))
        .add("isNormalized", static_cast<int32_t>(p.isNormalized))
        .add("codeType", static_cast<int32_t>(p.codeType))
        .plugin("NMS_TRT");
}

static inline nvinfer1::IPluginV2 *createBatchedNMSPlugin(nvinfer1::plugin::NMSParameters p) {
    return headrace::FieldsOf()
        .add("shareLocation", static_cast<int32_t>(p.shareLocation))
        .add("backgroundLabelId", p.backgroundLabelId)
        .add("numClasses", p.numClasses)
        .add("topK", p.topK)
        .add("keepTopK", p.keepTopK)
        .add("scoreThreshold", p.scoreThreshold)
        .add("iouThreshold", p.iouThreshold)
        .add("isNormalized", static_cast<int32_t>(p.isNormalized))
        .plugin("BatchedNMS_TRT");
}

static inline nvinfer1::IPluginV2 *createClipPlugin(const char *, float clipMin, float clipMax) {
    return headrace::FieldsOf().add("clipMin", clipMin).add("clipMax", clipMax).plugin("Clip_TRT");
}

static inline nvinfer1::IPluginV2 *createLReLUPlugin(float negSlope) {
    return headrace::FieldsOf().add("negSlope", negSlope).plugin("LReLU_TRT");
}

static inline nvinfer1::IPluginV2 *createInstanceNormalizationPlugin(float epsilon,
                                                                     nvinfer1::Weights scale,
                                                                     nvinfer1::Weights bias) {
    return headrace::FieldsOf()
        .add("epsilon", epsilon)
        .add("scales", scale.values, scale.count)
        .add("bias", bias.values, bias.count)
        .plugin("InstanceNormalization_TRT");
}

#endif  // HEADRACE_TRT_PLUGIN_FACTORIES_H
