// Plugins whose data is lost on the way into an engine, or that are no plugins to run: the field
// "fault" says how.
#include <NvInfer.h>

#include <cstring>
#include <vector>

using namespace nvinfer1;

namespace {

enum Fault : int32_t {
    kNone,
    kNullFields,
    kNegativeLength,
    kNoName,
    kNoData,
    kTooLong,
    kCloneItself,
    kAttachItself,
    kNoRuntime,
    kSmall,
    kFarBeyond,
    kBehindOutput,
    kBehindWorkspace,
    kWritesNothing,
    kWritesInput,
    kLeavesOne,
    kBeforeOutput
};

class Lost3 : public IPluginV3,
              public IPluginV3OneCore,
              public IPluginV3OneBuild,
              public IPluginV3OneRuntime {
public:
    explicit Lost3(int32_t f) : fault(f) {}
    IPluginCapability *getCapabilityInterface(PluginCapabilityType type) noexcept override {
        if (type == PluginCapabilityType::kCORE) return static_cast<IPluginV3OneCore *>(this);
        if (type == PluginCapabilityType::kBUILD) return static_cast<IPluginV3OneBuild *>(this);
        if (fault == kNoRuntime) return nullptr;
        return static_cast<IPluginV3OneRuntime *>(this);
    }
    IPluginV3 *clone() noexcept override { return fault == kCloneItself ? this : new Lost3(fault); }
    const AsciiChar *getPluginName() const noexcept override { return "Lost3"; }
    const AsciiChar *getPluginVersion() const noexcept override { return "1"; }
    const AsciiChar *getPluginNamespace() const noexcept override { return ""; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t getOutputDataTypes(DataType *out, int32_t, const DataType *in,
                               int32_t) const noexcept override {
        out[0] = in[0];
        return 0;
    }
    int32_t getOutputShapes(const DimsExprs *in, int32_t, const DimsExprs *, int32_t,
                            DimsExprs *out, int32_t, IExprBuilder &) noexcept override {
        out[0] = in[0];
        return 0;
    }
    bool supportsFormatCombination(int32_t pos, const DynamicPluginTensorDesc *io, int32_t,
                                   int32_t) noexcept override {
        return io[pos].desc.type == DataType::kFLOAT &&
               io[pos].desc.format == TensorFormat::kLINEAR;
    }
    int32_t configurePlugin(const DynamicPluginTensorDesc *, int32_t,
                            const DynamicPluginTensorDesc *, int32_t) noexcept override {
        return 0;
    }
    int32_t onShapeChange(const PluginTensorDesc *, int32_t, const PluginTensorDesc *,
                          int32_t) noexcept override {
        return 0;
    }
    int32_t enqueue(const PluginTensorDesc *, const PluginTensorDesc *, const void *const *,
                    void *const *, void *, cudaStream_t) noexcept override {
        return 0;
    }
    IPluginV3 *attachToContext(IPluginResourceContext *) noexcept override {
        return fault == kAttachItself ? this : new Lost3(fault);
    }
    const PluginFieldCollection *getFieldsToSerialize() noexcept override {
        if (fault == kNullFields) return nullptr;
        fields.clear();
        fields.emplace_back("fault", &fault, PluginFieldType::kINT32, 1);
        if (fault == kNegativeLength) fields[0].length = -4;
        if (fault == kNoName) fields[0].name = nullptr;
        if (fault == kNoData) fields[0].data = nullptr;
        if (fault == kTooLong) fields[0].length = 1 << 30;
        all = PluginFieldCollection{1, fields.data()};
        return &all;
    }

    int32_t fault;
    std::vector<PluginField> fields;
    PluginFieldCollection all{};
};

class Lost2 : public IPluginV2DynamicExt {
public:
    explicit Lost2(int32_t f) : fault(f) {}
    const char *getPluginType() const noexcept override { return "Lost2"; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getSerializationSize() const noexcept override { return 4; }
    void serialize(void *data) const noexcept override {
        std::memset(data, 1, fault == kSmall ? 20 : fault == kFarBeyond ? 1 << 20 : 4);
        std::memcpy(data, &fault, sizeof(fault));
    }
    void destroy() noexcept override { delete this; }
    IPluginV2DynamicExt *clone() const noexcept override {
        return fault == kCloneItself ? const_cast<Lost2 *>(this) : new Lost2(*this);
    }
    void setPluginNamespace(const char *) noexcept override {}
    const char *getPluginNamespace() const noexcept override { return ""; }
    DataType getOutputDataType(int32_t, const DataType *t, int32_t) const noexcept override {
        return t[0];
    }
    DimsExprs getOutputDimensions(int32_t, const DimsExprs *in, int32_t,
                                  IExprBuilder &) noexcept override {
        return in[0];
    }
    bool supportsFormatCombination(int32_t pos, const PluginTensorDesc *io, int32_t,
                                   int32_t) noexcept override {
        return io[pos].type == DataType::kFLOAT && io[pos].format == TensorFormat::kLINEAR;
    }
    void configurePlugin(const DynamicPluginTensorDesc *, int32_t, const DynamicPluginTensorDesc *,
                         int32_t) noexcept override {}
    size_t getWorkspaceSize(const PluginTensorDesc *, int32_t, const PluginTensorDesc *,
                            int32_t) const noexcept override {
        return 16;
    }
    int32_t enqueue(const PluginTensorDesc *in, const PluginTensorDesc *, const void *const *in_,
                    void *const *out, void *workspace, cudaStream_t) noexcept override {
        const size_t size = static_cast<size_t>(in->dims.d[0] * in->dims.d[1]) * sizeof(float);
        if (fault == kWritesInput) *static_cast<float *>(const_cast<void *>(in_[0])) = 7.0F;
        if (fault == kWritesNothing) return 0;
        if (fault == kLeavesOne) {
            std::memset(out[0], 0, size - sizeof(float));
            return 0;
        }
        std::memset(out[0], 0, size + (fault == kBehindOutput ? 200 : 0));
        if (fault == kBeforeOutput) static_cast<float *>(out[0])[-1] = 1.0F;
        std::memset(workspace, 1, fault == kBehindWorkspace ? 200 : 16);
        return 0;
    }

    int32_t fault;
};

struct Fields {
    std::vector<PluginField> fields;
    PluginFieldCollection all{};
    Fields() {
        fields.emplace_back("fault", nullptr, PluginFieldType::kINT32, 1);
        all = PluginFieldCollection{1, fields.data()};
    }
};

int32_t fault_of(const PluginFieldCollection &c) {
    return c.nbFields ? *static_cast<const int32_t *>(c.fields[0].data) : 0;
}

class Lost3Creator : public IPluginCreatorV3One {
public:
    const AsciiChar *getPluginName() const noexcept override { return "Lost3"; }
    const AsciiChar *getPluginVersion() const noexcept override { return "1"; }
    const AsciiChar *getPluginNamespace() const noexcept override { return ""; }
    const PluginFieldCollection *getFieldNames() noexcept override { return &fields.all; }
    IPluginV3 *createPlugin(const AsciiChar *, const PluginFieldCollection *c,
                            TensorRTPhase) noexcept override {
        return new Lost3(fault_of(*c));
    }

private:
    Fields fields;
};

class Lost2Creator : public IPluginCreator {
public:
    const char *getPluginName() const noexcept override { return "Lost2"; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    const PluginFieldCollection *getFieldNames() noexcept override { return &fields.all; }
    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *c) noexcept override {
        return new Lost2(fault_of(*c));
    }
    IPluginV2 *deserializePlugin(const char *, const void *data, size_t) noexcept override {
        int32_t fault = 0;
        std::memcpy(&fault, data, sizeof(fault));
        return new Lost2(fault);
    }
    void setPluginNamespace(const char *) noexcept override {}
    const char *getPluginNamespace() const noexcept override { return ""; }

private:
    Fields fields;
};

REGISTER_TENSORRT_PLUGIN(Lost3Creator);
REGISTER_TENSORRT_PLUGIN(Lost2Creator);

}  // namespace
