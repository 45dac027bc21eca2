// y = x * factor in each of the five plugin classes: the twins of tests/plugins/samples.py. They
// compute on the host; on a GPU, if nvcc compiles them; FAKE_GPU: by calls of a driver
// (fake_gpu.cpp). On a GPU 666 is a fault of the kernel, and 667 an endless loop in it. SEEN: see
// seen.h.
#include <cstring>
#include <string>
#include <vector>

#include "NvInfer.h"

using namespace nvinfer1;

#include "seen.h"

namespace {

#if NV_TENSORRT_MAJOR >= 8
using Outputs = void *const *;
#else
using Outputs = void **;
#endif

#if defined(__CUDACC__)
bool onDevice(const void *at) {
    cudaPointerAttributes found{};
    return cudaPointerGetAttributes(&found, at) == cudaSuccess &&
           found.type == cudaMemoryTypeDevice;
}

__global__ void scaleEach(const float *x, float *y, size_t count, float factor) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    if (x[i] == 666.0f) y = nullptr;
    while (static_cast<const volatile float *>(x)[i] == 667.0f) {
    }
    y[i] = x[i] * factor;
}

int scale(const void *from, void *to, size_t count, float factor, cudaStream_t stream) {
    if (!onDevice(from) || !onDevice(to) || !stream) return 77;
    const unsigned blocks = unsigned((count + 255) / 256);
    scaleEach<<<blocks, 256, 0, stream>>>(static_cast<const float *>(from),
                                          static_cast<float *>(to), count, factor);
    return cudaGetLastError();
}

int clear(void *at, size_t bytes, cudaStream_t stream) {
    return onDevice(at) ? cudaMemsetAsync(at, 0, bytes, stream) : 77;
}
#elif defined(FAKE_GPU)
extern "C" int cuScale(const void *, void *, size_t, float, void *);
extern "C" int cuMemsetD8Async(void *, unsigned char, size_t, void *);

int scale(const void *from, void *to, size_t count, float factor, cudaStream_t stream) {
    return cuScale(from, to, count, factor, stream);
}

int clear(void *at, size_t bytes, cudaStream_t stream) {
    return cuMemsetD8Async(at, 0, bytes, stream);
}
#else
int scale(const void *from, void *to, size_t count, float factor, cudaStream_t) {
    const float *x = static_cast<const float *>(from);
    float *y = static_cast<float *>(to);
    for (size_t i = 0; i < count; ++i) y[i] = x[i] * factor;
    return 0;
}

int clear(void *at, size_t bytes, cudaStream_t) {
    std::memset(at, 0, bytes);
    return 0;
}
#endif

size_t volume(const Dims &dims) {
    size_t n = 1;
    for (int i = 0; i < dims.nbDims; ++i) n *= static_cast<size_t>(dims.d[i]);
    return n;
}

std::vector<PluginField> gFields{PluginField("factor", nullptr, PluginFieldType::kFLOAT32, 1)};
PluginFieldCollection gCollection{1, gFields.data()};

float factorOf(const PluginFieldCollection *fields) {
    SAW("createPlugin").many(fields->fields, fields->nbFields);
    for (int i = 0; i < fields->nbFields; ++i)
        if (!std::strcmp(fields->fields[i].name, "factor"))
            return *static_cast<const float *>(fields->fields[i].data);
    return 2.0f;
}

}  // namespace

// What the classes of the V2 line share; Base is the interface.
template <typename Base, typename Derived>
class Second : public Base {
public:
    explicit Second(float factor) : factor_(factor) {}
    const char *getPluginType() const noexcept override { return Derived::kind(); }
    const char *getPluginVersion() const noexcept override { return "1"; }
    int getNbOutputs() const noexcept override { return 1; }
    int initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    void destroy() noexcept override { delete this; }
    void setPluginNamespace(const char *text) noexcept override { space_ = text; }
    const char *getPluginNamespace() const noexcept override { return space_.c_str(); }
    Base *clone() const noexcept override {
        Derived *made = new Derived(factor_);
        made->item_ = item_;
        made->setPluginNamespace(space_.c_str());
        return made;
    }
    size_t getSerializationSize() const noexcept override { return 4 + 4 * item_.size(); }
    void serialize(void *buffer) const noexcept override {
        char *to = static_cast<char *>(buffer);
        std::memcpy(to, &factor_, 4);
        if (!item_.empty()) std::memcpy(to + 4, item_.data(), 4 * item_.size());
    }
    void restore(const char *data, size_t size) {
        SAW("deserializePlugin").many(data, int(size));
        std::memcpy(&factor_, data, 4);
        item_.resize((size - 4) / 4);
        if (!item_.empty()) std::memcpy(item_.data(), data + 4, 4 * item_.size());
    }

protected:
    void keep(const Dims &dims) {
        item_.clear();
        for (int i = 0; i < dims.nbDims; ++i) item_.push_back(static_cast<int32_t>(dims.d[i]));
    }
    size_t items() const {
        size_t n = 1;
        for (int32_t d : item_) n *= static_cast<size_t>(d);
        return n;
    }
    float factor_;
    std::vector<int32_t> item_;
    std::string space_;
};

template <typename Base, typename Derived>
class Batched : public Second<Base, Derived> {
public:
    using Second<Base, Derived>::Second;
    Dims getOutputDimensions(int index, const Dims *in, int n) noexcept override {
        SAW("getOutputDimensions").many(in, n).all(index);
        return in[0];
    }
    size_t getWorkspaceSize(int most) const noexcept override {
        SAW("getWorkspaceSize").all(most);
        return 4 * size_t(most);
    }
    int enqueue(int batch, const void *const *in, Outputs out, void *,
                cudaStream_t stream) noexcept override {
        SAW("enqueue").all(batch);
        return scale(in[0], out[0], size_t(batch) * this->items(), this->factor_, stream);
    }
};

class ScaleV2 : public Batched<IPluginV2, ScaleV2> {
public:
    bool supportsFormat(DataType type, PluginFormat format) const noexcept override {
        SAW("supportsFormat").all(type, format);
        return type == DataType::kFLOAT && format == PluginFormat::kLINEAR;
    }
    using Batched::Batched;
    static const char *kind() { return "ScaleV2"; }
    void configureWithFormat(const Dims *in, int n, const Dims *out, int m, DataType type,
                             PluginFormat format, int most) noexcept override {
        SAW("configureWithFormat").many(in, n).many(out, m).all(type, format, most);
        keep(in[0]);
    }
};

#if NV_TENSORRT_MAJOR < 11
#define BROADCAST                                                                       \
    bool isOutputBroadcastAcrossBatch(int, const bool *, int) const noexcept override { \
        return false;                                                                   \
    }                                                                                   \
    bool canBroadcastInputAcrossBatch(int) const noexcept override { return false; }
#else
#define BROADCAST
#endif

class ScaleV2Ext : public Batched<IPluginV2Ext, ScaleV2Ext> {
public:
    bool supportsFormat(DataType type, PluginFormat format) const noexcept override {
        SAW("supportsFormat").all(type, format);
        return type == DataType::kFLOAT && format == PluginFormat::kLINEAR;
    }
    BROADCAST
    using Batched::Batched;
    static const char *kind() { return "ScaleV2Ext"; }
    DataType getOutputDataType(int index, const DataType *types, int n) const noexcept override {
        SAW("getOutputDataType").many(types, n).all(index);
        return types[0];
    }
    void configurePlugin(const Dims *in, int n, const Dims *out, int m, const DataType *inTypes,
                         const DataType *outTypes, const bool *inShared, const bool *outShared,
                         PluginFormat format, int most) noexcept override {
        SAW("configurePlugin")
            .many(in, n)
            .many(out, m)
            .many(inTypes, n)
            .many(outTypes, m)
            .many(inShared, n)
            .many(outShared, m)
            .all(format, most);
        keep(in[0]);
    }
};

class ScaleV2IOExt : public Batched<IPluginV2IOExt, ScaleV2IOExt> {
public:
    BROADCAST
    using Batched::Batched;
    static const char *kind() { return "ScaleV2IOExt"; }
    DataType getOutputDataType(int index, const DataType *types, int n) const noexcept override {
        SAW("getOutputDataType").many(types, n).all(index);
        return types[0];
    }
    bool supportsFormatCombination(int pos, const PluginTensorDesc *descs, int n,
                                   int m) const noexcept override {
        SAW("supportsFormatCombination").many(descs, n + m).all(pos, n);
        return descs[pos].type == DataType::kFLOAT && descs[pos].format == TensorFormat::kLINEAR;
    }
#ifdef HEADRACE_HOST_ABI_H  // it is private in the original's
    using IPluginV2IOExt::configurePlugin;
#endif
    void configurePlugin(const PluginTensorDesc *in, int n, const PluginTensorDesc *out,
                         int m) noexcept override {
        SAW("configurePlugin").many(in, n).many(out, m);
        keep(in[0].dims);
    }
};

class ScaleDynamic : public Second<IPluginV2DynamicExt, ScaleDynamic> {
public:
    using Second::Second;
    static const char *kind() { return "ScaleDynamic"; }
    DimsExprs getOutputDimensions(int index, const DimsExprs *in, int n,
                                  IExprBuilder &) noexcept override {
        SAW("getOutputDimensions").many(in, n).all(index);
        return in[0];
    }
    DataType getOutputDataType(int index, const DataType *types, int n) const noexcept override {
        SAW("getOutputDataType").many(types, n).all(index);
        return types[0];
    }
    bool supportsFormatCombination(int pos, const PluginTensorDesc *descs, int n,
                                   int m) noexcept override {
        SAW("supportsFormatCombination").many(descs, n + m).all(pos, n);
        return descs[pos].type == DataType::kFLOAT && descs[pos].format == TensorFormat::kLINEAR;
    }
    void configurePlugin(const DynamicPluginTensorDesc *in, int n,
                         const DynamicPluginTensorDesc *out, int m) noexcept override {
        SAW("configurePlugin").many(in, n).many(out, m);
    }
    size_t getWorkspaceSize(const PluginTensorDesc *in, int n, const PluginTensorDesc *out,
                            int m) const noexcept override {
        SAW("getWorkspaceSize").many(in, n).many(out, m);
        return 4 * volume(in[0].dims);
    }
    int enqueue(const PluginTensorDesc *in, const PluginTensorDesc *out, const void *const *inputs,
                void *const *outputs, void *workspace, cudaStream_t stream) noexcept override {
        SAW("enqueue").many(in, 1).many(out, 1);
        const size_t count = volume(in[0].dims);
        const int status = clear(workspace, 4 * count, stream);
        return status ? status : scale(inputs[0], outputs[0], count, factor_, stream);
    }
};

#if NV_TENSORRT_MAJOR >= 10 || defined(HEADRACE_HOST_ABI_H)
#define THIRD  // headrace's headers have it in every generation
class ScaleV3 : public IPluginV3,
                public IPluginV3OneCore,
                public IPluginV3OneBuild,
                public IPluginV3OneRuntime {
public:
    explicit ScaleV3(float factor) : factor_(factor) {}
    IPluginCapability *getCapabilityInterface(PluginCapabilityType type) noexcept override {
        if (type == PluginCapabilityType::kBUILD) return static_cast<IPluginV3OneBuild *>(this);
        if (type == PluginCapabilityType::kRUNTIME) return static_cast<IPluginV3OneRuntime *>(this);
        return static_cast<IPluginV3OneCore *>(this);
    }
    IPluginV3 *clone() noexcept override { return new ScaleV3(*this); }
    const char *getPluginName() const noexcept override { return "ScaleV3"; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    const char *getPluginNamespace() const noexcept override { return ""; }
    int getNbOutputs() const noexcept override { return 1; }
    int getOutputDataTypes(DataType *out, int m, const DataType *in,
                           int n) const noexcept override {
        SAW("getOutputDataTypes").many(in, n).all(m);
        out[0] = in[0];
        return 0;
    }
    int getOutputShapes(const DimsExprs *in, int n, const DimsExprs *shapes, int s, DimsExprs *out,
                        int m, IExprBuilder &) noexcept override {
        SAW("getOutputShapes").many(in, n).many(shapes, s).all(m);
        out[0] = in[0];
        return 0;
    }
    bool supportsFormatCombination(int pos, const DynamicPluginTensorDesc *descs, int n,
                                   int m) noexcept override {
        SAW("supportsFormatCombination").many(descs, n + m).all(pos, n);
        return descs[pos].desc.type == DataType::kFLOAT &&
               descs[pos].desc.format == TensorFormat::kLINEAR;
    }
    int configurePlugin(const DynamicPluginTensorDesc *in, int n,
                        const DynamicPluginTensorDesc *out, int m) noexcept override {
        SAW("configurePlugin").many(in, n).many(out, m);
        return 0;
    }
    int getNbTactics() noexcept override { return 2; }
    int getValidTactics(int *ids, int n) noexcept override {
        for (int i = 0; i < n; ++i) ids[i] = 7 + i;
        return 0;
    }
    int setTactic(int tactic) noexcept override {
        tactic_ = tactic;
        return 0;
    }
    int onShapeChange(const PluginTensorDesc *in, int n, const PluginTensorDesc *out,
                      int m) noexcept override {
        SAW("onShapeChange").many(in, n).many(out, m);
        return 0;
    }
    int enqueue(const PluginTensorDesc *in, const PluginTensorDesc *out, const void *const *inputs,
                void *const *outputs, void *, cudaStream_t stream) noexcept override {
        SAW("enqueue").many(in, 1).many(out, 1);
        return scale(inputs[0], outputs[0], volume(in[0].dims), factor_, stream);
    }
    IPluginV3 *attachToContext(IPluginResourceContext *) noexcept override { return clone(); }
    const PluginFieldCollection *getFieldsToSerialize() noexcept override {
        field_ = PluginField("factor", &factor_, PluginFieldType::kFLOAT32, 1);
        saved_ = {1, &field_};
        return &saved_;
    }

private:
    float factor_;
    int tactic_ = 0;
    PluginField field_;
    PluginFieldCollection saved_{};
};
#endif

template <typename Plugin>
class SecondCreator : public IPluginCreator {
public:
    const char *getPluginName() const noexcept override { return Plugin::kind(); }
    const char *getPluginVersion() const noexcept override { return "1"; }
    const PluginFieldCollection *getFieldNames() noexcept override { return &gCollection; }
    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *fc) noexcept override {
        return new Plugin(factorOf(fc));
    }
    IPluginV2 *deserializePlugin(const char *, const void *data, size_t size) noexcept override {
        Plugin *made = new Plugin(0.0f);
        made->restore(static_cast<const char *>(data), size);
        return made;
    }
    void setPluginNamespace(const char *text) noexcept override { space_ = text; }
    const char *getPluginNamespace() const noexcept override { return space_.c_str(); }

private:
    std::string space_;
};

#ifdef THIRD
class ThirdCreator : public IPluginCreatorV3One {
public:
    IPluginV3 *createPlugin(const char *, const PluginFieldCollection *fc,
                            TensorRTPhase) noexcept override {
        return new ScaleV3(factorOf(fc));
    }
    const PluginFieldCollection *getFieldNames() noexcept override { return &gCollection; }
    const char *getPluginName() const noexcept override { return "ScaleV3"; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    const char *getPluginNamespace() const noexcept override { return ""; }
};
#endif

using ScaleV2Creator = SecondCreator<ScaleV2>;
using ScaleV2ExtCreator = SecondCreator<ScaleV2Ext>;
using ScaleV2IOExtCreator = SecondCreator<ScaleV2IOExt>;
using ScaleDynamicCreator = SecondCreator<ScaleDynamic>;
#ifndef EXPORT_CREATORS
REGISTER_TENSORRT_PLUGIN(ScaleV2Creator);
REGISTER_TENSORRT_PLUGIN(ScaleV2ExtCreator);
REGISTER_TENSORRT_PLUGIN(ScaleV2IOExtCreator);
REGISTER_TENSORRT_PLUGIN(ScaleDynamicCreator);
#ifdef THIRD
REGISTER_TENSORRT_PLUGIN(ThirdCreator);
#endif
#else
static ILoggerFinder *finder = nullptr;
extern "C" void setLoggerFinder(ILoggerFinder *given) { finder = given; }

extern "C" IPluginCreatorInterface *const *getPluginCreators(int32_t &count) {
    static ScaleV2Creator first;
    static ScaleDynamicCreator second;
    static ThirdCreator third;
    static IPluginCreatorInterface *const all[] = {&first, nullptr, &second, &third};
    if (finder) finder->findLogger()->log(ILogger::Severity::kWARNING, "three creators");
    count = 4;
    return all;
}
#endif

#if NV_TENSORRT_MAJOR < 11 && defined(HEADRACE_HOST_ABI_H)
// The creators that the registry lists: how many, and how many of them have the name.
extern "C" int list_creators(const char *name, int every) {
    int32_t count = 0, found = 0;
    if (every) {
        getPluginRegistry()->getAllCreators(&count);
        return count;
    }
    IPluginCreator *const *all = getPluginRegistry()->getPluginCreatorList(&count);
    for (int32_t i = 0; i < count; ++i)
        found += std::strcmp(all[i]->getPluginName(), name) == 0 &&
                 std::strcmp(all[i]->getPluginVersion(), "1") == 0;
    return name[0] ? found : count;
}
#endif
