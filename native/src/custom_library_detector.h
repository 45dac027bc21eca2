// One detector parser (`parse-bbox-func-name`) of a custom library, called with real C++ objects.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include "custom_library_shared_object.h"

// This module calls custom libraries, it is none.
#define NORIA_NO_ABI_MARKER
#include "nvdsinfer_custom_impl.h"

// Code of the user threw: `what()` is its text.
struct CustomCodeError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

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

class DetectorParser {
public:
    // Throws std::runtime_error if the library has no such function.
    DetectorParser(std::shared_ptr<SharedObject> library, const std::string &name);

    // Thresholds of the following calls; libraries read them through three names of two vectors.
    void set_params(unsigned int num_classes, const std::vector<float> &pre,
                    const std::vector<float> &post);

    // Names and binding indices of the layers of the following calls.
    void set_layers(const std::vector<std::string> &names, const std::vector<int> &bindings);
    NvDsInferLayerInfo &layer(size_t index) { return layers_[index]; }
    size_t layer_count() const { return layers_.size(); }

    // Calls the function without the interpreter lock held by this thread. Returns its result;
    // `boxes` holds what it left. Throws CustomCodeError for anything that it throws.
    bool call(const NvDsInferNetworkInfo &network, ByteVector &boxes);

private:
    using Function = bool (*)(const std::vector<NvDsInferLayerInfo> &, const NvDsInferNetworkInfo &,
                              const NvDsInferParseDetectionParams &, ByteVector &);

    std::shared_ptr<SharedObject> library_;
    Function function_;
    NvDsInferParseDetectionParams params_;
    std::vector<NvDsInferLayerInfo> layers_;
    std::unordered_set<std::string> names_;  // libraries may keep a layer's name pointer
};
