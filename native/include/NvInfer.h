// Names of TensorRT that headers of custom libraries mention: enough to compile parsers, not to
// build engines. Put the real headers before this folder on the include path if you have them.
//
// Part of noria, Apache-2.0.
#ifndef NORIA_NV_INFER_H
#define NORIA_NV_INFER_H

#include <cstddef>
#include <cstdint>

// Sources choose code paths by these; 10 is the level whose struct shapes are declared here.
#define NV_TENSORRT_MAJOR 10
#define NV_TENSORRT_MINOR 0
#define NV_TENSORRT_PATCH 0

namespace nvinfer1 {

class IBuilder;
class IBuilderConfig;
class ICudaEngine;
class IHostMemory;
class ILayer;
class ILogger;
class INetworkDefinition;
class IOptimizationProfile;
class IPluginCreator;
class IPluginFactory;
class IPluginRegistry;
class IPluginV2;
class IRuntime;

enum class DataType : int32_t {
    kFLOAT = 0,
    kHALF = 1,
    kINT8 = 2,
    kINT32 = 3,
    kBOOL = 4,
    kUINT8 = 5,
    kINT64 = 8
};

class Dims64 {
public:
    static constexpr int32_t MAX_DIMS = 8;
    int32_t nbDims;
    int64_t d[MAX_DIMS];
};
using Dims = Dims64;

class Weights {
public:
    DataType type;
    const void *values;
    int64_t count;
};

// Declared for helpers that print shapes; noria never hands one to a parser.
class ITensor {
public:
    virtual ~ITensor() = default;
    virtual Dims getDimensions() const noexcept = 0;
    virtual const char *getName() const noexcept = 0;
};

}  // namespace nvinfer1

#endif  // NORIA_NV_INFER_H
