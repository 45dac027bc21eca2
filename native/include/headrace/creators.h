// Creators of plugins: what sources derive from to make their layers known.
//
// Virtual functions carry no noexcept, see logger.h. Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_CREATORS_H
#define HEADRACE_TRT_CREATORS_H

#include "plugin_v2.h"
#include "plugin_v3.h"

namespace nvinfer1 {

class IPluginCreatorInterface : public IVersionedInterface {
public:
    // How the host calls it; `self` is what these calls take.
    virtual headrace_creator_calls headraceCalls(void **self) {
        *self = nullptr;
        return headrace_creator_calls();
    }
};

class IPluginCreator : public IPluginCreatorInterface {
public:
    InterfaceInfo getInterfaceInfo() const override {
        return InterfaceInfo{"PLUGIN CREATOR_V1", 1, 0};
    }
    virtual int32_t getTensorRTVersion() const { return NV_TENSORRT_VERSION; }
    virtual const AsciiChar *getPluginName() const = 0;
    virtual const AsciiChar *getPluginVersion() const = 0;
    virtual const PluginFieldCollection *getFieldNames() = 0;
    virtual IPluginV2 *createPlugin(const AsciiChar *name, const PluginFieldCollection *fc) = 0;
    virtual IPluginV2 *deserializePlugin(const AsciiChar *name, const void *serialData,
                                         size_t serialLength) = 0;
    virtual void setPluginNamespace(const AsciiChar *pluginNamespace) = 0;
    virtual const AsciiChar *getPluginNamespace() const = 0;
    inline headrace_creator_calls headraceCalls(void **self) override;
};

class IPluginCreatorV3One : public IPluginCreatorInterface {
public:
    InterfaceInfo getInterfaceInfo() const override {
        return InterfaceInfo{"PLUGIN CREATOR_V3ONE", 1, 0};
    }
    virtual IPluginV3 *createPlugin(const AsciiChar *name, const PluginFieldCollection *fc,
                                    TensorRTPhase phase) = 0;
    virtual const PluginFieldCollection *getFieldNames() = 0;
    virtual const AsciiChar *getPluginName() const = 0;
    virtual const AsciiChar *getPluginVersion() const = 0;
    virtual const AsciiChar *getPluginNamespace() const = 0;
    inline headrace_creator_calls headraceCalls(void **self) override;
};

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_CREATORS_H
