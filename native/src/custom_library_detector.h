// Detector and instance parsers (`parse-bbox-func-name`, `parse-bbox-instance-mask-func-name`).
#pragma once

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
