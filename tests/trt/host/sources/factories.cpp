// Factories of layers as libraries of 4.0 to 6.x export them. Everything that is called is logged.
//   KIND 0: IPluginFactory, 1: IPluginFactoryExt, 2: IPluginFactoryV2
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "NvCaffeParser.h"
#include "NvInfer.h"
#include "NvUffParser.h"
#include "nvdsinfer_custom_impl.h"

#ifndef KIND
#define KIND 0
#endif

using namespace nvinfer1;

static std::string calls;
static int objects = 0;
static void log(const std::string &text) { calls += text + "\n"; }
extern "C" const char *factory_calls() { return calls.c_str(); }
extern "C" int factory_objects() { return objects; }
static const char *asked() {
    const char *text = std::getenv("HEADRACE_TEST_FACTORY");
    return text ? text : "";
}

static size_t volume(const Dims &dims) {
    size_t n = 1;
    for (int i = 0; i < dims.nbDims; ++i) n *= static_cast<size_t>(dims.d[i]);
    return n;
}

static std::string text_of(const Dims &dims) {
    std::string text = "(";
    for (int i = 0; i < dims.nbDims; ++i)
        text += (i ? "," : "") + std::to_string(static_cast<long>(dims.d[i]));
    return text + ")";
}

// x * factor; without inputs: three numbers, each the factor.
struct Times {
    float factor = 0;
    int64_t count = 0;
    void run(int batch, const void *const *in, void *out) const {
        for (int64_t i = 0; i < batch * count; ++i)
            static_cast<float *>(out)[i] =
                in ? factor * static_cast<const float *>(in[0])[i] : factor;
    }
};

#if KIND == 1
using Base = IPluginExt;
#else
using Base = IPlugin;
#endif

class OldTimes : public Base {
public:
    explicit OldTimes(float factor) { state_.factor = factor, ++objects; }
    OldTimes(const void *data, size_t size) {
        if (size != sizeof(state_)) throw std::runtime_error("a damaged layer");
        std::memcpy(&state_, data, size), ++objects;
    }
    ~OldTimes() override { log("~OldTimes"), --objects; }
    int getNbOutputs() const override { return 1; }
    Dims getOutputDimensions(int, const Dims *in, int n) override {
        return n ? in[0] : static_cast<Dims>(Dims3(1, 1, 3));
    }
#if KIND == 1
    bool supportsFormat(DataType type, PluginFormat format) const override {
        return type == DataType::kFLOAT && format == PluginFormat::kLINEAR;
    }
    void configureWithFormat(const Dims *, int, const Dims *out, int, DataType, PluginFormat,
                             int most) override {
        log("configureWithFormat " + text_of(out[0]) + " " + std::to_string(most));
        state_.count = static_cast<int64_t>(volume(out[0]));
    }
#else
    void configure(const Dims *, int, const Dims *out, int, int most) override {
        log("configure " + text_of(out[0]) + " " + std::to_string(most));
        state_.count = static_cast<int64_t>(volume(out[0]));
    }
#endif
    int initialize() override { return log("initialize"), 0; }
    void terminate() override { log("terminate"); }
    size_t getWorkspaceSize(int) const override { return 0; }
    int enqueue(int batch, const void *const *in, void **out, void *, cudaStream_t) override {
        state_.run(batch, in, out[0]);
        return 0;
    }
    size_t getSerializationSize() override { return sizeof(state_); }
    void serialize(void *buffer) override { std::memcpy(buffer, &state_, sizeof(state_)); }

private:
    Times state_;
};

class NewTimes : public IPluginV2 {
public:
    explicit NewTimes(Times state) : state_(state) { ++objects; }
    ~NewTimes() override { --objects; }
    const char *getPluginType() const override { return "TestTimes"; }
    const char *getPluginVersion() const override { return "1"; }
    int32_t getNbOutputs() const override { return 1; }
    Dims getOutputDimensions(int32_t, const Dims *in, int32_t) override { return in[0]; }
    bool supportsFormat(DataType type, PluginFormat format) const override {
        return type == DataType::kFLOAT && format == PluginFormat::kLINEAR;
    }
    void configureWithFormat(const Dims *, int32_t, const Dims *out, int32_t, DataType,
                             PluginFormat, int32_t) override {
        log("configureWithFormat " + text_of(out[0]));
        state_.count = static_cast<int64_t>(volume(out[0]));
    }
    int32_t initialize() override { return log("initialize"), 0; }
    void terminate() override { log("terminate"); }
    size_t getWorkspaceSize(int32_t) const override { return 0; }
    int32_t enqueue(int32_t batch, const void *const *in, HEADRACE_OUTPUTS out, void *,
                    cudaStream_t) override {
        state_.run(batch, in, out[0]);
        return 0;
    }
    size_t getSerializationSize() const override { return sizeof(state_); }
    void serialize(void *buffer) const override { std::memcpy(buffer, &state_, sizeof(state_)); }
    void destroy() override { delete this; }
    IPluginV2 *clone() const override { return new NewTimes(state_); }
    void setPluginNamespace(const char *) override {}
    const char *getPluginNamespace() const override { return ""; }

private:
    Times state_;
};

static bool isMine(const char *layer) { return std::strncmp(layer, "times", 5) == 0; }

static float factorOf(const char *layer, const Weights *weights, int n) {
    log(std::string("createPlugin ") + layer + " with " + std::to_string(n));
    if (std::strcmp(asked(), "throw") == 0) throw std::runtime_error("no such layer today");
    return n ? static_cast<const float *>(weights[0].values)[0] : 4.0F;
}

#if KIND == 2
class CaffeFactory : public nvcaffeparser1::IPluginFactoryV2 {
public:
    ~CaffeFactory() {
        log("~CaffeFactory");
        if (made_) made_->destroy();
    }
    bool isPluginV2(const char *layer) override {
        log(std::string("isPlugin ") + layer);
        return isMine(layer);
    }
    IPluginV2 *createPlugin(const char *layer, const Weights *weights, int32_t n,
                            const char *) override {
        Times state;
        state.factor = factorOf(layer, weights, n);
        return made_ = new NewTimes(state);
    }

private:
    IPluginV2 *made_ = nullptr;
};

class TimesCreator : public IPluginCreator {
public:
    const char *getPluginName() const override { return "TestTimes"; }
    const char *getPluginVersion() const override { return "1"; }
    const PluginFieldCollection *getFieldNames() override { return &none_; }
    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *) override {
        return nullptr;
    }
    IPluginV2 *deserializePlugin(const char *, const void *data, size_t) override {
        return new NewTimes(*static_cast<const Times *>(data));
    }
    void setPluginNamespace(const char *) override {}
    const char *getPluginNamespace() const override { return ""; }

private:
    PluginFieldCollection none_{0, nullptr};
};
REGISTER_TENSORRT_PLUGIN(TimesCreator);
#else
template <typename Factory>
class Old : public Factory {
public:
    ~Old() override { log("~CaffeFactory"); }
    bool isPlugin(const char *layer) override {
        log(std::string("isPlugin ") + layer);
        return isMine(layer);
    }

protected:
    IPlugin *made(float factor) {
        plugins_.emplace_back(new OldTimes(factor));
        return plugins_.back().get();
    }

private:
    std::vector<std::unique_ptr<OldTimes>> plugins_;
};

#if KIND == 1
using CaffeBase = Old<nvcaffeparser1::IPluginFactoryExt>;
#else
using CaffeBase = Old<nvcaffeparser1::IPluginFactory>;
#endif

class CaffeFactory : public CaffeBase {
public:
#if KIND == 1
    bool isPluginExt(const char *layer) override { return isMine(layer); }
#endif
    IPlugin *createPlugin(const char *layer, const Weights *weights, int n) override {
        return made(factorOf(layer, weights, n));
    }
};

#if KIND == 1
using UffBase = Old<nvuffparser::IPluginFactoryExt>;
#else
using UffBase = Old<nvuffparser::IPluginFactory>;
#endif

class UffFactory : public UffBase {
public:
#if KIND == 1
    bool isPluginExt(const char *layer) override { return isMine(layer); }
#endif
    IPlugin *createPlugin(const char *layer, const Weights *weights, int n,
                          const nvuffparser::FieldCollection fields) override {
        float factor = factorOf(layer, weights, n);
        for (int i = 0; i < fields.nbFields; ++i) {
            const nvuffparser::FieldMap &f = fields.fields[i];
            log(std::string("field ") + f.name + " " + std::to_string(static_cast<int>(f.type)) +
                " " + std::to_string(f.length));
            if (std::strcmp(f.name, "factor") == 0) factor = *static_cast<const float *>(f.data);
        }
        return made(factor);
    }
};
#endif

bool NvDsInferPluginFactoryCaffeGet(NvDsInferPluginFactoryCaffe &factory,
                                    NvDsInferPluginFactoryType &type) {
    log("CaffeGet");
    if (std::strcmp(asked(), "false") == 0) return false;
    type = static_cast<NvDsInferPluginFactoryType>(std::strcmp(asked(), "type") ? KIND : 7);
#if KIND == 2
    factory.pluginFactoryV2 = new CaffeFactory;
#elif KIND == 1
    factory.pluginFactoryExt = new CaffeFactory;
#else
    factory.pluginFactory = new CaffeFactory;
#endif
    return true;
}

void NvDsInferPluginFactoryCaffeDestroy(NvDsInferPluginFactoryCaffe &factory) {
    log("CaffeDestroy");
#if KIND == 2
    delete factory.pluginFactoryV2;
#elif KIND == 1
    delete factory.pluginFactoryExt;
#else
    delete factory.pluginFactory;
#endif
}

#if KIND < 2
bool NvDsInferPluginFactoryUffGet(NvDsInferPluginFactoryUff &factory,
                                  NvDsInferPluginFactoryType &type) {
    log("UffGet");
    type = static_cast<NvDsInferPluginFactoryType>(KIND);
#if KIND == 1
    factory.pluginFactoryExt = new UffFactory;
#else
    factory.pluginFactory = new UffFactory;
#endif
    return true;
}

void NvDsInferPluginFactoryUffDestroy(NvDsInferPluginFactoryUff &factory) {
    log("UffDestroy");
    delete factory.pluginFactory;
}
#endif

#ifndef NO_RUNTIME
class RuntimeFactory : public IPluginFactory {
public:
    ~RuntimeFactory() override { log("~RuntimeFactory"); }
    IPlugin *createPlugin(const char *layer, const void *data, size_t size) override {
        log(std::string("load ") + layer);
        plugin_.reset(new OldTimes(data, size));  // what it made before is gone
        return plugin_.get();
    }

private:
    std::unique_ptr<OldTimes> plugin_;
};

bool NvDsInferPluginFactoryRuntimeGet(IPluginFactory *&factory) {
    log("RuntimeGet");
    if (std::strcmp(asked(), "no runtime") == 0) return false;
    factory = new RuntimeFactory;
    return true;
}

void NvDsInferPluginFactoryRuntimeDestroy(IPluginFactory *factory) {
    log("RuntimeDestroy");
    delete factory;
}
#endif
