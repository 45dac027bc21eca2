// A plugin that does what the environment variable HOSTILE says.
#include <NvInfer.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

using namespace nvinfer1;

namespace {

bool is(const char *how) {
    const char *asked = std::getenv("HOSTILE");
    return asked && !std::strcmp(asked, how);
}

int *volatile nowhere = nullptr;

void crash_if(const char *how) {
    if (is(how)) *nowhere = 1;
}

// Whether a call began while another one waited for it, as the folder HOSTILE_MEET shows.
bool meets() {
    const std::string folder = std::getenv("HOSTILE_MEET"), second = folder + "/second";
    if (mkdir((folder + "/first").c_str(), 0700)) return !mkdir(second.c_str(), 0700);
    for (int tries = 0; tries < 500; ++tries) {
        if (!access(second.c_str(), F_OK)) return true;
        usleep(10000);
    }
    return false;
}

struct Plugin : IPluginV2DynamicExt {
    const char *getPluginType() const noexcept override {
        return is("type_lines") ? "Hos\ntile" : is("type_bytes") ? "\xff\xfe" : "Hostile";
    }
    const char *getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override { crash_if("crash_terminate"); }
    void destroy() noexcept override { delete this; }
    IPluginV2DynamicExt *clone() const noexcept override { return new Plugin(*this); }
    void setPluginNamespace(const char *) noexcept override {}
    const char *getPluginNamespace() const noexcept override { return ""; }
    size_t getSerializationSize() const noexcept override { return 0; }
    void serialize(void *) const noexcept override {}
    DimsExprs getOutputDimensions(int32_t, const DimsExprs *inputs, int32_t,
                                  IExprBuilder &builder) noexcept override {
        crash_if("crash_shapes");
        DimsExprs made = inputs[0];
        if (is("huge")) {
            made.d[2] = builder.constant(1 << 30);
            made.d[3] = builder.constant(1 << 20);
        }
        if (is("huger")) made.d[1] = made.d[2] = builder.constant(2000000000);
        return made;
    }
    DataType getOutputDataType(int32_t, const DataType *types, int32_t) const noexcept override {
        return types[0];
    }
    bool supportsFormatCombination(int32_t at, const PluginTensorDesc *all, int32_t,
                                   int32_t) noexcept override {
        const DataType type = is("half") ? DataType::kHALF : DataType::kFLOAT;
        return all[at].type == type && all[at].format == TensorFormat::kLINEAR;
    }
    void configurePlugin(const DynamicPluginTensorDesc *, int32_t, const DynamicPluginTensorDesc *,
                         int32_t) noexcept override {
        crash_if("crash_configure");
    }
    size_t getWorkspaceSize(const PluginTensorDesc *, int32_t, const PluginTensorDesc *,
                            int32_t) const noexcept override {
        return 0;
    }
    int32_t enqueue(const PluginTensorDesc *in, const PluginTensorDesc *, const void *const *from,
                    void *const *to, void *, cudaStream_t) noexcept override {
        crash_if("crash");
        if (is("meets") && !meets()) return 1;
        size_t size = in->type == DataType::kHALF ? 2 : sizeof(float);
        for (int32_t i = 0; i < in->dims.nbDims; ++i) size *= static_cast<size_t>(in->dims.d[i]);
        std::memcpy(to[0], from[0], size);
        return 0;
    }
};

struct Creator : IPluginCreator {
    const char *getPluginName() const noexcept override {
        static const std::string long_name(100000000, 'x');
        return is("long") ? long_name.c_str() : is("bytes") ? "\xff\xfe" : "Hostile";
    }
    const char *getPluginVersion() const noexcept override { return "1"; }
    const PluginFieldCollection *getFieldNames() noexcept override { return nullptr; }
    Creator() { crash_if("crash_load"); }
    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *) noexcept override {
        crash_if("crash_create");
        return new Plugin;
    }
    IPluginV2 *deserializePlugin(const char *, const void *, size_t) noexcept override {
        crash_if("crash_deserialize");
        return new Plugin;
    }
    void setPluginNamespace(const char *) noexcept override {}
    const char *getPluginNamespace() const noexcept override { return ""; }
};

REGISTER_TENSORRT_PLUGIN(Creator);

}  // namespace
