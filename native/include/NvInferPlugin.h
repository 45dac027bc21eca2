// The standard plugins. Part of noria, Apache-2.0.
#ifndef NORIA_NV_INFER_PLUGIN_H
#define NORIA_NV_INFER_PLUGIN_H

#include "NvInfer.h"
#include "NvInferPluginUtils.h"

// Makes all of them known under a namespace.
static inline bool initLibNvInferPlugins(void *, const char *libNamespace) {
    return noria::call<bool>(nullptr, "init_libnvinfer_plugins", {libNamespace ? libNamespace : ""});
}

namespace noria {
inline namespace NORIA_GENERATION {

inline nvinfer1::IPluginV2 *standardPlugin(const char *type, const nvinfer1::PluginField *fields,
                                           int32_t count) {
    nvinfer1::IPluginRegistry *registry = nvinfer1::noriaGetPluginRegistry();
    nvinfer1::IPluginCreator *creator = registry ? registry->getPluginCreator(type, "1") : nullptr;
    const nvinfer1::PluginFieldCollection all{count, fields};
    return creator ? creator->createPlugin(type, &all) : nullptr;
}

}  // namespace NORIA_GENERATION
}  // namespace noria

// Up to 8, some of them had functions of their own.
static inline nvinfer1::IPluginV2 *createRPNROIPlugin(int32_t featureStride, int32_t preNmsTop,
                                                      int32_t nmsMaxOut, float iouThreshold,
                                                      float minBoxSize, float spatialScale,
                                                      nvinfer1::DimsHW pooling,
                                                      nvinfer1::Weights anchorRatios,
                                                      nvinfer1::Weights anchorScales) {
    using nvinfer1::PluginFieldType;
    const int32_t poolingH = static_cast<int32_t>(pooling.h());
    const int32_t poolingW = static_cast<int32_t>(pooling.w());
    const int32_t ratios = static_cast<int32_t>(anchorRatios.count);
    const int32_t scales = static_cast<int32_t>(anchorScales.count);
    const nvinfer1::PluginField fields[] = {
        {"poolingH", &poolingH, PluginFieldType::kINT32, 1},
        {"poolingW", &poolingW, PluginFieldType::kINT32, 1},
        {"featureStride", &featureStride, PluginFieldType::kINT32, 1},
        {"preNmsTop", &preNmsTop, PluginFieldType::kINT32, 1},
        {"nmsMaxOut", &nmsMaxOut, PluginFieldType::kINT32, 1},
        {"anchorsRatioCount", &ratios, PluginFieldType::kINT32, 1},
        {"anchorsScaleCount", &scales, PluginFieldType::kINT32, 1},
        {"iouThreshold", &iouThreshold, PluginFieldType::kFLOAT32, 1},
        {"minBoxSize", &minBoxSize, PluginFieldType::kFLOAT32, 1},
        {"spatialScale", &spatialScale, PluginFieldType::kFLOAT32, 1},
        {"anchorsRatios", anchorRatios.values, PluginFieldType::kFLOAT32, ratios},
        {"anchorsScales", anchorScales.values, PluginFieldType::kFLOAT32, scales}};
    return noria::standardPlugin("RPROI_TRT", fields, 12);
}

static inline nvinfer1::IPluginV2 *createReorgPlugin(int32_t stride) {
    const nvinfer1::PluginField field("stride", &stride, nvinfer1::PluginFieldType::kINT32, 1);
    return noria::standardPlugin("Reorg_TRT", &field, 1);
}

static inline nvinfer1::IPluginV2 *createRegionPlugin(nvinfer1::plugin::RegionParameters params) {
    using nvinfer1::PluginFieldType;
    const nvinfer1::PluginField fields[] = {{"num", &params.num, PluginFieldType::kINT32, 1},
                                            {"coords", &params.coords, PluginFieldType::kINT32, 1},
                                            {"classes", &params.classes, PluginFieldType::kINT32, 1},
                                            {"smTree", nullptr, PluginFieldType::kINT32, 1}};
    return noria::standardPlugin("Region_TRT", fields, 4);
}

#endif  // NORIA_NV_INFER_PLUGIN_H
