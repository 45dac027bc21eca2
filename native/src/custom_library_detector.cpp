#include "custom_library_detector.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "guard_crash.h"

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

// Of the finite numbers and infinity, a greater magnitude has greater bits; those of NaN are greater
// still. Source: IEEE 754.
constexpr uint32_t infinity_bits = 0x7f800000;

uint32_t largest_magnitude(const float *values, size_t count) {
    uint32_t largest = 0;
    for (size_t i = 0; i < count; ++i) {
        uint32_t bits;
        std::memcpy(&bits, &values[i], 4);
        largest = std::max(largest, bits & 0x7fffffff);
    }
    return largest;
}

template <size_t stride>
void take_records(const void *records, size_t count, const BoxArrays &to) {
    const char *from = static_cast<const char *>(records);
    for (size_t i = 0; i < count; ++i, from += stride) {
        std::memcpy(&to.ids[i], from, 4);
        std::memcpy(&to.boxes[4 * i], from + 4, 16);
        std::memcpy(&to.scores[i], from + 20, 4);
        if (stride == 28 && to.angles) std::memcpy(&to.angles[i], from + 24, 4);
    }
}

}  // namespace

BoxBlock::BoxBlock(void *block, size_t count, bool with_angles) {
    const auto rounded = [](size_t bytes_) { return (bytes_ + 63) / 64 * 64; };
    char *const start = static_cast<char *>(block);
    const size_t scores = rounded(16 * count), ids = scores + rounded(4 * count);
    const size_t angles = ids + rounded(4 * count);
    arrays = {reinterpret_cast<float *>(start), reinterpret_cast<float *>(start + scores),
              reinterpret_cast<int32_t *>(start + ids),
              with_angles ? reinterpret_cast<float *>(start + angles) : nullptr};
    bytes = (with_angles ? angles : ids) + 4 * count;
}

bool sound_boxes(const BoxArrays &arrays, size_t count) {
    uint32_t largest = std::max(largest_magnitude(arrays.boxes, 4 * count),
                                largest_magnitude(arrays.scores, count));
    if (arrays.angles) largest = std::max(largest, largest_magnitude(arrays.angles, count));
    int32_t signs = 0;
    for (size_t i = 0; i < count; ++i) signs |= arrays.ids[i];
    return largest < infinity_bits && signs >= 0;
}

bool take_boxes(const void *records, size_t count, size_t stride, const BoxArrays &to) {
    switch (stride) {  // loops over constants are much faster
    case 24: take_records<24>(records, count, to); break;
    case 28: take_records<28>(records, count, to); break;
    default: take_records<sizeof(NvDsInferInstanceMaskInfo)>(records, count, to);
    }
    return sound_boxes(to, count);
}

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
    const GuardReleasing now("mask");
    for (float *mask : masks) delete[] mask;
}
