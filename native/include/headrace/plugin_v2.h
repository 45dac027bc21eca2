// The V2 line of plugin classes: what sources derive their layers from.
//
// Virtual functions carry no noexcept, see logger.h. Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_PLUGIN_V2_H
#define HEADRACE_TRT_PLUGIN_V2_H

#include "expressions.h"
#include "logger.h"

// Outputs of enqueue lost their constness of the outer pointer in 8.0.
#if NV_TENSORRT_MAJOR >= 8
#define HEADRACE_OUTPUTS void *const *
#else
#define HEADRACE_OUTPUTS void **
#endif

namespace nvinfer1 {

class IPluginV2 {
public:
    virtual int32_t getTensorRTVersion() const { return NV_TENSORRT_VERSION; }
    virtual const AsciiChar *getPluginType() const = 0;
    virtual const AsciiChar *getPluginVersion() const = 0;
    virtual int32_t getNbOutputs() const = 0;
    virtual Dims getOutputDimensions(int32_t index, const Dims *inputs, int32_t nbInputDims) = 0;
    virtual bool supportsFormat(DataType type, PluginFormat format) const = 0;
    virtual void configureWithFormat(const Dims *inputDims, int32_t nbInputs,
                                     const Dims *outputDims, int32_t nbOutputs, DataType type,
                                     PluginFormat format, int32_t maxBatchSize) = 0;
    virtual int32_t initialize() = 0;
    virtual void terminate() = 0;
    virtual size_t getWorkspaceSize(int32_t maxBatchSize) const = 0;
    virtual int32_t enqueue(int32_t batchSize, const void *const *inputs, HEADRACE_OUTPUTS outputs,
                            void *workspace, cudaStream_t stream) = 0;
    virtual size_t getSerializationSize() const = 0;
    virtual void serialize(void *buffer) const = 0;
    virtual void destroy() = 0;
    virtual IPluginV2 *clone() const = 0;
    virtual void setPluginNamespace(const AsciiChar *pluginNamespace) = 0;
    virtual const AsciiChar *getPluginNamespace() const = 0;

    IPluginV2() = default;
    virtual ~IPluginV2() = default;
};

class IPluginV2Ext : public IPluginV2 {
public:
    virtual DataType getOutputDataType(int32_t index, const DataType *inputTypes,
                                       int32_t nbInputs) const = 0;
    virtual bool isOutputBroadcastAcrossBatch(int32_t, const bool *, int32_t) const {
        return false;
    }
    virtual bool canBroadcastInputAcrossBatch(int32_t) const { return false; }
    virtual void configurePlugin(const Dims *inputDims, int32_t nbInputs, const Dims *outputDims,
                                 int32_t nbOutputs, const DataType *inputTypes,
                                 const DataType *outputTypes, const bool *inputIsBroadcast,
                                 const bool *outputIsBroadcast, PluginFormat floatFormat,
                                 int32_t maxBatchSize) = 0;
    virtual void attachToContext(cudnnContext *, cublasContext *, IGpuAllocator *) {}
    virtual void detachFromContext() {}
    IPluginV2Ext *clone() const override = 0;
    int32_t getTensorRTVersion() const override { return (1 << 24) | NV_TENSORRT_VERSION; }
    void configureWithFormat(const Dims *, int32_t, const Dims *, int32_t, DataType, PluginFormat,
                             int32_t) override {}
};

class IPluginV2IOExt : public IPluginV2Ext {
public:
    virtual void configurePlugin(const PluginTensorDesc *in, int32_t nbInput,
                                 const PluginTensorDesc *out, int32_t nbOutput) = 0;
    virtual bool supportsFormatCombination(int32_t pos, const PluginTensorDesc *inOut,
                                           int32_t nbInputs, int32_t nbOutputs) const = 0;
    int32_t getTensorRTVersion() const override { return (2 << 24) | NV_TENSORRT_VERSION; }
    void configureWithFormat(const Dims *, int32_t, const Dims *, int32_t, DataType, PluginFormat,
                             int32_t) override {}
    void configurePlugin(const Dims *, int32_t, const Dims *, int32_t, const DataType *,
                         const DataType *, const bool *, const bool *, PluginFormat,
                         int32_t) override {}
    bool supportsFormat(DataType, PluginFormat) const override { return false; }
};

class IPluginV2DynamicExt : public IPluginV2Ext {
public:
    static constexpr int32_t kFORMAT_COMBINATION_LIMIT = 100;

    IPluginV2DynamicExt *clone() const override = 0;
    virtual DimsExprs getOutputDimensions(int32_t outputIndex, const DimsExprs *inputs,
                                          int32_t nbInputs, IExprBuilder &exprBuilder) = 0;
    virtual bool supportsFormatCombination(int32_t pos, const PluginTensorDesc *inOut,
                                           int32_t nbInputs, int32_t nbOutputs) = 0;
    virtual void configurePlugin(const DynamicPluginTensorDesc *in, int32_t nbInputs,
                                 const DynamicPluginTensorDesc *out, int32_t nbOutputs) = 0;
    virtual size_t getWorkspaceSize(const PluginTensorDesc *, int32_t, const PluginTensorDesc *,
                                    int32_t) const {
        return 0;
    }
    virtual int32_t enqueue(const PluginTensorDesc *inputDesc, const PluginTensorDesc *outputDesc,
                            const void *const *inputs, void *const *outputs, void *workspace,
                            cudaStream_t stream) = 0;

    int32_t getTensorRTVersion() const override { return (3 << 24) | NV_TENSORRT_VERSION; }
    // What the older classes ask has no meaning with dynamic shapes.
    Dims getOutputDimensions(int32_t, const Dims *, int32_t) override {
        Dims none = {};
        none.nbDims = -1;
        return none;
    }
    bool isOutputBroadcastAcrossBatch(int32_t, const bool *, int32_t) const override {
        return false;
    }
    bool canBroadcastInputAcrossBatch(int32_t) const override { return true; }
    bool supportsFormat(DataType, PluginFormat) const override { return false; }
    void configurePlugin(const Dims *, int32_t, const Dims *, int32_t, const DataType *,
                         const DataType *, const bool *, const bool *, PluginFormat,
                         int32_t) override {}
    size_t getWorkspaceSize(int32_t) const override { return 0; }
    int32_t enqueue(int32_t, const void *const *, HEADRACE_OUTPUTS, void *, cudaStream_t) override {
        return 1;
    }
};

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_PLUGIN_V2_H
