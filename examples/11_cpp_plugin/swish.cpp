// The layer "Swish_TRT", y = x / (1 + exp(-beta * x)), as TensorRT loads it: nothing in here is
// Headrace's. On a GPU enqueue would launch a kernel; Headrace's pointers are memory of the host.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "NvInferPlugin.h"

using namespace nvinfer1;

namespace {

constexpr const char *kType = "Swish_TRT", *kVersion = "1";

class Swish : public IPluginV2DynamicExt {
public:
    explicit Swish(float beta) : beta_(beta) {}
    Swish(const void *data, size_t size) {
        if (size == sizeof(beta_)) std::memcpy(&beta_, data, size);
    }

    const char *getPluginType() const noexcept override { return kType; }
    const char *getPluginVersion() const noexcept override { return kVersion; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    void destroy() noexcept override { delete this; }
    size_t getSerializationSize() const noexcept override { return sizeof(beta_); }
    void serialize(void *buffer) const noexcept override {
        std::memcpy(buffer, &beta_, sizeof(beta_));
    }
    void setPluginNamespace(const char *name) noexcept override { namespace_ = name; }
    const char *getPluginNamespace() const noexcept override { return namespace_.c_str(); }

    IPluginV2DynamicExt *clone() const noexcept override {
        auto made = std::make_unique<Swish>(beta_);
        made->setPluginNamespace(getPluginNamespace());
        return made.release();
    }
    DimsExprs getOutputDimensions(int32_t, const DimsExprs *inputs, int32_t,
                                  IExprBuilder &) noexcept override {
        return inputs[0];
    }
    DataType getOutputDataType(int32_t, const DataType *types, int32_t) const noexcept override {
        return types[0];
    }
    bool supportsFormatCombination(int32_t at, const PluginTensorDesc *tensors, int32_t,
                                   int32_t) noexcept override {
        return tensors[at].type == DataType::kFLOAT && tensors[at].format == TensorFormat::kLINEAR;
    }
    void configurePlugin(const DynamicPluginTensorDesc *, int32_t, const DynamicPluginTensorDesc *,
                         int32_t) noexcept override {}
    size_t getWorkspaceSize(const PluginTensorDesc *, int32_t, const PluginTensorDesc *,
                            int32_t) const noexcept override {
        return 0;
    }
    int32_t enqueue(const PluginTensorDesc *inputs, const PluginTensorDesc *,
                    const void *const *from, void *const *to, void *, cudaStream_t) noexcept override {
        const Dims &dims = inputs[0].dims;
        int64_t count = 1;
        for (int32_t axis = 0; axis < dims.nbDims; ++axis) count *= dims.d[axis];
        const auto *x = static_cast<const float *>(from[0]);
        auto *y = static_cast<float *>(to[0]);
        for (int64_t i = 0; i < count; ++i) y[i] = x[i] / (1.0f + std::exp(-beta_ * x[i]));
        return 0;
    }

private:
    float beta_ = 1.0f;
    std::string namespace_;
};

class SwishCreator : public IPluginCreator {
public:
    SwishCreator() : field_("beta", nullptr, PluginFieldType::kFLOAT32, 1) {
        fields_.nbFields = 1;
        fields_.fields = &field_;
    }

    const char *getPluginName() const noexcept override { return kType; }
    const char *getPluginVersion() const noexcept override { return kVersion; }
    const PluginFieldCollection *getFieldNames() noexcept override { return &fields_; }
    void setPluginNamespace(const char *name) noexcept override { namespace_ = name; }
    const char *getPluginNamespace() const noexcept override { return namespace_.c_str(); }

    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *given) noexcept override {
        float beta = 1.0f;
        for (int32_t i = 0; i < given->nbFields; ++i)
            if (!std::strcmp(given->fields[i].name, "beta"))
                beta = *static_cast<const float *>(given->fields[i].data);
        return new Swish(beta);
    }
    IPluginV2 *deserializePlugin(const char *, const void *data, size_t size) noexcept override {
        return new Swish(data, size);
    }

private:
    PluginField field_;
    PluginFieldCollection fields_{};
    std::string namespace_;
};

}  // namespace

REGISTER_TENSORRT_PLUGIN(SwishCreator);
