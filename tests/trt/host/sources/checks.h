// What sources of tests have in common: checks that are collected, a logger, a network.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "NvInfer.h"

#define CHECK(condition)                                                               \
    do {                                                                               \
        if (!(condition)) failed() += std::to_string(__LINE__) + ": " #condition "\n"; \
    } while (0)
// What a setter is given is what the getter gives.
#define KEEP(object, Name, value)                    \
    do {                                             \
        (object).set##Name(value);                   \
        CHECK(equal((object).get##Name(), (value))); \
    } while (0)

inline std::string &failed() {
    static std::string lines;
    return lines;
}

template <typename A, typename B,
          typename = typename std::enable_if<!std::is_base_of<nvinfer1::Dims, A>::value>::type>
bool equal(const A &a, const B &b) {
    return a == static_cast<A>(b);
}
inline bool equal(const char *a, const char *b) { return a && std::strcmp(a, b) == 0; }
inline bool equal(const nvinfer1::Dims &a, const nvinfer1::Dims &b) {
    bool same = a.nbDims == b.nbDims;
    for (int i = 0; same && i < a.nbDims; ++i) same = a.d[i] == b.d[i];
    return same;
}
inline bool equal(const nvinfer1::Permutation &a, const nvinfer1::Permutation &b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
}
inline bool equal(const nvinfer1::Weights &a, const nvinfer1::Weights &b) {
    return a.type == b.type && a.count == b.count &&
           std::memcmp(a.values, b.values, size_t(a.count) * 4) == 0;
}

inline nvinfer1::Dims dims(std::initializer_list<int64_t> axes) {
    nvinfer1::Dims out = {};
    for (int64_t axis : axes) out.d[out.nbDims++] = static_cast<int32_t>(axis);
    return out;
}

// Weights 0, 1, 2 …, which live as long as the program.
inline nvinfer1::Weights weights(int64_t count, float scale = 1.0f) {
    static std::vector<std::unique_ptr<std::vector<float>>> all;
    all.emplace_back(new std::vector<float>);
    for (int64_t i = 0; i < count; ++i) all.back()->push_back(scale * float(i));
    return nvinfer1::Weights{nvinfer1::DataType::kFLOAT, all.back()->data(), count};
}

class Log : public nvinfer1::ILogger {
public:
    std::string text;
    void log(Severity severity, const char *msg) noexcept override {
        if (severity <= Severity::kWARNING) text += std::string(msg) + "\n";
    }
};

class Errors : public nvinfer1::IErrorRecorder {
public:
    int references = 0;
    std::vector<std::pair<nvinfer1::ErrorCode, std::string>> all;
    int32_t getNbErrors() const noexcept override { return static_cast<int32_t>(all.size()); }
    nvinfer1::ErrorCode getErrorCode(int32_t i) const noexcept override { return all[i].first; }
    ErrorDesc getErrorDesc(int32_t i) const noexcept override { return all[i].second.c_str(); }
    bool hasOverflowed() const noexcept override { return false; }
    void clear() noexcept override { all.clear(); }
    bool reportError(nvinfer1::ErrorCode code, ErrorDesc text) noexcept override {
        all.emplace_back(code, text);
        return true;
    }
    RefCount incRefCount() noexcept override { return ++references; }
    RefCount decRefCount() noexcept override { return --references; }
};
