// Settings of programs that read ONNX files: an interface that NVIDIA's samples derive from.
#ifndef HEADRACE_NVONNXCONFIG_H
#define HEADRACE_NVONNXCONFIG_H

#include "NvInfer.h"

namespace nvonnxparser {

class IOnnxConfig {
public:
    using Verbosity = int32_t;

    virtual ~IOnnxConfig() noexcept = default;
    virtual void setModelDtype(nvinfer1::DataType const type) noexcept = 0;
    virtual nvinfer1::DataType getModelDtype() const noexcept = 0;
    virtual char const *getModelFileName() const noexcept = 0;
    virtual void setModelFileName(char const *name) noexcept = 0;
    virtual Verbosity getVerbosityLevel() const noexcept = 0;
    virtual void addVerbosity() noexcept = 0;
    virtual void reduceVerbosity() noexcept = 0;
    virtual void setVerbosityLevel(Verbosity level) noexcept = 0;
    virtual char const *getTextFileName() const noexcept = 0;
    virtual void setTextFileName(char const *name) noexcept = 0;
    virtual char const *getFullTextFileName() const noexcept = 0;
    virtual void setFullTextFileName(char const *name) noexcept = 0;
    virtual bool getPrintLayerInfo() const noexcept = 0;
    virtual void setPrintLayerInfo(bool yes) noexcept = 0;
#if NV_TENSORRT_MAJOR < 10
    virtual void destroy() noexcept = 0;
#endif
};

}  // namespace nvonnxparser

#endif  // HEADRACE_NVONNXCONFIG_H
