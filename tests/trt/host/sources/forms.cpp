// Plugins that take one form alone, chosen by their fields "type" and "format": y = 2 x + 1, of
// BOOL not x, on the elements as they lie in memory; padding channels are counted, and a non-zero
// one fails the call. One class each for IOExt, DynamicExt and V3.
#include <NvInfer.h>

#include <cmath>
#include <cstring>
#include <vector>

using namespace nvinfer1;

namespace {

struct Wanted {
    int32_t type = 0, format = 0;
};

float half_to_float(uint16_t h) {
    const uint32_t sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023;
    if (exponent == 0) return (sign ? -1.0f : 1.0f) * std::ldexp(static_cast<float>(mantissa), -24);
    const uint32_t bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
    float out;
    std::memcpy(&out, &bits, 4);
    return out;
}
uint16_t float_to_half(float f) {  // of small whole numbers, which are exact
    if (f == 0) return 0;
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    return static_cast<uint16_t>(((bits >> 16) & 0x8000u) | ((((bits >> 23) & 255) - 112) << 10) |
                                 ((bits >> 13) & 1023));
}

template <typename T>
struct Plain {
    static float read(T v, float) { return static_cast<float>(v); }
    static T write(float v, float) { return static_cast<T>(v); }
};
struct Truth {  // 2 x + 1 is false of -0.5 alone
    static float read(bool v, float) { return v ? -0.5f : 0; }
    static bool write(float v, float) { return v != 0; }
};
struct Half {
    static float read(uint16_t v, float) { return half_to_float(v); }
    static uint16_t write(float v, float) { return float_to_half(v); }
};
struct Brain {
    static float read(uint16_t v, float) {
        const uint32_t bits = static_cast<uint32_t>(v) << 16;
        float out;
        std::memcpy(&out, &bits, 4);
        return out;
    }
    static uint16_t write(float v, float) {
        uint32_t bits;
        std::memcpy(&bits, &v, 4);
        return static_cast<uint16_t>(bits >> 16);
    }
};
struct Steps {
    static float read(int8_t v, float scale) { return static_cast<float>(v) * scale; }
    static int8_t write(float v, float scale) {
        return static_cast<int8_t>(std::lround(v / scale));
    }
};

// Where channel c of position s lies, written down apart from the product's own way.
int64_t place(int32_t format, int64_t c, int64_t s, int64_t channels, int64_t positions) {
    switch (static_cast<TensorFormat>(format)) {
    case TensorFormat::kCHW2: return (c / 2 * positions + s) * 2 + c % 2;
    case TensorFormat::kCHW4: return (c / 4 * positions + s) * 4 + c % 4;
    case TensorFormat::kCHW16: return (c / 16 * positions + s) * 16 + c % 16;
    case TensorFormat::kCHW32:
    case TensorFormat::kCDHW32: return (c / 32 * positions + s) * 32 + c % 32;
    case TensorFormat::kHWC8:
    case TensorFormat::kDHWC8: return s * ((channels + 7) / 8 * 8) + c;
    case TensorFormat::kHWC16: return s * ((channels + 15) / 16 * 16) + c;
    case TensorFormat::kHWC:
    case TensorFormat::kDHWC: return s * channels + c;
    default: return c * positions + s;
    }
}
int64_t padded(int32_t format, int64_t channels) {
    switch (static_cast<TensorFormat>(format)) {
    case TensorFormat::kCHW2: return (channels + 1) / 2 * 2;
    case TensorFormat::kCHW4: return (channels + 3) / 4 * 4;
    case TensorFormat::kHWC8:
    case TensorFormat::kDHWC8: return (channels + 7) / 8 * 8;
    case TensorFormat::kCHW16:
    case TensorFormat::kHWC16: return (channels + 15) / 16 * 16;
    case TensorFormat::kCHW32:
    case TensorFormat::kCDHW32: return (channels + 31) / 32 * 32;
    default: return channels;
    }
}
bool is_deep(int32_t format) {
    const auto f = static_cast<TensorFormat>(format);
    return f == TensorFormat::kDHWC8 || f == TensorFormat::kCDHW32 || f == TensorFormat::kDHWC;
}

template <typename How, typename T>
int32_t twice(const PluginTensorDesc &in, const PluginTensorDesc &out, int64_t images,
              const void *from, void *to) {
    const int32_t format = static_cast<int32_t>(in.format);
    const int rank = in.dims.nbDims, axes = is_deep(format) ? 4 : 3;
    int64_t lead = images, positions = 1;
    for (int i = 0; i < rank - axes; ++i) lead *= in.dims.d[i];
    for (int i = rank - axes + 1; i < rank; ++i) positions *= in.dims.d[i];
    const int64_t channels = in.dims.d[rank - axes], all = padded(format, channels);
    for (int64_t n = 0; n < lead; ++n) {
        const T *x = static_cast<const T *>(from) + n * all * positions;
        T *y = static_cast<T *>(to) + n * all * positions;
        for (int64_t s = 0; s < positions; ++s)
            for (int64_t c = 0; c < all; ++c) {
                const int64_t at = place(format, c, s, channels, positions);
                if (c < channels)
                    y[at] = How::write(2 * How::read(x[at], in.scale) + 1, out.scale);
                else if (x[at] != T())
                    return 77;
            }
    }
    return 0;
}

int32_t compute(const PluginTensorDesc &in, const PluginTensorDesc &out, int64_t images,
                const void *x, void *y) {
    switch (in.type) {
    case DataType::kFLOAT: return twice<Plain<float>, float>(in, out, images, x, y);
    case DataType::kHALF: return twice<Half, uint16_t>(in, out, images, x, y);
    case DataType::kBF16: return twice<Brain, uint16_t>(in, out, images, x, y);
    case DataType::kINT8: return twice<Steps, int8_t>(in, out, images, x, y);
    case DataType::kINT32: return twice<Plain<int32_t>, int32_t>(in, out, images, x, y);
    case DataType::kINT64: return twice<Plain<int64_t>, int64_t>(in, out, images, x, y);
    case DataType::kBOOL: return twice<Truth, bool>(in, out, images, x, y);
    case DataType::kUINT8: return twice<Plain<uint8_t>, uint8_t>(in, out, images, x, y);
    default: return 78;
    }
}

bool accepts(const Wanted &w, const PluginTensorDesc &d) {
    return static_cast<int32_t>(d.type) == w.type && static_cast<int32_t>(d.format) == w.format;
}

class IoForm : public IPluginV2IOExt {
public:
    explicit IoForm(Wanted w) : wanted(w) {}
    const char *getPluginType() const noexcept override { return "IoForm"; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    Dims getOutputDimensions(int32_t, const Dims *in, int32_t) noexcept override { return in[0]; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getWorkspaceSize(int32_t) const noexcept override { return 0; }
    int32_t enqueue(int32_t batch, const void *const *in, void *const *out, void *,
                    cudaStream_t) noexcept override {
        return compute(from, to, batch, in[0], out[0]);
    }
    size_t getSerializationSize() const noexcept override { return sizeof(*this) - sizeof(void *); }
    void serialize(void *data) const noexcept override {
        char *at = static_cast<char *>(data);
        std::memset(at, 0, getSerializationSize());
        std::memcpy(at, &wanted, sizeof(wanted));
        std::memcpy(at + sizeof(wanted), &from, sizeof(from));
        std::memcpy(at + sizeof(wanted) + sizeof(from), &to, sizeof(to));
    }
    void destroy() noexcept override { delete this; }
    IPluginV2Ext *clone() const noexcept override { return new IoForm(*this); }
    void setPluginNamespace(const char *) noexcept override {}
    const char *getPluginNamespace() const noexcept override { return ""; }
    DataType getOutputDataType(int32_t, const DataType *t, int32_t) const noexcept override {
        return t[0];
    }
    bool isOutputBroadcastAcrossBatch(int32_t, const bool *, int32_t) const noexcept override {
        return false;
    }
    bool canBroadcastInputAcrossBatch(int32_t) const noexcept override { return false; }
    bool supportsFormatCombination(int32_t pos, const PluginTensorDesc *io, int32_t,
                                   int32_t) const noexcept override {
        return accepts(wanted, io[pos]);
    }
    void configurePlugin(const PluginTensorDesc *in, int32_t, const PluginTensorDesc *out,
                         int32_t) noexcept override {
        from = in[0];
        to = out[0];
    }

    Wanted wanted;
    PluginTensorDesc from{}, to{};
};

class DynamicForm : public IPluginV2DynamicExt {
public:
    explicit DynamicForm(Wanted w) : wanted(w) {}
    const char *getPluginType() const noexcept override { return "DynamicForm"; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getSerializationSize() const noexcept override { return sizeof(wanted); }
    void serialize(void *data) const noexcept override {
        std::memcpy(data, &wanted, sizeof(wanted));
    }
    void destroy() noexcept override { delete this; }
    IPluginV2DynamicExt *clone() const noexcept override { return new DynamicForm(*this); }
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
        return accepts(wanted, io[pos]);
    }
    void configurePlugin(const DynamicPluginTensorDesc *, int32_t, const DynamicPluginTensorDesc *,
                         int32_t) noexcept override {}
    size_t getWorkspaceSize(const PluginTensorDesc *, int32_t, const PluginTensorDesc *,
                            int32_t) const noexcept override {
        return 0;
    }
    int32_t enqueue(const PluginTensorDesc *in, const PluginTensorDesc *out,
                    const void *const *inputs, void *const *outputs, void *,
                    cudaStream_t) noexcept override {
        return compute(in[0], out[0], 1, inputs[0], outputs[0]);
    }

    Wanted wanted;
};

class ThirdForm : public IPluginV3,
                  public IPluginV3OneCore,
                  public IPluginV3OneBuild,
                  public IPluginV3OneRuntime {
public:
    explicit ThirdForm(Wanted w) : wanted(w) {}
    IPluginCapability *getCapabilityInterface(PluginCapabilityType type) noexcept override {
        if (type == PluginCapabilityType::kCORE) return static_cast<IPluginV3OneCore *>(this);
        if (type == PluginCapabilityType::kBUILD) return static_cast<IPluginV3OneBuild *>(this);
        return static_cast<IPluginV3OneRuntime *>(this);
    }
    IPluginV3 *clone() noexcept override { return new ThirdForm(wanted); }
    const AsciiChar *getPluginName() const noexcept override { return "ThirdForm"; }
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
        return accepts(wanted, io[pos].desc);
    }
    int32_t configurePlugin(const DynamicPluginTensorDesc *, int32_t,
                            const DynamicPluginTensorDesc *, int32_t) noexcept override {
        return 0;
    }
    int32_t onShapeChange(const PluginTensorDesc *, int32_t, const PluginTensorDesc *,
                          int32_t) noexcept override {
        return 0;
    }
    int32_t enqueue(const PluginTensorDesc *in, const PluginTensorDesc *out,
                    const void *const *inputs, void *const *outputs, void *,
                    cudaStream_t) noexcept override {
        return compute(in[0], out[0], 1, inputs[0], outputs[0]);
    }
    IPluginV3 *attachToContext(IPluginResourceContext *) noexcept override { return clone(); }
    const PluginFieldCollection *getFieldsToSerialize() noexcept override {
        fields.clear();
        fields.emplace_back("type", &wanted.type, PluginFieldType::kINT32, 1);
        fields.emplace_back("format", &wanted.format, PluginFieldType::kINT32, 1);
        all = PluginFieldCollection{static_cast<int32_t>(fields.size()), fields.data()};
        return &all;
    }

    Wanted wanted;
    std::vector<PluginField> fields;
    PluginFieldCollection all{};
};

struct Fields {
    std::vector<PluginField> fields;
    PluginFieldCollection all{};
    Fields() {
        fields.emplace_back("type", nullptr, PluginFieldType::kINT32, 1);
        fields.emplace_back("format", nullptr, PluginFieldType::kINT32, 1);
        all = PluginFieldCollection{2, fields.data()};
    }
};

Wanted read(const PluginFieldCollection &c) {
    Wanted w;
    for (int32_t i = 0; i < c.nbFields; ++i) {
        const int32_t value = *static_cast<const int32_t *>(c.fields[i].data);
        (std::strcmp(c.fields[i].name, "type") == 0 ? w.type : w.format) = value;
    }
    return w;
}

template <typename P>
class FormCreator : public IPluginCreator {
public:
    const char *getPluginName() const noexcept override { return P(Wanted()).getPluginType(); }
    const char *getPluginVersion() const noexcept override { return "1"; }
    const PluginFieldCollection *getFieldNames() noexcept override { return &fields.all; }
    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *c) noexcept override {
        return new P(read(*c));
    }
    IPluginV2 *deserializePlugin(const char *, const void *data, size_t) noexcept override {
        Wanted w;
        std::memcpy(&w, data, sizeof(w));
        return restored(new P(w), data);
    }
    void setPluginNamespace(const char *) noexcept override {}
    const char *getPluginNamespace() const noexcept override { return ""; }

private:
    static IPluginV2 *restored(IoForm *p, const void *data) {
        const char *at = static_cast<const char *>(data) + sizeof(Wanted);
        std::memcpy(&p->from, at, sizeof(p->from));
        std::memcpy(&p->to, at + sizeof(p->from), sizeof(p->to));
        return p;
    }
    static IPluginV2 *restored(DynamicForm *p, const void *) { return p; }
    Fields fields;
};

class ThirdFormCreator : public IPluginCreatorV3One {
public:
    const AsciiChar *getPluginName() const noexcept override { return "ThirdForm"; }
    const AsciiChar *getPluginVersion() const noexcept override { return "1"; }
    const AsciiChar *getPluginNamespace() const noexcept override { return ""; }
    const PluginFieldCollection *getFieldNames() noexcept override { return &fields.all; }
    IPluginV3 *createPlugin(const AsciiChar *, const PluginFieldCollection *c,
                            TensorRTPhase) noexcept override {
        return new ThirdForm(read(*c));
    }

private:
    Fields fields;
};

using IoFormCreator = FormCreator<IoForm>;
using DynamicFormCreator = FormCreator<DynamicForm>;
REGISTER_TENSORRT_PLUGIN(IoFormCreator);
REGISTER_TENSORRT_PLUGIN(DynamicFormCreator);
REGISTER_TENSORRT_PLUGIN(ThirdFormCreator);

}  // namespace
