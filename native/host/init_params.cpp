#include "host/init_params.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <stdexcept>

namespace headrace::hosting {
namespace {

using Params = NvDsInferContextInitParams;

struct Text {
    size_t offset, size;
};

// clang-format off: tables
#define TEXT(field) {#field, {offsetof(Params, field), sizeof(Params::field)}}
const std::map<std::string, Text> kTexts = {
    TEXT(protoFilePath), TEXT(modelFilePath), TEXT(uffFilePath), TEXT(onnxFilePath),
    TEXT(tltEncodedModelFilePath), TEXT(int8CalibrationFilePath), TEXT(uffInputBlobName),
    TEXT(tltModelKey), TEXT(modelEngineFilePath), TEXT(labelsFilePath), TEXT(meanImageFilePath),
    TEXT(customLibPath), TEXT(customBBoxParseFuncName), TEXT(customClassifierParseFuncName),
    TEXT(customNetworkConfigFilePath), TEXT(customEngineCreateFuncName),
    TEXT(customBBoxInstanceMaskParseFuncName), TEXT(customSegmentationParseFuncName)};
#undef TEXT

using Setter = void (*)(Params &, double);
#define NUMBER(field)                                                          \
    {#field, [](Params &p, double value) {                                     \
         p.field = static_cast<decltype(p.field)>(static_cast<int64_t>(value)); \
     }}
#define REAL(field)                                                        \
    {#field, [](Params &p, double value) {                                 \
         p.field = static_cast<decltype(p.field)>(value);                  \
     }}
const std::map<std::string, Setter> kNumbers = {
    NUMBER(uniqueID), NUMBER(networkMode), NUMBER(uffInputOrder), NUMBER(netInputOrder),
    NUMBER(maxBatchSize), NUMBER(networkInputFormat), NUMBER(networkType),
    NUMBER(numDetectedClasses), NUMBER(gpuID), NUMBER(useDLA), NUMBER(dlaCore),
    NUMBER(outputBufferPoolSize), NUMBER(forceImplicitBatchDimension), NUMBER(workspaceSize),
    NUMBER(clusterMode), NUMBER(segmentationOutputOrder), NUMBER(inputFromPreprocessedTensor),
    NUMBER(disableOutputHostCopy), NUMBER(autoIncMem), NUMBER(useStronglyTyped),
    NUMBER(warmupEngine), REAL(networkScaleFactor), REAL(classifierThreshold),
    REAL(segmentationThreshold), REAL(maxGPUMemPer)};
#undef NUMBER
#undef REAL
// clang-format on

struct List {
    char **Params::*items;
    unsigned int Params::*count;
};

const std::map<std::string, List> kLists = {
    {"outputLayerNames", {&Params::outputLayerNames, &Params::numOutputLayers}},
    {"outputIOFormats", {&Params::outputIOFormats, &Params::numOutputIOFormats}},
    {"layerDevicePrecisions", {&Params::layerDevicePrecisions, &Params::numLayerDevicePrecisions}},
    {"dynamicPropertyKeys", {&Params::dynamicPropertyKeys, &Params::numDynamicProperties}},
    {"dynamicPropertyValues", {&Params::dynamicPropertyValues, &Params::numDynamicProperties}}};

}  // namespace

std::vector<NvDsInferDetectionParams> class_params(const std::vector<double> &rows) {
    std::vector<NvDsInferDetectionParams> classes;
    for (size_t at = 0; at + kClassNumbers <= rows.size(); at += kClassNumbers) {
        const double *row = rows.data() + at;
        NvDsInferDetectionParams c{};
        c.preClusterThreshold = static_cast<float>(row[0]);
        c.postClusterThreshold = static_cast<float>(row[1]);
        c.eps = static_cast<float>(row[2]);
        c.minBoxes = static_cast<int>(row[3]);
        c.groupThreshold = static_cast<int>(row[4]);
        c.minScore = static_cast<float>(row[5]);
        c.nmsIOUThreshold = static_cast<float>(row[6]);
        c.topK = static_cast<int>(row[7]);
        classes.push_back(c);
    }
    return classes;
}

// Values of an untouched configuration. Source: custom-library spec 1.4.
InitParams::InitParams() {
    std::memset(static_cast<void *>(&params_), 0, sizeof(params_));
    params_.networkInputFormat = NvDsInferFormat_Unknown;
    params_.maxBatchSize = 1;
    params_.networkScaleFactor = 1.0f;
    params_.outputBufferPoolSize = NVDSINFER_MIN_OUTPUT_BUFFERPOOL_SIZE;
    params_.autoIncMem = 1;
    params_.maxGPUMemPer = 99;
}

void InitParams::set_text(const std::string &field, const std::string &value) {
    const auto found = kTexts.find(field);
    if (found == kTexts.end()) throw std::invalid_argument("no text " + field);
    if (value.size() >= found->second.size)
        throw std::invalid_argument(field + " has " + std::to_string(value.size()) +
                                    " bytes; there is room for " +
                                    std::to_string(found->second.size - 1));
    char *to = reinterpret_cast<char *>(&params_) + found->second.offset;
    std::fill_n(std::copy(value.begin(), value.end(), to), found->second.size - value.size(), '\0');
}

void InitParams::set_number(const std::string &field, double value) {
    const auto found = kNumbers.find(field);
    if (found == kNumbers.end()) throw std::invalid_argument("no number " + field);
    found->second(params_, value);
}

void InitParams::set_list(const std::string &field, const std::vector<std::string> &values) {
    const auto found = kLists.find(field);
    if (found == kLists.end()) throw std::invalid_argument("no list " + field);
    Strings &kept = lists_[field];
    kept.texts = values;
    kept.pointers.clear();
    for (std::string &text : kept.texts) kept.pointers.push_back(text.data());
    params_.*found->second.items = kept.pointers.empty() ? nullptr : kept.pointers.data();
    params_.*found->second.count = static_cast<unsigned int>(values.size());
}

void InitParams::set_offsets(const std::vector<float> &values) {
    if (values.size() > _MAX_CHANNELS) throw std::invalid_argument("more than 4 offsets");
    std::copy(values.begin(), values.end(), params_.offsets);
    params_.numOffsets = static_cast<unsigned int>(values.size());
}

void InitParams::set_infer_dims(unsigned int channels, unsigned int height, unsigned int width) {
    params_.inferInputDims = NvDsInferDimsCHW{channels, height, width};
}

void InitParams::set_classes(const std::vector<NvDsInferDetectionParams> &classes) {
    classes_ = classes;
    params_.perClassDetectionParams = classes_.data();
}

}  // namespace headrace::hosting
