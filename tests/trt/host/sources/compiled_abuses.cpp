// A plugin of TensorRT's own headers that does, by a macro, one thing that it must not do.
#include <cstdlib>
#include <stdexcept>

#include "NvInfer.h"

using namespace nvinfer1;

#ifdef CALLS
extern "C" int CALLS(void *, int);
#endif

namespace {

using Name = const char *;

class Abuse : public IPluginV2DynamicExt {
public:
#ifdef OTHER_LINE
    int getTensorRTVersion() const noexcept override { return 3 << 24 | OTHER_LINE; }
#endif
    IPluginV2DynamicExt *clone() const noexcept override {
#ifdef NULL_CLONE
        return nullptr;
#else
        return new Abuse(*this);
#endif
    }
    DimsExprs getOutputDimensions(int, const DimsExprs *in, int, IExprBuilder &make) noexcept
        override {
        DimsExprs out = in[0];
#ifdef STRANGE_EXPRESSION
        static int nothing[4];
        out.d[0] = reinterpret_cast<const IDimensionExpr *>(nothing);
#elif defined(COMPUTED)
        out.d[1] = make.operation(DimensionOperation::kPROD, *in[0].d[1], *make.constant(2));
        out.d[2] = make.operation(DimensionOperation::kCEIL_DIV, *in[0].d[2], *make.constant(3));
        if (!out.d[1]->isConstant() || out.d[0]->isConstant()) out.nbDims = 1;
#endif
        (void)make;
        return out;
    }
    bool supportsFormatCombination(int at, const PluginTensorDesc *all, int, int) noexcept override {
        return all[at].type == DataType::kFLOAT && all[at].format == TensorFormat::kLINEAR;
    }
    void configurePlugin(const DynamicPluginTensorDesc *, int, const DynamicPluginTensorDesc *,
                         int) noexcept override {}
    size_t getWorkspaceSize(const PluginTensorDesc *, int, const PluginTensorDesc *,
                            int) const noexcept override {
        return 0;
    }
    int enqueue(const PluginTensorDesc *, const PluginTensorDesc *described, const void *const *,
                void *const *outputs, void *, cudaStream_t) noexcept override {
#ifdef FAIL_ENQUEUE
        return 17;
#else
#ifdef CALLS
        if (CALLS(nullptr, 1) == 77) return 77;
#endif
        size_t count = 1;
        for (int i = 0; i < described[0].dims.nbDims; ++i) count *= described[0].dims.d[i];
        for (size_t i = 0; i < count; ++i) static_cast<float *>(outputs[0])[i] = float(i);
        return 0;
#endif
    }
    DataType getOutputDataType(int, const DataType *types, int) const noexcept override {
        return types[0];
    }
    Name getPluginType() const noexcept override { return "Abuse"; }
    Name getPluginVersion() const noexcept override { return "1"; }
    int getNbOutputs() const noexcept override { return 1; }
    int initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getSerializationSize() const noexcept override { return 0; }
    void serialize(void *) const noexcept override {}
    void destroy() noexcept override { delete this; }
    void setPluginNamespace(Name) noexcept override {}
    Name getPluginNamespace() const noexcept override { return ""; }
};

class AbuseCreator : public IPluginCreator {
public:
    Name getPluginName() const noexcept override { return "Abuse"; }
    Name getPluginVersion() const noexcept override { return "1"; }
    const PluginFieldCollection *getFieldNames() noexcept override {
#ifdef NULL_FIELDS
        return nullptr;
#else
        static const PluginFieldCollection none{0, nullptr};
        return &none;
#endif
    }
    IPluginV2 *createPlugin(Name, const PluginFieldCollection *)
#ifndef THROW_CREATE
        noexcept
#endif
        override {
#ifdef NULL_PLUGIN
        return nullptr;
#elif defined(THROW_CREATE)
        throw std::runtime_error("no such layer today");
#elif defined(CRASH_CREATE)
        *static_cast<volatile int *>(nullptr) = 1;
#elif defined(ABORT_CREATE)
        std::abort();
#endif
        return new Abuse;
    }
    IPluginV2 *deserializePlugin(Name, const void *, size_t) noexcept override { return new Abuse; }
    void setPluginNamespace(Name text) noexcept override { space_ = text; }
    Name getPluginNamespace() const noexcept override { return space_; }

private:
    Name space_ = "";  // kept as it is given, as many do
};

#ifndef EXPORTED
REGISTER_TENSORRT_PLUGIN(AbuseCreator);
#endif

}  // namespace

#ifdef EXPORTED
extern "C" IPluginCreatorInterface *const *getCreators(int32_t &count) {
    static AbuseCreator one;
    static IPluginCreatorInterface *const all[] = {nullptr, &one};
    count = 2;
    return all;
}
#endif
