// What functions of a library leave, and what they are given beside tensors. No Python here: the
// program for libraries of another processor uses it, too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "guard/crash.h"

// This module calls custom libraries, it is none.
#define HEADRACE_NO_ABI_MARKER
#include "nvdsinfer_custom_impl.h"

namespace headrace::custom {

// Releases memory that a function gave as `field` of its result, each piece once: two entries may
// share one. Whatever happened before.
template <typename T, typename Release>
void release_once(std::vector<T *> &given, const char *field, Release release) {
    std::sort(given.begin(), given.end());
    given.erase(std::unique(given.begin(), given.end()), given.end());
    const guard::Releasing now(field);
    for (T *one : given)
        if (one) release(one);
}

// std::vector as libstdc++ lays it out. The element size is the library's secret (24 or 28 bytes),
// so the host must not instantiate the vector itself; empty is three null pointers, storage is from
// operator new. Source: custom-library spec 1.2.
struct ByteVector {
    char *begin = nullptr;
    char *end = nullptr;
    char *capacity_end = nullptr;

    ByteVector() = default;
    ~ByteVector() { ::operator delete(begin); }
    ByteVector(const ByteVector &) = delete;
    ByteVector &operator=(const ByteVector &) = delete;

    size_t size() const { return static_cast<size_t>(end - begin); }
    size_t capacity() const { return static_cast<size_t>(capacity_end - begin); }
};

// What an instance parser left: records of one size in every generation, each of which may own a
// mask made with new[]. All masks are deleted with the vector.
struct InstanceVector : ByteVector {
    ~InstanceVector() {
        if (!are_records()) return;
        std::vector<float *> masks;
        masks.reserve(count());
        for (size_t i = 0; i < count(); ++i) masks.push_back(record(i).mask);
        release_once(masks, "mask", [](float *mask) { delete[] mask; });
    }

    // If not, no mask is touched: what a record of another type holds at its place, such as a class
    // id beside a coordinate, cannot come from new float[].
    bool are_records() const {
        if (size() % sizeof(NvDsInferInstanceMaskInfo) ||
            capacity() % sizeof(NvDsInferInstanceMaskInfo))
            return false;
        for (size_t i = 0; i < count(); ++i) {
            const auto mask = reinterpret_cast<uintptr_t>(record(i).mask);
            if (mask && (mask % alignof(float) || mask < 1 << 16 || mask >> 47)) return false;
        }
        return true;
    }

    size_t count() const { return size() / sizeof(NvDsInferInstanceMaskInfo); }
    const NvDsInferInstanceMaskInfo &record(size_t index) const {
        return reinterpret_cast<const NvDsInferInstanceMaskInfo *>(begin)[index];
    }
};

// What a classifier parser left: attributes whose labels are from malloc, or null.
struct Attributes {
    std::vector<NvDsInferAttribute> list;
    std::string text;

    ~Attributes() {
        std::vector<char *> labels;
        labels.reserve(list.size());
        for (const NvDsInferAttribute &attribute : list) labels.push_back(attribute.attributeLabel);
        release_once(labels, "attributeLabel", std::free);
    }
};

// Parsers index these by class ids that the model made up. Values beyond the end, in storage that
// belongs to the vector, keep such a read harmless and its object below the threshold.
// Source: custom-library spec 2.6.
inline void fill_with_guard(std::vector<float> &vector, const std::vector<float> &values) {
    constexpr size_t kGuard = 1024;
    vector.assign(values.size() + kGuard, std::numeric_limits<float>::max());
    std::copy(values.begin(), values.end(), vector.begin());
    vector.resize(values.size());
}

}  // namespace headrace::custom
