// Plugins that compute y = factor * x and break one clause of the contract: the field "fault" says
// which. Fault 0 breaks none.
#include <NvInfer.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace nvinfer1;

namespace {

enum Fault : int32_t {
    kNone,
    kCloneItself,
    kCloneForgets,
    kCloneLosesNamespace,
    kNamespaceIgnored,
    kOtherType,
    kNoOutputs,
    kOutputsChange,
    kTypesChange,
    kNegativeShape,
    kShapesChange,
    kNoFormats,
    kFormatsLookAhead,
    kFormatsChange,
    kInitializeFails,
    kInitializeOnce,
    kSmallWorkspace,
    kWorkspaceKept,
    kEnqueueFails,
    kEnqueueThrows,
    kWritesNothing,
    kLeavesLast,
    kWritesBehind,
    kWritesBefore,
    kWritesInput,
    kReadsBehind,
    kReadsFarBehind,
    kKeepsAddresses,
    kCounts,
    kNotSet,
    kSharedState,
    kFirstShape,
    kWritesLess,
    kWritesMore,
    kSavesNoFactor,
    kSavesPointer,
    kLoadsNull,
    kReadsPastData,
    kKeepsData,
    kKeepsField,
    kByIndex,
    kLeaksClone,
    kLeaksEnqueue,
    kDestroysTwice,
    kSharesWithClone,
    kHangs,
    kAccumulates,
    kWrongInterface,
    kNullSaved,
    kAttachItself,
    kAttachForgets,
    kTacticsDiffer,
    kTacticsTwice,
    kLoadsNull3,
    kConfigureFails,
    kNoLimit,
    kTacticRefused,
    kSerializeVaries,
};

int64_t volume(const Dims &d) {
    int64_t count = 1;
    for (int32_t i = 0; i < d.nbDims; ++i) count *= d.d[i];
    return count;
}

struct Fields {
    float factor = 2.0F;
    int32_t fault = kNone;
    const float *kept = nullptr;

    Fields() = default;
    explicit Fields(const PluginFieldCollection &all) {
        for (int32_t i = 0; i < all.nbFields; ++i) {
            const PluginField &f = all.fields[i];
            if (!std::strcmp(f.name, "fault")) fault = *static_cast<const int32_t *>(f.data);
            if (!std::strcmp(f.name, "factor")) kept = static_cast<const float *>(f.data);
        }
        if (kept) factor = *kept;
        if (fault == kByIndex) factor = *static_cast<const float *>(all.fields[1].data);
        if (fault != kKeepsField) kept = nullptr;
    }
};

int64_t sharedCount = 0;
std::vector<char *> lost;

struct Computing {
    Fields with;
    const float *from = nullptr;  // of the first call
    float *to = nullptr;
    int64_t first = -1;
    int32_t calls = 0;
    float unset;

    int32_t compute(int64_t count, const void *const *ins, void *const *outs, void *workspace) {
        const float *x = static_cast<const float *>(ins[0]);
        float *y = static_cast<float *>(outs[0]);
        float factor = with.kept ? *with.kept : with.factor;
        int64_t end = count;
        switch (with.fault) {
        case kEnqueueFails: return 3;
        case kEnqueueThrows: throw std::runtime_error("no kernel");
        case kWritesNothing: return 0;
        case kLeavesLast: --end; break;
        case kWritesInput: const_cast<float *>(x)[0] = 1.0F; break;
        case kReadsBehind: factor += x[count]; break;
        case kReadsFarBehind: factor += x[count + 20000]; break;
        case kCounts: factor += static_cast<float>(calls); break;
        case kNotSet: factor += unset; break;
        case kSmallWorkspace: std::memset(workspace, 0, 100); break;
        case kWorkspaceKept: factor += static_cast<float>(*static_cast<char *>(workspace)); break;
        case kHangs:
            for (;;) std::atomic_thread_fence(std::memory_order_seq_cst);
        case kLeaksEnqueue: lost.push_back(static_cast<char *>(std::malloc(64))); break;
        default: break;
        }
        if (with.fault == kKeepsAddresses) {
            if (!from) from = x, to = y;
            x = from, y = to;
        }
        if (with.fault == kFirstShape) {
            if (first < 0) first = count;
            end = std::min(end, first);
        }
        if (with.fault == kSharedState) end = std::min(end, sharedCount);
        ++calls;
        for (int64_t i = 0; i < end; ++i)
            y[i] = factor * x[i] + (with.fault == kAccumulates ? y[i] : 0.0F);
        if (with.fault == kWritesBehind) y[count] = 1.0F;
        if (with.fault == kWritesBefore) y[-1] = 1.0F;
        return 0;
    }
    size_t workspaceBytes() const {
        return with.fault == kSmallWorkspace || with.fault == kWorkspaceKept ? 16 : 0;
    }
};

class Faulty2 : public IPluginV2DynamicExt, public Computing {
public:
    explicit Faulty2(const Fields &f) {
        with = f;
        if (f.fault == kSharesWithClone) shared = new float(f.factor);
        if (f.fault == kSavesPointer) shared = new float(f.factor);
    }
    ~Faulty2() override {
        if (with.fault == kSharesWithClone && !isClone) delete shared;
        if (with.fault == kSavesPointer) {
            *shared = -1.0F;
            delete shared;
        }
    }
    const char *getPluginType() const noexcept override {
        return with.fault == kOtherType ? "Other" : "Faulty2";
    }
    const char *getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override {
        if (with.fault == kOutputsChange) return ++asked > 4 ? 2 : 1;
        return with.fault == kNoOutputs ? 0 : 1;
    }
    int32_t initialize() noexcept override {
        if (with.fault == kInitializeOnce && ++started > 1) with.factor = 0.0F;
        return with.fault == kInitializeFails ? 1 : 0;
    }
    void terminate() noexcept override {}
    size_t getSerializationSize() const noexcept override { return size(); }
    void serialize(void *data) const noexcept override {
        char *to = static_cast<char *>(data);
        if (with.fault == kWritesMore) std::memset(to, 0, size() + 8);
        const float saved = with.fault == kSavesNoFactor ? 7.0F : with.factor;
        std::memcpy(to, &with.fault, 4);
        std::memcpy(to + 4, &saved, 4);
        if (with.fault == kWritesLess) return;
        std::memcpy(to + 8, &shared, sizeof(shared));
        if (with.fault == kSerializeVaries) to[8] = static_cast<char>(++asked);
    }
    void destroy() noexcept override {
        if (with.fault == kLeaksClone) return;
        if (with.fault == kDestroysTwice) std::free(std::malloc(8)), std::abort();
        delete this;
    }
    IPluginV2DynamicExt *clone() const noexcept override {
        if (with.fault == kCloneItself) return const_cast<Faulty2 *>(this);
        Fields f = with;
        if (f.fault == kCloneForgets) f.factor = 1.0F;
        auto *made = new Faulty2(f);
        made->isClone = true;
        if (f.fault == kSharesWithClone) {
            delete made->shared;
            made->shared = shared;
        }
        if (f.fault != kCloneLosesNamespace) made->space = space;
        return made;
    }
    void setPluginNamespace(const char *text) noexcept override {
        if (with.fault != kNamespaceIgnored) space = text;
    }
    const char *getPluginNamespace() const noexcept override { return space.c_str(); }
    DataType getOutputDataType(int32_t, const DataType *t, int32_t) const noexcept override {
        if (with.fault == kTypesChange && ++asked % 3 == 0) return DataType::kINT32;
        return t[0];
    }
    DimsExprs getOutputDimensions(int32_t, const DimsExprs *in, int32_t,
                                  IExprBuilder &builder) noexcept override {
        DimsExprs made = in[0];
        if (with.fault == kNegativeShape) made.d[1] = builder.constant(-3);
        if (with.fault == kShapesChange && ++asked % 2 == 0) made.d[1] = builder.constant(9);
        return made;
    }
    bool supportsFormatCombination(int32_t pos, const PluginTensorDesc *io, int32_t nIn,
                                   int32_t nOut) noexcept override {
        if (with.fault == kNoFormats) return false;
        if (with.fault == kFormatsChange && ++asked > 3) return false;
        if (with.fault == kFormatsLookAhead && pos + 1 < nIn + nOut &&
            io[pos + 1].type == DataType::kINT8)
            return false;
        return io[pos].type == DataType::kFLOAT && io[pos].format == TensorFormat::kLINEAR;
    }
    void configurePlugin(const DynamicPluginTensorDesc *in, int32_t,
                         const DynamicPluginTensorDesc *, int32_t) noexcept override {
        sharedCount = volume(in[0].desc.dims);
    }
    size_t getWorkspaceSize(const PluginTensorDesc *, int32_t, const PluginTensorDesc *,
                            int32_t) const noexcept override {
        return workspaceBytes();
    }
    int32_t enqueue(const PluginTensorDesc *in, const PluginTensorDesc *, const void *const *ins,
                    void *const *outs, void *workspace, cudaStream_t) noexcept override {
        if (with.fault == kSharesWithClone) with.factor = *shared;
        return compute(volume(in[0].dims), ins, outs, workspace);
    }
    static size_t size() { return 8 + sizeof(float *); }

    float *shared = nullptr;
    const char *data = nullptr;
    bool isClone = false;
    int32_t started = 0;
    mutable int32_t asked = 0;
    std::string space;
};

class Faulty3 : public IPluginV3,
                public IPluginV3OneCore,
                public IPluginV3OneBuild,
                public IPluginV3OneRuntime,
                public Computing {
public:
    explicit Faulty3(const Fields &f) { with = f; }
    IPluginCapability *getCapabilityInterface(PluginCapabilityType type) noexcept override {
        if (type == PluginCapabilityType::kCORE) return static_cast<IPluginV3OneCore *>(this);
        if (type == PluginCapabilityType::kBUILD) {
            if (with.fault == kWrongInterface) return nullptr;
            return static_cast<IPluginV3OneBuild *>(this);
        }
        return static_cast<IPluginV3OneRuntime *>(this);
    }
    IPluginV3 *clone() noexcept override {
        if (with.fault == kCloneItself) return this;
        Fields f = with;
        if (f.fault == kCloneForgets) f.factor = 1.0F;
        return new Faulty3(f);
    }
    const AsciiChar *getPluginName() const noexcept override { return "Faulty3"; }
    const AsciiChar *getPluginVersion() const noexcept override {
        return with.fault == kOtherType ? "2" : "1";
    }
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
        return with.fault == kConfigureFails ? 7 : 0;
    }
    int32_t getNbTactics() noexcept override {
        return with.fault == kTacticsDiffer || with.fault == kTacticsTwice ? 2 : 0;
    }
    int32_t getValidTactics(int32_t *ids, int32_t n) noexcept override {
        for (int32_t i = 0; i < n; ++i) ids[i] = with.fault == kTacticsTwice ? 1 : 1 + i;
        return 0;
    }
    int32_t getFormatCombinationLimit() noexcept override {
        return with.fault == kNoLimit ? -1 : kDEFAULT_FORMAT_COMBINATION_LIMIT;
    }
    size_t getWorkspaceSize(const DynamicPluginTensorDesc *, int32_t,
                            const DynamicPluginTensorDesc *, int32_t) const noexcept override {
        return workspaceBytes();
    }
    int32_t setTactic(int32_t chosen) noexcept override {
        tactic = chosen;
        return with.fault == kTacticRefused ? 5 : 0;
    }
    int32_t onShapeChange(const PluginTensorDesc *, int32_t, const PluginTensorDesc *,
                          int32_t) noexcept override {
        return 0;
    }
    int32_t enqueue(const PluginTensorDesc *in, const PluginTensorDesc *, const void *const *ins,
                    void *const *outs, void *workspace, cudaStream_t) noexcept override {
        const float before = with.factor;
        if (with.fault == kTacticsDiffer && tactic == 2) {
            // Slower than the other: a build that took it would compute something else.
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            with.factor += 1.0F;
        }
        const int32_t status = compute(volume(in[0].dims), ins, outs, workspace);
        with.factor = before;
        return status;
    }
    IPluginV3 *attachToContext(IPluginResourceContext *) noexcept override {
        if (with.fault == kAttachItself) return this;
        Fields f = with;
        if (f.fault == kAttachForgets) f.factor = 1.0F;
        return new Faulty3(f);
    }
    const PluginFieldCollection *getFieldsToSerialize() noexcept override {
        if (with.fault == kNullSaved) return nullptr;
        fields.clear();
        fields.emplace_back("fault", &with.fault, PluginFieldType::kINT32, 1);
        if (with.fault != kSavesNoFactor)
            fields.emplace_back("factor", &with.factor, PluginFieldType::kFLOAT32, 1);
        all = PluginFieldCollection{static_cast<int32_t>(fields.size()), fields.data()};
        return &all;
    }

    int32_t tactic = 0;
    std::vector<PluginField> fields;
    PluginFieldCollection all{};
};

struct Names {
    std::vector<PluginField> fields;
    PluginFieldCollection all{};
    Names() {
        fields.emplace_back("fault", nullptr, PluginFieldType::kINT32, 1);
        fields.emplace_back("factor", nullptr, PluginFieldType::kFLOAT32, 1);
        all = PluginFieldCollection{2, fields.data()};
    }
};

class Creator2 : public IPluginCreator {
public:
    const char *getPluginName() const noexcept override { return "Faulty2"; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    const PluginFieldCollection *getFieldNames() noexcept override { return &names.all; }
    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *c) noexcept override {
        const Fields f(*c);
        auto *made = new Faulty2(f);
        made->setPluginNamespace(space.c_str());
        return made;
    }
    IPluginV2 *deserializePlugin(const char *, const void *data, size_t size) noexcept override {
        const char *from = static_cast<const char *>(data);
        Fields f;
        std::memcpy(&f.fault, from, 4);
        std::memcpy(&f.factor, from + 4, 4);
        if (f.fault == kLoadsNull) return nullptr;
        if (f.fault == kReadsPastData) f.factor += static_cast<float>(from[size]);
        if (f.fault == kKeepsData) f.kept = reinterpret_cast<const float *>(from + 4);
        if (f.fault == kSavesPointer) {
            const float *saved = nullptr;
            std::memcpy(&saved, from + 8, sizeof(saved));
            f.factor = *saved;
        }
        return new Faulty2(f);
    }
    void setPluginNamespace(const char *text) noexcept override { space = text; }
    const char *getPluginNamespace() const noexcept override { return space.c_str(); }

private:
    Names names;
    std::string space;
};

class Creator3 : public IPluginCreatorV3One {
public:
    const AsciiChar *getPluginName() const noexcept override { return "Faulty3"; }
    const AsciiChar *getPluginVersion() const noexcept override { return "1"; }
    const AsciiChar *getPluginNamespace() const noexcept override { return ""; }
    const PluginFieldCollection *getFieldNames() noexcept override { return &names.all; }
    IPluginV3 *createPlugin(const AsciiChar *, const PluginFieldCollection *c,
                            TensorRTPhase phase) noexcept override {
        const Fields f(*c);
        if (f.fault == kLoadsNull3 && phase == TensorRTPhase::kRUNTIME) return nullptr;
        return new Faulty3(f);
    }

private:
    Names names;
};

// Without its fields it makes nothing.
class NeedsFields : public Creator2 {
public:
    const char *getPluginName() const noexcept override { return "NeedsFields"; }
    IPluginV2 *createPlugin(const char *name, const PluginFieldCollection *c) noexcept override {
        return c->nbFields == 0 ? nullptr : Creator2::createPlugin(name, c);
    }
};

// Without its fields it ends the process, as an assertion does.
class AssertsFields : public Creator2 {
public:
    const char *getPluginName() const noexcept override { return "AssertsFields"; }
    IPluginV2 *createPlugin(const char *name, const PluginFieldCollection *c) noexcept override {
        if (c->nbFields == 0) std::abort();
        return Creator2::createPlugin(name, c);
    }
};

// Creators whose fields are wrong.
template <int kHow>
class WrongFields : public Creator2 {
public:
    const char *getPluginName() const noexcept override {
        return kHow == 0 ? "NullFields" : kHow == 1 ? "NoName" : kHow == 2 ? "Twice" : "Nowhere";
    }
    const PluginFieldCollection *getFieldNames() noexcept override {
        if (kHow == 0) return nullptr;
        fields.clear();
        fields.emplace_back(kHow == 1 ? nullptr : "factor", nullptr, PluginFieldType::kFLOAT32, 1);
        fields.emplace_back("factor", nullptr, PluginFieldType::kFLOAT32, 1);
        all = PluginFieldCollection{2, kHow == 3 ? nullptr : fields.data()};
        return &all;
    }

private:
    std::vector<PluginField> fields;
    PluginFieldCollection all{};
};
using NullFields = WrongFields<0>;
using NoName = WrongFields<1>;
using Twice = WrongFields<2>;
using Nowhere = WrongFields<3>;

REGISTER_TENSORRT_PLUGIN(Creator2);
REGISTER_TENSORRT_PLUGIN(Creator3);
REGISTER_TENSORRT_PLUGIN(NeedsFields);
REGISTER_TENSORRT_PLUGIN(AssertsFields);
REGISTER_TENSORRT_PLUGIN(NullFields);
REGISTER_TENSORRT_PLUGIN(NoName);
REGISTER_TENSORRT_PLUGIN(Twice);
REGISTER_TENSORRT_PLUGIN(Nowhere);

}  // namespace
