// Shapes, element types, formats and weights of TensorRT's interface.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_TYPES_H
#define HEADRACE_TRT_TYPES_H

#include <cstddef>
#include <cstdint>

#include "../NvInferVersion.h"

#ifndef TRT_DEPRECATED
#define TRT_DEPRECATED
#define TRT_DEPRECATED_ENUM
#define TRT_DEPRECATED_API
#define TRT_DEPRECATED_BECAUSE(why)
#endif
#ifndef TENSORRTAPI
#define TENSORRTAPI
#endif
#ifndef TRTNOEXCEPT
#define TRTNOEXCEPT
#endif

namespace nvinfer1 {

using char_t = char;
using AsciiChar = char_t;

enum class DataType : int32_t {
    kFLOAT = 0,
    kHALF = 1,
    kINT8 = 2,
    kINT32 = 3,
    kBOOL = 4,
    kUINT8 = 5,
    kFP8 = 6,
    kBF16 = 7,
    kINT64 = 8,
    kINT4 = 9,
    kFP4 = 10,
    kE8M0 = 11
};

enum class TensorFormat : int32_t {
    kLINEAR = 0,
    kCHW2 = 1,
    kHWC8 = 2,
    kCHW4 = 3,
    kCHW16 = 4,
    kCHW32 = 5,
    kDHWC8 = 6,
    kCDHW32 = 7,
    kHWC = 8,
    kDLA_LINEAR = 9,
    kDLA_HWC4 = 10,
    kHWC16 = 11,
    kDHWC = 12,
    kNCHW = kLINEAR,  // names of the older generations
    kNC2HW2 = kCHW2,
    kNHWC8 = kHWC8
};

// How many values an enum has.
template <typename T>
constexpr int32_t EnumMax() noexcept;
template <>
constexpr int32_t EnumMax<TensorFormat>() noexcept {
    return 13;
}
using PluginFormat = TensorFormat;
using TensorFormats = uint32_t;

enum class DimensionType : int32_t { kSPATIAL = 0, kCHANNEL = 1, kINDEX = 2, kSEQUENCE = 3 };

#if NV_TENSORRT_MAJOR >= 10
class Dims64 {
public:
    static constexpr int32_t MAX_DIMS = 8;
    int32_t nbDims;
    int64_t d[MAX_DIMS];
};
using Dims = Dims64;
using HeadraceExtent = int64_t;
#elif NV_TENSORRT_MAJOR >= 8
class Dims32 {
public:
    static constexpr int32_t MAX_DIMS = 8;
    int32_t nbDims;
    int32_t d[MAX_DIMS];
};
using Dims = Dims32;
using HeadraceExtent = int32_t;
#else
class Dims {
public:
    static constexpr int MAX_DIMS = 8;
    int nbDims;
    int d[MAX_DIMS];
    DimensionType type[MAX_DIMS];
};
using HeadraceExtent = int32_t;
#endif

class Dims2 : public Dims {
public:
    Dims2() : Dims2(0, 0) {}
    Dims2(HeadraceExtent d0, HeadraceExtent d1) : Dims() {
        nbDims = 2;
        d[0] = d0;
        d[1] = d1;
    }
};

class DimsHW : public Dims2 {
public:
    DimsHW() = default;
    DimsHW(HeadraceExtent height, HeadraceExtent width) : Dims2(height, width) {}
    HeadraceExtent &h() { return d[0]; }
    HeadraceExtent h() const { return d[0]; }
    HeadraceExtent &w() { return d[1]; }
    HeadraceExtent w() const { return d[1]; }
};

class Dims3 : public Dims {
public:
    Dims3() : Dims3(0, 0, 0) {}
    Dims3(HeadraceExtent d0, HeadraceExtent d1, HeadraceExtent d2) : Dims() {
        nbDims = 3;
        d[0] = d0;
        d[1] = d1;
        d[2] = d2;
    }
};

class Dims4 : public Dims {
public:
    Dims4() : Dims4(0, 0, 0, 0) {}
    Dims4(HeadraceExtent d0, HeadraceExtent d1, HeadraceExtent d2, HeadraceExtent d3) : Dims() {
        nbDims = 4;
        d[0] = d0;
        d[1] = d1;
        d[2] = d2;
        d[3] = d3;
    }
};

#if NV_TENSORRT_MAJOR < 8
class DimsCHW : public Dims3 {
public:
    DimsCHW() = default;
    DimsCHW(int channels, int height, int width) : Dims3(channels, height, width) {}
    int &c() { return d[0]; }
    int c() const { return d[0]; }
    int &h() { return d[1]; }
    int h() const { return d[1]; }
    int &w() { return d[2]; }
    int w() const { return d[2]; }
};

class DimsNCHW : public Dims4 {
public:
    DimsNCHW() = default;
    DimsNCHW(int batch, int channels, int height, int width)
        : Dims4(batch, channels, height, width) {}
    int &n() { return d[0]; }
    int n() const { return d[0]; }
    int &c() { return d[1]; }
    int c() const { return d[1]; }
    int &h() { return d[2]; }
    int h() const { return d[2]; }
    int &w() { return d[3]; }
    int w() const { return d[3]; }
};
#endif

struct Permutation {
    int32_t order[Dims::MAX_DIMS];
};

class Weights {
public:
    DataType type;
    const void *values;
    int64_t count;
};

enum class PluginFieldType : int32_t {
    kFLOAT16 = 0,
    kFLOAT32 = 1,
    kFLOAT64 = 2,
    kINT8 = 3,
    kINT16 = 4,
    kINT32 = 5,
    kCHAR = 6,
    kDIMS = 7,
    kUNKNOWN = 8,
    kBF16 = 9,
    kINT64 = 10,
    kFP8 = 11,
    kINT4 = 12,
    kFP4 = 13
};

class PluginField {
public:
    const AsciiChar *name;
    const void *data;
    PluginFieldType type;
    int32_t length;  // elements

    PluginField(const AsciiChar *name_ = nullptr, const void *data_ = nullptr,
                PluginFieldType type_ = PluginFieldType::kUNKNOWN, int32_t length_ = 0)
        : name(name_), data(data_), type(type_), length(length_) {}
};

struct PluginFieldCollection {
    int32_t nbFields;
    const PluginField *fields;
};

enum class TensorRTPhase : int32_t { kBUILD = 0, kRUNTIME = 1 };
enum class PluginCapabilityType : int32_t { kCORE = 0, kBUILD = 1, kRUNTIME = 2 };
enum class PluginVersion : uint8_t {
    kV2 = 0,
    kV2_EXT = 1,
    kV2_IOEXT = 2,
    kV2_DYNAMICEXT = 3,
    kV2_DYNAMICEXT_PYTHON = 131
};
enum class APILanguage : int32_t { kCPP = 0, kPYTHON = 1 };
enum class EngineCapability : int32_t {
    kSTANDARD = 0,
    kSAFETY = 1,
    kDLA_STANDALONE = 2,
    kDEFAULT = kSTANDARD,
    kSAFE_GPU = kSAFETY,
    kSAFE_DLA = kDLA_STANDALONE
};

class InterfaceInfo {
public:
    const AsciiChar *kind;
    int32_t major;
    int32_t minor;
};

struct PluginTensorDesc {
    Dims dims;
    DataType type;
    TensorFormat format;
    float scale;
};

struct DynamicPluginTensorDesc {
    PluginTensorDesc desc;
    Dims min;
    Dims max;
#if NV_TENSORRT_MAJOR >= 10
    Dims opt;
#endif
};

enum class DimensionOperation : int32_t {
    kSUM = 0,
    kPROD = 1,
    kMAX = 2,
    kMIN = 3,
    kSUB = 4,
    kEQUAL = 5,
    kLESS = 6,
    kFLOOR_DIV = 7,
    kCEIL_DIV = 8
};

enum class ErrorCode : int32_t {
    kSUCCESS = 0,
    kUNSPECIFIED_ERROR = 1,
    kINTERNAL_ERROR = 2,
    kINVALID_ARGUMENT = 3,
    kINVALID_CONFIG = 4,
    kFAILED_ALLOCATION = 5,
    kFAILED_INITIALIZATION = 6,
    kFAILED_EXECUTION = 7,
    kFAILED_COMPUTATION = 8,
    kINVALID_STATE = 9,
    kUNSUPPORTED_STATE = 10
};

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_TYPES_H
