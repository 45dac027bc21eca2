// A plugin of a V2DynamicExt class. WRONG_TYPE: it says another type than it writes; ONE_CHANNEL: it
// says another shape than the swish of its input has.
#include <NvInfer.h>

#include <cmath>
#include <string>

using namespace nvinfer1;

namespace {

class Swish : public IPluginV2DynamicExt {
public:
    IPluginV2DynamicExt *clone() const noexcept override { return new Swish(*this); }
    DimsExprs getOutputDimensions(int32_t, const DimsExprs *inputs, int32_t,
                                  IExprBuilder &builder) noexcept override {
        DimsExprs shape = inputs[0];
#ifdef ONE_CHANNEL
        shape.d[1] = builder.constant(1);
#endif
        (void)builder;
        return shape;
    }
    bool supportsFormatCombination(int32_t at, const PluginTensorDesc *tensors, int32_t,
                                   int32_t) noexcept override {
        return tensors[at].format == TensorFormat::kLINEAR;
    }
    void configurePlugin(const DynamicPluginTensorDesc *, int32_t, const DynamicPluginTensorDesc *,
                         int32_t) noexcept override {}
    size_t getWorkspaceSize(const PluginTensorDesc *, int32_t, const PluginTensorDesc *,
                            int32_t) const noexcept override {
        return 0;
    }
    int32_t enqueue(const PluginTensorDesc *, const PluginTensorDesc *described,
                    const void *const *inputs, void *const *outputs, void *,
                    cudaStream_t) noexcept override {
        size_t count = 1;
        for (int32_t i = 0; i < described[0].dims.nbDims; ++i) {
            count *= static_cast<size_t>(described[0].dims.d[i]);
        }
        const float *x = static_cast<const float *>(inputs[0]);
        float *y = static_cast<float *>(outputs[0]);
        for (size_t i = 0; i < count; ++i) {
            y[i] = x[i] / (1 + std::exp(-x[i]));
        }
        return 0;
    }
    DataType getOutputDataType(int32_t, const DataType *types, int32_t) const noexcept override {
#ifdef WRONG_TYPE
        (void)types;
        return DataType::kINT32;
#else
        return types[0];
#endif
    }
    const char *getPluginType() const noexcept override { return "MySwish"; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getSerializationSize() const noexcept override { return 0; }
    void serialize(void *) const noexcept override {}
    void destroy() noexcept override { delete this; }
    void setPluginNamespace(const char *name) noexcept override { space_ = name; }
    const char *getPluginNamespace() const noexcept override { return space_.c_str(); }

private:
    std::string space_;
};

class SwishCreator : public IPluginCreator {
public:
    const char *getPluginName() const noexcept override { return "MySwish"; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    const PluginFieldCollection *getFieldNames() noexcept override { return &fields_; }
    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *) noexcept override {
        return new Swish;
    }
    IPluginV2 *deserializePlugin(const char *, const void *, size_t) noexcept override {
        return new Swish;
    }
    void setPluginNamespace(const char *name) noexcept override { space_ = name; }
    const char *getPluginNamespace() const noexcept override { return space_.c_str(); }

private:
    PluginFieldCollection fields_{0, nullptr};
    std::string space_;
};

} // namespace

REGISTER_TENSORRT_PLUGIN(SwishCreator);
