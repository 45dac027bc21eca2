// Instance, classifier and segmentation parsers that behave in one particular way each.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include "nvdsinfer_custom_impl.h"

#define INSTANCES(name)                                                                  \
    extern "C" bool name(const std::vector<NvDsInferLayerInfo> &layers,                  \
                         const NvDsInferNetworkInfo &network,                            \
                         const NvDsInferParseDetectionParams &params,                    \
                         std::vector<NvDsInferInstanceMaskInfo> &objects);               \
    CHECK_CUSTOM_INSTANCE_MASK_PARSE_FUNC_PROTOTYPE(name);                               \
    extern "C" bool name(const std::vector<NvDsInferLayerInfo> &layers,                  \
                         const NvDsInferNetworkInfo &network,                            \
                         const NvDsInferParseDetectionParams &params,                    \
                         std::vector<NvDsInferInstanceMaskInfo> &objects)
#define CLASSIFIER(name)                                                                 \
    extern "C" bool name(const std::vector<NvDsInferLayerInfo> &layers,                  \
                         const NvDsInferNetworkInfo &network, float threshold,           \
                         std::vector<NvDsInferAttribute> &attributes, std::string &text); \
    CHECK_CUSTOM_CLASSIFIER_PARSE_FUNC_PROTOTYPE(name);                                  \
    extern "C" bool name(const std::vector<NvDsInferLayerInfo> &layers,                  \
                         const NvDsInferNetworkInfo &network, float threshold,           \
                         std::vector<NvDsInferAttribute> &attributes, std::string &text)
#define SEGMENTATION(name)                                                               \
    extern "C" bool name(const std::vector<NvDsInferLayerInfo> &layers,                  \
                         const NvDsInferNetworkInfo &network, float threshold,           \
                         unsigned int classes, int *map, float *&probabilities);         \
    CHECK_CUSTOM_SEM_SEGMENTATION_PARSE_FUNC_PROTOTYPE(name);                            \
    extern "C" bool name(const std::vector<NvDsInferLayerInfo> &layers,                  \
                         const NvDsInferNetworkInfo &network, float threshold,           \
                         unsigned int classes, int *map, float *&probabilities)
#define UNUSED_OBJECTS (void)layers, (void)network, (void)params, (void)objects
#define UNUSED_ITEM (void)layers, (void)network, (void)threshold, (void)attributes, (void)text
#define UNUSED_MAP \
    (void)layers, (void)network, (void)threshold, (void)classes, (void)map, (void)probabilities

// ---- instances: layer 0 holds rows of class, left, top, width, height, score; layer 1 masks.

static NvDsInferInstanceMaskInfo object(const float *row) {
    NvDsInferInstanceMaskInfo o;
    std::memset(&o, 0, sizeof o);
    o.classId = static_cast<unsigned int>(row[0]);
    o.left = row[1];
    o.top = row[2];
    o.width = row[3];
    o.height = row[4];
    o.detectionConfidence = row[5];
    return o;
}

static void give_mask(NvDsInferInstanceMaskInfo &o, const float *from, unsigned int height,
                      unsigned int width) {
    o.mask_width = width;
    o.mask_height = height;
    o.mask_size = sizeof(float) * width * height;
    o.mask = new float[width * height];
    std::memcpy(o.mask, from, o.mask_size);
}

static void all_masked(const std::vector<NvDsInferLayerInfo> &layers,
                       std::vector<NvDsInferInstanceMaskInfo> &objects) {
    const unsigned int *d = layers[1].inferDims.d;
    for (unsigned int i = 0; i < layers[0].inferDims.d[0]; ++i) {
        objects.push_back(object(static_cast<const float *>(layers[0].buffer) + 6 * i));
        give_mask(objects.back(), static_cast<const float *>(layers[1].buffer) + i * d[1] * d[2],
                  d[1], d[2]);
    }
}

INSTANCES(ParseMasks) {
    UNUSED_OBJECTS;
    all_masked(layers, objects);
    return true;
}

INSTANCES(ParseKeypoints) {  // in the mask field, as parsers of poses do
    const unsigned int count = layers[1].inferDims.d[1];
    for (unsigned int i = 0; i < layers[0].inferDims.d[0]; ++i) {
        objects.push_back(object(static_cast<const float *>(layers[0].buffer) + 6 * i));
        give_mask(objects.back(), static_cast<const float *>(layers[1].buffer) + i * count, 1,
                  count);
        objects.back().mask_width = network.width;
        objects.back().mask_height = network.height;
    }
    (void)params;
    return true;
}

INSTANCES(ParseMasksOfSome) {  // every second object
    UNUSED_OBJECTS;
    all_masked(layers, objects);
    for (size_t i = 1; i < objects.size(); i += 2) {
        delete[] objects[i].mask;
        objects[i].mask = nullptr;
    }
    return true;
}

INSTANCES(ParseMasksNever) {
    UNUSED_OBJECTS;
    for (unsigned int i = 0; i < layers[0].inferDims.d[0]; ++i)
        objects.push_back(object(static_cast<const float *>(layers[0].buffer) + 6 * i));
    return true;
}

INSTANCES(ParseMaskShared) {
    UNUSED_OBJECTS;
    all_masked(layers, objects);
    objects.push_back(objects[0]);
    return true;
}

INSTANCES(ParseMaskSizeForgotten) {
    UNUSED_OBJECTS;
    all_masked(layers, objects);
    objects[0].mask_size = 0;
    return true;
}

INSTANCES(ParseMaskEmpty) {
    UNUSED_OBJECTS;
    all_masked(layers, objects);
    objects[0].mask_width = objects[0].mask_size = 0;
    return true;
}

INSTANCES(ParseMasksFalse) {
    UNUSED_OBJECTS;
    all_masked(layers, objects);
    return false;
}

INSTANCES(ParseMasksThrow) {
    UNUSED_OBJECTS;
    all_masked(layers, objects);
    throw std::runtime_error("after the masks");
}

INSTANCES(ParseMaskHuge) {
    UNUSED_OBJECTS;
    all_masked(layers, objects);
    objects[0].mask_width = 4097;
    objects[0].mask_height = 4096;
    objects[0].mask_size = sizeof(float) * 4097 * 4096;
    delete[] objects[0].mask;
    objects[0].mask = new float[4097 * 4096];
    return true;
}

INSTANCES(ParseMasksMillion) {
    UNUSED_OBJECTS;
    all_masked(layers, objects);
    objects.resize(1000001, object(static_cast<const float *>(layers[0].buffer)));
    return true;
}

INSTANCES(ParseMaskArguments) {
    const float row[6] = {static_cast<float>(params.numClassesConfigured),
                          static_cast<float>(network.width),
                          static_cast<float>(network.height),
                          static_cast<float>(network.channels),
                          params.perClassThreshold[1],
                          static_cast<float>(layers.size())};
    objects.push_back(object(row));
    return true;
}

// Not what the name in the configuration is for: boxes without masks, 24 or 28 bytes each.
extern "C" bool ParseBoxesOnly(const std::vector<NvDsInferLayerInfo> &layers,
                               const NvDsInferNetworkInfo &, const NvDsInferParseDetectionParams &,
                               std::vector<NvDsInferObjectDetectionInfo> &objects) {
    for (unsigned int i = 0; i < layers[0].inferDims.d[0]; ++i) {
        const float *row = static_cast<const float *>(layers[0].buffer) + 6 * i;
        objects.emplace_back();
        NvDsInferObjectDetectionInfo &box = objects.back();
        box.classId = static_cast<unsigned int>(row[0]);
        box.left = row[1];
        box.top = row[2];
        box.width = row[3];
        box.height = row[4];
        box.detectionConfidence = row[5];
    }
    return true;
}

// ---- classifiers: the best class of each layer.

static NvDsInferAttribute attribute(unsigned int index, unsigned int value, float confidence,
                                    const char *label) {
    NvDsInferAttribute a;
    a.attributeIndex = index;
    a.attributeValue = value;
    a.attributeConfidence = confidence;
    a.attributeLabel = label ? strdup(label) : nullptr;
    return a;
}

static void best_of_each(const std::vector<NvDsInferLayerInfo> &layers, float threshold,
                         std::vector<NvDsInferAttribute> &attributes, std::string &text,
                         bool labelled) {
    for (unsigned int l = 0; l < layers.size(); ++l) {
        const float *p = static_cast<const float *>(layers[l].buffer);
        unsigned int best = 0;
        for (unsigned int c = 1; c < layers[l].inferDims.d[0]; ++c)
            if (p[c] > p[best]) best = c;
        if (!(p[best] > threshold)) continue;
        char label[64];
        std::snprintf(label, sizeof label, "%s=%u", layers[l].layerName, best);
        attributes.push_back(attribute(l, best, p[best], labelled ? label : nullptr));
        if (labelled) text.append(label).append("; a text too long for the string itself ");
    }
}

CLASSIFIER(ParseAttributes) {
    UNUSED_ITEM;
    best_of_each(layers, threshold, attributes, text, true);
    return true;
}

CLASSIFIER(ParseAttributesUnlabelled) {
    UNUSED_ITEM;
    best_of_each(layers, threshold, attributes, text, false);
    return true;
}

CLASSIFIER(ParseAttributesFalse) {
    UNUSED_ITEM;
    best_of_each(layers, threshold, attributes, text, true);
    return false;
}

CLASSIFIER(ParseAttributesThrow) {
    UNUSED_ITEM;
    best_of_each(layers, threshold, attributes, text, true);
    throw std::out_of_range("after the labels");
}

CLASSIFIER(ParseAttributeArguments) {
    UNUSED_ITEM;
    attributes.push_back(attribute(network.width, network.height, threshold, nullptr));
    attributes.push_back(
        attribute(network.channels, static_cast<unsigned int>(layers.size()), 1, layers[0].layerName));
    return true;
}

CLASSIFIER(ParseAttributeShared) {
    UNUSED_ITEM;
    attributes.push_back(attribute(0, 1, 0.5f, "once"));
    attributes.push_back(attributes[0]);
    return true;
}

CLASSIFIER(ParseAttributeOdd) {
    UNUSED_ITEM;
    attributes.push_back(attribute(0, 4294967295u, 0.5f, "\xff\xfe caf\xc3\xa9"));
    attributes.push_back(attribute(1, 0, std::numeric_limits<float>::quiet_NaN(), "gone"));
    text = std::string("seen\0unseen", 11);
    return true;
}

CLASSIFIER(ParseAttributesMany) {
    UNUSED_ITEM;
    attributes.resize(10001, attribute(0, 0, 0.5f, nullptr));
    return true;
}

CLASSIFIER(ParseLabelLong) {  // for the leak test: 256 KiB
    UNUSED_ITEM;
    attributes.push_back(attribute(0, 0, 0.5f, std::string(1 << 18, 'x').c_str()));
    text.assign(1 << 18, 'y');
    return layers.size() == 1;
}

// ---- segmentation: the map is as large as the network input.

SEGMENTATION(ParseMapArguments) {
    UNUSED_MAP;
    for (unsigned int i = 0; i < network.width * network.height; ++i) map[i] = 0;
    map[0] = static_cast<int>(classes);
    map[1] = static_cast<int>(threshold * 8);
    map[2] = static_cast<int>(network.channels);
    map[3] = static_cast<int>(layers.size());
    map[4] = probabilities == nullptr;
    return true;
}

SEGMENTATION(ParseMap) {
    UNUSED_MAP;
    const unsigned int pixels = network.width * network.height;
    const float *p = static_cast<const float *>(layers[0].buffer);
    for (unsigned int i = 0; i < pixels; ++i) {
        map[i] = -1;
        for (unsigned int c = 0; c < classes; ++c)
            if (p[c * pixels + i] > threshold) map[i] = static_cast<int>(c);
    }
    probabilities = static_cast<float *>(layers[0].buffer);
    return true;
}

SEGMENTATION(ParseMapFirstPixel) {
    UNUSED_MAP;
    map[0] = 1;
    probabilities = static_cast<float *>(layers[0].buffer) + 2;
    return true;
}

SEGMENTATION(ParseMapForeign) {
    UNUSED_MAP;
    static float own[4];
    map[0] = 255;
    map[1] = -7;
    map[2] = 0;
    probabilities = own;
    return true;
}

SEGMENTATION(ParseMapFalse) {
    UNUSED_MAP;
    return false;
}

SEGMENTATION(ParseMapThrow) {
    UNUSED_MAP;
    throw std::runtime_error("no such layer");
}
