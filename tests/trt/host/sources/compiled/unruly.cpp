// A plugin of TensorRT's own headers that misbehaves in the method that its field `abuse` names:
// "throw METHOD", "crash METHOD", "hang METHOD", "abort METHOD", "exit METHOD", "overflow METHOD",
// or a result that no method may give. Its layer adds one.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "NvInfer.h"

using namespace nvinfer1;

namespace {

using Name = const char *;
#if NV_TENSORRT_MAJOR >= 8
#define NOTHROW noexcept  // what is thrown through it ends the process
#else
#define NOTHROW
#endif

volatile int depth = 0;
int overflow() {
    volatile char block[4096];
    block[0] = static_cast<char>(++depth);
    return depth < 0 ? 0 : overflow() + block[0];
}

class Unruly : public IPluginV2DynamicExt {
public:
    explicit Unruly(const std::string &abuse) : abuse_(abuse) {}
    bool is(const char *words) const { return abuse_ == words; }
    void in(const char *method) const {
        const size_t space = abuse_.find(' ');
        if (space == std::string::npos || abuse_.compare(space + 1, std::string::npos, method) != 0)
            return;
        const std::string kind = abuse_.substr(0, space);
        if (kind == "throw") throw std::runtime_error(std::string("unruly in ") + method);
        if (kind == "crash") *static_cast<volatile int *>(nullptr) = 1;
        if (kind == "hang")
            for (;;) usleep(1000);
        if (kind == "abort") std::abort();
        if (kind == "exit") std::exit(3);
        if (kind == "overflow") overflow();
    }

    int getTensorRTVersion() const NOTHROW override {
        const int version = IPluginV2DynamicExt::getTensorRTVersion();
        if (is("strange generation")) return 77 << 24 | (version & 0xFFFFFF);
        if (is("other line")) return 3 << 24 | (NV_TENSORRT_MAJOR == 8 ? 101600 : 8601);
        return version;
    }
    IPluginV2DynamicExt *clone() const NOTHROW override {
        in("clone");
        return is("null clone") ? nullptr : new Unruly(abuse_);
    }
    DimsExprs getOutputDimensions(int, const DimsExprs *inputs, int,
                                  IExprBuilder &make) NOTHROW override {
        in("getOutputDimensions");
        DimsExprs out = inputs[0];
        static int nothing[4];
        if (is("strange expression")) out.d[0] = reinterpret_cast<const IDimensionExpr *>(nothing);
        if (is("null expression")) out.d[0] = nullptr;
        if (is("99 axes")) out.nbDims = 99;
        if (is("negative axes")) out.nbDims = -3;
        if (is("negative extent")) out.d[1] = make.constant(-7);
        return out;
    }
    bool supportsFormatCombination(int at, const PluginTensorDesc *all, int, int) NOTHROW override {
        in("supportsFormatCombination");
        if (is("no format")) return false;
        return all[at].type == DataType::kFLOAT && all[at].format == TensorFormat::kLINEAR;
    }
    void configurePlugin(const DynamicPluginTensorDesc *, int, const DynamicPluginTensorDesc *,
                         int) NOTHROW override {
        in("configurePlugin");
    }
    size_t getWorkspaceSize(const PluginTensorDesc *, int, const PluginTensorDesc *,
                            int) const NOTHROW override {
        in("getWorkspaceSize");
        return is("huge workspace") ? ~size_t{0} >> 2 : 0;
    }
    int enqueue(const PluginTensorDesc *described, const PluginTensorDesc *,
                const void *const *inputs, void *const *outputs, void *,
                cudaStream_t) NOTHROW override {
        in("enqueue");
        if (is("status 17")) return 17;
        long count = 1;
        for (int i = 0; i < described[0].dims.nbDims; ++i) count *= described[0].dims.d[i];
        if (is("past the output")) count += 1 << 20;
        const float *from = static_cast<const float *>(inputs[0]);
        for (long i = 0; i < count; ++i) static_cast<float *>(outputs[0])[i] = from[i % 24] + 1;
        return 0;
    }
    DataType getOutputDataType(int, const DataType *types, int) const NOTHROW override {
        in("getOutputDataType");
        return is("type 99") ? static_cast<DataType>(99) : types[0];
    }
    Name getPluginType() const NOTHROW override {
        in("getPluginType");
        return is("null type") ? nullptr : "Unruly";
    }
    Name getPluginVersion() const NOTHROW override {
        in("getPluginVersion");
        return "1";
    }
    int getNbOutputs() const NOTHROW override {
        in("getNbOutputs");
        return is("no output") ? 0 : is("-5 outputs") ? -5 : is("1e9 outputs") ? 1000000000 : 1;
    }
    int initialize() NOTHROW override {
        in("initialize");
        return is("initialize fails") ? 5 : 0;
    }
    void terminate() NOTHROW override { in("terminate"); }
    size_t getSerializationSize() const NOTHROW override {
        in("getSerializationSize");
        return is("huge data") ? ~size_t{0} >> 2 : abuse_.size();
    }
    void serialize(void *to) const NOTHROW override {
        in("serialize");
        std::memcpy(to, abuse_.data(), abuse_.size());
        if (is("past its data")) std::memset(to, 1, 1 << 22);
    }
    void destroy() NOTHROW override {
        in("destroy");
        if (is("destroyed twice")) delete this;
        delete this;
    }
    void setPluginNamespace(Name) NOTHROW override { in("setPluginNamespace"); }
    Name getPluginNamespace() const NOTHROW override { return ""; }

private:
    std::string abuse_;
};

class UnrulyCreator : public IPluginCreator {
public:
    Name getPluginName() const NOTHROW override { return "Unruly"; }
    Name getPluginVersion() const NOTHROW override { return "1"; }
    const PluginFieldCollection *getFieldNames() NOTHROW override {
        static const PluginField abuse("abuse", nullptr, PluginFieldType::kCHAR, 1);
        static const PluginFieldCollection all{1, &abuse};
        return &all;
    }
    IPluginV2 *createPlugin(Name, const PluginFieldCollection *fields) NOTHROW override {
        std::string abuse;
        for (int i = 0; i < fields->nbFields; ++i)
            abuse.assign(static_cast<const char *>(fields->fields[i].data),
                         static_cast<size_t>(fields->fields[i].length));
        while (!abuse.empty() && !abuse.back()) abuse.pop_back();
        Unruly(abuse).in("createPlugin");
        if (abuse == "null plugin") return nullptr;
        if (abuse == "wild plugin") return reinterpret_cast<IPluginV2 *>(0x10);
        static Unruly *const only = new Unruly(abuse);
        return abuse == "one for all" ? only : new Unruly(abuse);
    }
    IPluginV2 *deserializePlugin(Name, const void *data, size_t size) NOTHROW override {
        const std::string abuse(static_cast<const char *>(data), size);
        Unruly(abuse).in("deserializePlugin");
        return abuse == "null from data" ? nullptr : new Unruly(abuse);
    }
    void setPluginNamespace(Name) NOTHROW override {}
    Name getPluginNamespace() const NOTHROW override { return ""; }
};
REGISTER_TENSORRT_PLUGIN(UnrulyCreator);

}  // namespace
