#include "custom_library_items.h"

#include <algorithm>
#include <cstdlib>

#include "guard_crash.h"

Attributes::~Attributes() {
    std::vector<char *> labels;
    labels.reserve(list.size());
    for (const NvDsInferAttribute &attribute : list)
        if (attribute.attributeLabel) labels.push_back(attribute.attributeLabel);
    std::sort(labels.begin(), labels.end());
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    const GuardReleasing now("attributeLabel");
    for (char *label : labels) std::free(label);
}

bool ClassifierParser::call(const NvDsInferNetworkInfo &network, float threshold,
                            Attributes &attributes) {
    return invoke(NvDsInferClassiferParseCustomFunc{}, layers_, network, threshold, attributes.list,
                  attributes.text);
}

bool SegmentationParser::call(const NvDsInferNetworkInfo &network, float threshold,
                              unsigned int classes, int *map, float *&probabilities) {
    return invoke(NvDsInferSemSegmentationParseCustomFunc{}, layers_, network, threshold, classes,
                  map, probabilities);
}
