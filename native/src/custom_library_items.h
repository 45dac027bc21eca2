// Classifier and segmentation parsers (`parse-classifier-func-name`, `parse-segmentation-func-name`).
#pragma once

#include "custom_library_function.h"

// What a classifier parser left: attributes whose labels are from malloc, or null. The labels are
// freed with the list, each once, whatever happened.
struct Attributes {
    std::vector<NvDsInferAttribute> list;
    std::string text;

    Attributes() = default;
    ~Attributes();
    Attributes(const Attributes &) = delete;
    Attributes &operator=(const Attributes &) = delete;
};

class ClassifierParser : public CustomFunction {
public:
    using CustomFunction::CustomFunction;
    bool call(const NvDsInferNetworkInfo &network, float threshold, Attributes &attributes);
};

class SegmentationParser : public CustomFunction {
public:
    using CustomFunction::CustomFunction;

    // `map` has room for network.width * network.height classes; `probabilities` is what the
    // function made of a null pointer, in memory that has no owner here.
    bool call(const NvDsInferNetworkInfo &network, float threshold, unsigned int classes, int *map,
              float *&probabilities);
};
