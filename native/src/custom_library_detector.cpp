#include "custom_library_detector.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

static_assert(sizeof(NvDsInferInstanceMaskInfo) == 48, "the same in every generation");

namespace {

// Parsers index these by class ids that the model made up. Values beyond the end, in storage that
// belongs to the vector, keep such a read harmless and its object below the threshold.
// Source: custom-library spec 2.6.
void fill_with_guard(std::vector<float> &vector, const std::vector<float> &values) {
    constexpr size_t guard = 1024;
    vector.assign(values.size() + guard, std::numeric_limits<float>::max());
    std::copy(values.begin(), values.end(), vector.begin());
    vector.resize(values.size());
}

// Whether an address can come from new float[]: what a record of another type holds there, such as
// a class id beside a coordinate, cannot.
bool may_be_memory(const void *pointer) {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    return address % alignof(float) == 0 && address >= 1 << 16 && address >> 47 == 0;
}

}  // namespace

char *ByteVector::release() {
    char *storage = begin;
    begin = end = capacity_end = nullptr;
    return storage;
}

DetectorParser::DetectorParser(std::shared_ptr<SharedObject> library, const std::string &name)
    : CustomFunction(std::move(library), name) {
    params_.numClassesConfigured = 0;
}

void DetectorParser::set_params(unsigned int num_classes, const std::vector<float> &pre,
                                const std::vector<float> &post) {
    params_.numClassesConfigured = num_classes;
    fill_with_guard(params_.perClassPreclusterThreshold, pre);
    fill_with_guard(params_.perClassPostclusterThreshold, post);
}

bool DetectorParser::call(const NvDsInferNetworkInfo &network, ByteVector &objects) {
    using Function = bool (*)(const std::vector<NvDsInferLayerInfo> &, const NvDsInferNetworkInfo &,
                              const NvDsInferParseDetectionParams &, ByteVector &);
    return invoke(Function{}, layers_, network, params_, objects);
}

bool InstanceVector::are_records() const {
    constexpr size_t bytes = sizeof(NvDsInferInstanceMaskInfo);
    if (size() % bytes || capacity() % bytes) return false;
    for (size_t i = 0; i < count(); ++i)
        if (record(i).mask && !may_be_memory(record(i).mask)) return false;
    return true;
}

void InstanceVector::require_records() {
    if (are_records()) return;
    throw CustomResultError("the parser returned " + std::to_string(size()) +
                            " bytes that are no list of NvDsInferInstanceMaskInfo");
}

InstanceVector::~InstanceVector() {
    if (!are_records()) return;
    std::vector<float *> masks;
    masks.reserve(count());
    for (size_t i = 0; i < count(); ++i)
        if (record(i).mask) masks.push_back(record(i).mask);
    std::sort(masks.begin(), masks.end());
    masks.erase(std::unique(masks.begin(), masks.end()), masks.end());  // two records may share one
    for (float *mask : masks) delete[] mask;
}
