// Entry points of a custom library: what a parser includes.
//
// Part of headrace, Apache-2.0. Written from a description of the binary interface; valid C++11.
#ifndef HEADRACE_NVDSINFER_CUSTOM_IMPL_H
#define HEADRACE_NVDSINFER_CUSTOM_IMPL_H

// Generous on purpose: existing sources rely on these coming along.
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

// In angle brackets: where TensorRT's own headers come first on the include path, these are taken.
#include <NvInfer.h>
#include <NvInferRuntime.h>
#include <NvOnnxParser.h>

#include "nvdsinfer.h"

namespace nvcaffeparser1 {
class IPluginFactory;
class IPluginFactoryExt;
class IPluginFactoryV2;
}  // namespace nvcaffeparser1
namespace nvuffparser {
class IPluginFactory;
class IPluginFactoryExt;
}  // namespace nvuffparser
namespace nvinfer1 {
class IPluginFactory;
}

// Thresholds of the configuration, one per class.
struct NvDsInferParseDetectionParams {
    unsigned int numClassesConfigured;
    std::vector<float> perClassPreclusterThreshold;
    std::vector<float> perClassPostclusterThreshold;
    // Older name of perClassPreclusterThreshold: the same vector.
    std::vector<float> &perClassThreshold = perClassPreclusterThreshold;
};

struct _NvDsInferContextInitParams;
typedef struct _NvDsInferContextInitParams NvDsInferContextInitParams;

// A model format of the library's own. The order of the virtual functions is binary interface.
class IModelParser {
public:
    IModelParser() = default;
    virtual ~IModelParser() = default;

    virtual NvDsInferStatus parseModel(nvinfer1::INetworkDefinition &network) = 0;
    virtual bool hasFullDimsSupported() const = 0;
    virtual const char *getModelName() const = 0;
};

// ---- function types; each function has C linkage and is found by its name in the configuration.

// parse-bbox-func-name: fill objectList (it arrives empty) with boxes in pixels of the input.
// false means: nothing usable in this frame.
typedef bool (*NvDsInferParseCustomFunc)(const std::vector<NvDsInferLayerInfo> &outputLayersInfo,
                                         const NvDsInferNetworkInfo &networkInfo,
                                         const NvDsInferParseDetectionParams &detectionParams,
                                         std::vector<NvDsInferObjectDetectionInfo> &objectList);

// parse-bbox-instance-mask-func-name: as above. A mask is made with `new float[]`, or null; the
// caller deletes it, also when the function returns false.
typedef bool (*NvDsInferInstanceMaskParseCustomFunc)(
    const std::vector<NvDsInferLayerInfo> &outputLayersInfo,
    const NvDsInferNetworkInfo &networkInfo, const NvDsInferParseDetectionParams &detectionParams,
    std::vector<NvDsInferInstanceMaskInfo> &objectList);

// parse-classifier-func-name (the spelling is the original's): a label is made with strdup, or
// null, and set in every attribute; the caller frees it. descString is what is shown.
typedef bool (*NvDsInferClassiferParseCustomFunc)(
    const std::vector<NvDsInferLayerInfo> &outputLayersInfo,
    const NvDsInferNetworkInfo &networkInfo, float classifierThreshold,
    std::vector<NvDsInferAttribute> &attrList, std::string &descString);

// parse-segmentation-func-name: classificationMap has networkInfo.width * networkInfo.height
// entries, -1 for no class. classProbabilityMap may be left null or set to an output layer's
// buffer.
typedef bool (*NvDsInferSemSegmentationParseCustomFunc)(
    const std::vector<NvDsInferLayerInfo> &outputLayersInfo,
    const NvDsInferNetworkInfo &networkInfo, float segmentationThreshold, unsigned int numClasses,
    int *classificationMap, float *&classProbabilityMap);

// engine-create-func-name; without the config before TensorRT 8.
typedef bool (*NvDsInferEngineCreateCustomFunc)(nvinfer1::IBuilder *builder,
#if NV_TENSORRT_MAJOR >= 8
                                                nvinfer1::IBuilderConfig *builderConfig,
#endif
                                                const NvDsInferContextInitParams *initParams,
                                                nvinfer1::DataType dataType,
                                                nvinfer1::ICudaEngine *&cudaEngine);

// ---- prototype checks: `CHECK_..._PROTOTYPE(myFunction)` at namespace scope, with a semicolon or
// without, stops compilation
// if the function could not be called through its type, or lacks C linkage. The library keeps the
// kind in the name of a symbol, by which headrace refuses it under the key of another kind.

#ifdef __CUDA_ARCH__
#define HEADRACE_MARK_KIND(kind, function)
#else
#define HEADRACE_MARK_KIND(kind, function)           \
    __asm__(".weak headrace_is_" #kind "_" #function \
            "\n"                                     \
            "headrace_is_" #kind "_" #function " = 0");
#endif

#define HEADRACE_CHECK_PROTOTYPE(function, pointer, kind, key)                   \
    static_assert(sizeof(static_cast<pointer>(&function)) == sizeof(pointer),    \
                  #function " does not have the parameters that " key " needs"); \
    HEADRACE_MARK_KIND(kind, function)                                           \
    extern "C" std::remove_pointer<pointer>::type function;

#define CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(function) \
    HEADRACE_CHECK_PROTOTYPE(function, NvDsInferParseCustomFunc, detector, "parse-bbox-func-name")

#define CHECK_CUSTOM_INSTANCE_MASK_PARSE_FUNC_PROTOTYPE(function)                      \
    HEADRACE_CHECK_PROTOTYPE(function, NvDsInferInstanceMaskParseCustomFunc, instance, \
                             "parse-bbox-instance-mask-func-name")

#define CHECK_CUSTOM_CLASSIFIER_PARSE_FUNC_PROTOTYPE(function)                        \
    HEADRACE_CHECK_PROTOTYPE(function, NvDsInferClassiferParseCustomFunc, classifier, \
                             "parse-classifier-func-name")

#define CHECK_CUSTOM_SEM_SEGMENTATION_PARSE_FUNC_PROTOTYPE(function)                          \
    HEADRACE_CHECK_PROTOTYPE(function, NvDsInferSemSegmentationParseCustomFunc, segmentation, \
                             "parse-segmentation-func-name")

#define CHECK_CUSTOM_ENGINE_CREATE_FUNC_PROTOTYPE(function)                      \
    HEADRACE_CHECK_PROTOTYPE(function, NvDsInferEngineCreateCustomFunc, creator, \
                             "engine-create-func-name")

// ---- functions of fixed names. Their C linkage comes from these declarations: shipped sources
// define them without repeating extern "C".
extern "C" {

// Fill every input but the first, once, for all batch entries.
bool NvDsInferInitializeInputLayers(const std::vector<NvDsInferLayerInfo> &inputLayersInfo,
                                    const NvDsInferNetworkInfo &networkInfo,
                                    unsigned int maxBatchSize);

IModelParser *NvDsInferCreateModelParser(const NvDsInferContextInitParams *initParams);

bool NvDsInferCudaEngineGet(nvinfer1::IBuilder *builder, NvDsInferContextInitParams *initParams,
                            nvinfer1::DataType dataType, nvinfer1::ICudaEngine *&cudaEngine)
    _DS_DEPRECATED_("name the function in engine-create-func-name");

// Factories of layers, of the time before plugins were registered. What a Get function gives goes
// back to its Destroy function: the parsers' when the network is built, the runtime's with the
// engine.
typedef enum {
    PLUGIN_FACTORY = 0,
    PLUGIN_FACTORY_EXT = 1,
    PLUGIN_FACTORY_V2 = 2  // Caffe only
} NvDsInferPluginFactoryType;

// Caffe models, up to 7.0.
typedef union {
    nvcaffeparser1::IPluginFactory *pluginFactory;
    nvcaffeparser1::IPluginFactoryExt *pluginFactoryExt;
    nvcaffeparser1::IPluginFactoryV2 *pluginFactoryV2;
} NvDsInferPluginFactoryCaffe;
bool NvDsInferPluginFactoryCaffeGet(NvDsInferPluginFactoryCaffe &pluginFactory,
                                    NvDsInferPluginFactoryType &type);
void NvDsInferPluginFactoryCaffeDestroy(NvDsInferPluginFactoryCaffe &pluginFactory);

// UFF models, up to 5.0.
typedef union {
    nvuffparser::IPluginFactory *pluginFactory;
    nvuffparser::IPluginFactoryExt *pluginFactoryExt;
} NvDsInferPluginFactoryUff;
bool NvDsInferPluginFactoryUffGet(NvDsInferPluginFactoryUff &pluginFactory,
                                  NvDsInferPluginFactoryType &type);
void NvDsInferPluginFactoryUffDestroy(NvDsInferPluginFactoryUff &pluginFactory);

// Engine files.
bool NvDsInferPluginFactoryRuntimeGet(nvinfer1::IPluginFactory *&pluginFactory);
void NvDsInferPluginFactoryRuntimeDestroy(nvinfer1::IPluginFactory *pluginFactory);

}  // extern "C"

#endif  // HEADRACE_NVDSINFER_CUSTOM_IMPL_H
