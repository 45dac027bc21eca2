// Detector and instance parsers (`parse-bbox-func-name`, `parse-bbox-instance-mask-func-name`).
#pragma once

#include <cstdint>
#include <memory>

#include "custom_library_function.h"

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
    char *release();  // the caller frees with operator delete
};

// Boxes as arrays, in pixels of the network's input.
struct BoxArrays {
    float *boxes;  // left, top, width, height of each
    float *scores;
    int32_t *ids;
    float *angles;  // or null
};

// The same arrays one after the other in a block of memory, each from a multiple of 64 bytes on.
struct BoxBlock {
    BoxBlock(void *block, size_t count, bool with_angles);
    BoxArrays arrays;
    size_t bytes;  // of all of them; a block is no smaller
};

// Whether every number is finite and no class id is negative: it exceeds the signed range then.
bool sound_boxes(const BoxArrays &arrays, size_t count);

// Takes `count` records apart, one each `stride` bytes (24, 28 or those of an instance): class, left,
// top, width, height, score, and with 28 bytes an angle. Whether they are sound.
bool take_boxes(const void *records, size_t count, size_t stride, const BoxArrays &to);

class DetectorParser : public CustomFunction {
public:
    DetectorParser(std::shared_ptr<SharedObject> library, const std::string &name);

    // Thresholds of the following calls; libraries read them through three names of two vectors.
    void set_params(unsigned int num_classes, const std::vector<float> &pre,
                    const std::vector<float> &post);

    // Returns the function's result; `objects` holds what it left.
    bool call(const NvDsInferNetworkInfo &network, ByteVector &objects);

private:
    NvDsInferParseDetectionParams params_;
};

// What an instance parser left: records of one size in every generation, each of which may own a
// mask made with new[]. All masks are deleted with the vector, each once, whatever happened.
class InstanceVector : public ByteVector {
public:
    InstanceVector() = default;
    ~InstanceVector();

    // Throws CustomResultError if the bytes cannot be such records: then no mask is touched.
    void require_records();
    size_t count() const { return size() / sizeof(NvDsInferInstanceMaskInfo); }
    const NvDsInferInstanceMaskInfo &record(size_t index) const {
        return reinterpret_cast<const NvDsInferInstanceMaskInfo *>(begin)[index];
    }

private:
    bool are_records() const;
};

// The same call; its vector has another element type.
class InstanceParser : public DetectorParser {
public:
    using DetectorParser::DetectorParser;
};
