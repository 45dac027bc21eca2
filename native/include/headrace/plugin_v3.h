// The third generation of plugin classes and its three faces.
//
// Virtual functions carry no noexcept, see logger.h. Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_PLUGIN_V3_H
#define HEADRACE_TRT_PLUGIN_V3_H

#include "expressions.h"
#include "logger.h"

namespace nvinfer1 {

class IPluginCapability : public IVersionedInterface {};

// What a plugin is given when it is bound to an execution context. Memory here is the host's.
class IPluginResourceContext : public headrace::Object {
public:
    IGpuAllocator *getGpuAllocator() const { return nullptr; }
    IErrorRecorder *getErrorRecorder() const { return nullptr; }

private:
    IPluginResourceContext() = delete;
};

class IPluginResource : public IVersionedInterface {
public:
    virtual int32_t release() = 0;
    virtual IPluginResource *clone() = 0;
};

class IPluginV3 : public IVersionedInterface {
public:
    InterfaceInfo getInterfaceInfo() const override { return InterfaceInfo{"PLUGIN_V3", 1, 0}; }
    virtual IPluginCapability *getCapabilityInterface(PluginCapabilityType type) = 0;
    virtual IPluginV3 *clone() = 0;
};

class IPluginV3OneCore : public IPluginCapability {
public:
    InterfaceInfo getInterfaceInfo() const override {
        return InterfaceInfo{"PLUGIN_V3ONE_CORE", 1, 0};
    }
    virtual const AsciiChar *getPluginName() const = 0;
    virtual const AsciiChar *getPluginVersion() const = 0;
    virtual const AsciiChar *getPluginNamespace() const = 0;
};

class IPluginV3OneBuild : public IPluginCapability {
public:
    static constexpr int32_t kDEFAULT_FORMAT_COMBINATION_LIMIT = 100;

    InterfaceInfo getInterfaceInfo() const override {
        return InterfaceInfo{"PLUGIN_V3ONE_BUILD", 1, 0};
    }
    virtual int32_t configurePlugin(const DynamicPluginTensorDesc *in, int32_t nbInputs,
                                    const DynamicPluginTensorDesc *out, int32_t nbOutputs) = 0;
    virtual int32_t getOutputDataTypes(DataType *outputTypes, int32_t nbOutputs,
                                       const DataType *inputTypes, int32_t nbInputs) const = 0;
    virtual int32_t getOutputShapes(const DimsExprs *inputs, int32_t nbInputs,
                                    const DimsExprs *shapeInputs, int32_t nbShapeInputs,
                                    DimsExprs *outputs, int32_t nbOutputs,
                                    IExprBuilder &exprBuilder) = 0;
    virtual bool supportsFormatCombination(int32_t pos, const DynamicPluginTensorDesc *inOut,
                                           int32_t nbInputs, int32_t nbOutputs) = 0;
    virtual int32_t getNbOutputs() const = 0;
    virtual size_t getWorkspaceSize(const DynamicPluginTensorDesc *, int32_t,
                                    const DynamicPluginTensorDesc *, int32_t) const {
        return 0;
    }
    virtual int32_t getValidTactics(int32_t *, int32_t) { return 0; }
    virtual int32_t getNbTactics() { return 0; }
    virtual const char *getTimingCacheID() { return nullptr; }
    virtual int32_t getFormatCombinationLimit() { return kDEFAULT_FORMAT_COMBINATION_LIMIT; }
    virtual const char *getMetadataString() { return nullptr; }
};

class IPluginV3OneBuildV2 : public IPluginV3OneBuild {
public:
    InterfaceInfo getInterfaceInfo() const override {
        return InterfaceInfo{"PLUGIN_V3ONE_BUILD", 2, 0};
    }
    virtual int32_t getAliasedInput(int32_t) { return -1; }
};

class IPluginV3OneRuntime : public IPluginCapability {
public:
    InterfaceInfo getInterfaceInfo() const override {
        return InterfaceInfo{"PLUGIN_V3ONE_RUNTIME", 1, 0};
    }
    virtual int32_t setTactic(int32_t) { return 0; }
    virtual int32_t onShapeChange(const PluginTensorDesc *in, int32_t nbInputs,
                                  const PluginTensorDesc *out, int32_t nbOutputs) = 0;
    virtual int32_t enqueue(const PluginTensorDesc *inputDesc, const PluginTensorDesc *outputDesc,
                            const void *const *inputs, void *const *outputs, void *workspace,
                            cudaStream_t stream) = 0;
    virtual IPluginV3 *attachToContext(IPluginResourceContext *context) = 0;
    virtual const PluginFieldCollection *getFieldsToSerialize() = 0;
};

namespace v_1_0 {
using nvinfer1::IPluginCapability;
using nvinfer1::IPluginResource;
using nvinfer1::IPluginV3;
using nvinfer1::IPluginV3OneBuild;
using nvinfer1::IPluginV3OneCore;
using nvinfer1::IPluginV3OneRuntime;
}  // namespace v_1_0
namespace v_2_0 {
using IPluginV3OneBuild = nvinfer1::IPluginV3OneBuildV2;
}

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_PLUGIN_V3_H
