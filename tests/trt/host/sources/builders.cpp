// Engine creators that load engines, calibrate, and read models through the parsers.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "NvCaffeParser.h"
#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "NvUffParser.h"
#include "nvdsinfer_context.h"
#include "nvdsinfer_custom_impl.h"

using namespace nvinfer1;

static std::string calls;
static void log(const std::string &text) { calls += text + "\n"; }
extern "C" const char *builder_calls() { return calls.c_str(); }

static std::string file(const char *name) {
    std::ifstream in(name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
}

static ICudaEngine *loaded(IBuilder &builder, const std::string &plan) {
    IRuntime *runtime = createInferRuntime(*builder.getLogger());
    ICudaEngine *engine = runtime->deserializeCudaEngine(plan.data(), plan.size());
    runtime->destroy();
    return engine;
}

static ICudaEngine *built(IBuilder &builder, IBuilderConfig &config, INetworkDefinition &network,
                          const char *save = nullptr) {
    IHostMemory *plan = builder.buildSerializedNetwork(network, config);
    if (!plan) return nullptr;
    const std::string bytes(static_cast<const char *>(plan->data()), plan->size());
    plan->destroy();
    if (save) std::ofstream(save, std::ios::binary) << bytes;
    return loaded(builder, bytes);
}

// A 1x1 convolution of three images' planes, ReLU: enough for INT8.
static float kernel[] = {1, 0, 0, 0, 0.5F, 0, 0, 0, -1, 0.25F, 0.25F, 0.5F};
static float bias[] = {0.1F, 0.2F, 0.3F, 0.4F};
static INetworkDefinition *network_of(IBuilder &builder, IBuilderConfig &config, int batch) {
    INetworkDefinition *network = builder.createNetworkV2(1U);
    ITensor *x = network->addInput("image", DataType::kFLOAT, Dims4(-1, 3, 8, 8));
    ITensor *y = network
                     ->addConvolutionNd(*x, 4, Dims2(1, 1), Weights{DataType::kFLOAT, kernel, 12},
                                        Weights{DataType::kFLOAT, bias, 4})
                     ->getOutput(0);
    y = network->addActivation(*y, ActivationType::kRELU)->getOutput(0);
    y->setName("scores");
    network->markOutput(*y);
    IOptimizationProfile *profile = builder.createOptimizationProfile();
    profile->setDimensions("image", OptProfileSelector::kMIN, Dims4(1, 3, 8, 8));
    profile->setDimensions("image", OptProfileSelector::kOPT, Dims4(batch, 3, 8, 8));
    profile->setDimensions("image", OptProfileSelector::kMAX, Dims4(batch, 3, 8, 8));
    config.addOptimizationProfile(profile);
    return network;
}

#define CREATOR(name)                                                                         \
    extern "C" bool name(IBuilder *builder, IBuilderConfig *config,                           \
                         const NvDsInferContextInitParams *params, DataType, ICudaEngine *&engine)

CREATOR(SavesItsEngine) {
    INetworkDefinition *network = network_of(*builder, *config, int(params->maxBatchSize));
    engine = built(*builder, *config, *network, std::getenv("HEADRACE_TEST_ENGINE"));
    network->destroy();
    return engine;
}

CREATOR(LoadsAnEngine) {
    (void)config, (void)params;
    engine = loaded(*builder, file(std::getenv("HEADRACE_TEST_ENGINE")));
    return engine;
}

template <typename Base>
class Calibrator : public Base {
public:
    explicit Calibrator(int batches) : left_(batches), data_(2 * 3 * 8 * 8) {
        for (size_t i = 0; i < data_.size(); ++i) data_[i] = float(i % 29) / 28 - 0.5F;
    }
    int32_t getBatchSize() const override { return log("getBatchSize"), 2; }
    bool getBatch(void *bindings[], const char *names[], int32_t n) override {
        log("getBatch " + std::to_string(n) + " " + names[0]);
        if (left_-- <= 0) return false;
        bindings[0] = data_.data();
        return true;
    }
    const void *readCalibrationCache(size_t &length) override {
        log("readCalibrationCache");
        length = cache_.size();
        return cache_.empty() ? nullptr : cache_.data();
    }
    void writeCalibrationCache(const void *data, size_t length) override {
        cache_.assign(static_cast<const char *>(data), length);
        log("writeCalibrationCache " + cache_);
    }
    std::string cache_;

private:
    int left_;
    std::vector<float> data_;
};

template <typename Base>
static ICudaEngine *calibrated(IBuilder &builder, IBuilderConfig &config, int batch,
                               Calibrator<Base> &calibrator) {
    INetworkDefinition *network = network_of(builder, config, batch);
    config.setFlag(BuilderFlag::kINT8);
    config.setInt8Calibrator(&calibrator);
    ICudaEngine *engine = built(builder, config, *network);
    network->destroy();
    return engine;
}

CREATOR(CalibratesByEntropy) {
    Calibrator<IInt8EntropyCalibrator2> calibrator(3);
    engine = calibrated(*builder, *config, int(params->maxBatchSize), calibrator);
    return engine;
}

CREATOR(CalibratesByRange) {
    Calibrator<IInt8MinMaxCalibrator> calibrator(1);
    engine = calibrated(*builder, *config, int(params->maxBatchSize), calibrator);
    return engine;
}

CREATOR(ReadsItsCache) {
    Calibrator<IInt8EntropyCalibrator2> calibrator(0);
    calibrator.cache_ = "TRT-8502-EntropyCalibration2\nimage: 3c010204\nscores: 3c810204\n";
    engine = calibrated(*builder, *config, int(params->maxBatchSize), calibrator);
    return engine;
}

CREATOR(CalibratorThrows) {
    struct Bad : Calibrator<IInt8EntropyCalibrator2> {
        Bad() : Calibrator(1) {}
        bool getBatch(void **, const char **, int32_t) override {
            throw std::runtime_error("no images today");
        }
    } calibrator;
    engine = calibrated(*builder, *config, int(params->maxBatchSize),
                        static_cast<Calibrator<IInt8EntropyCalibrator2> &>(calibrator));
    return engine;
}

CREATOR(ParsesOnnx) {
    INetworkDefinition *network = builder->createNetworkV2(1U);
    nvonnxparser::IParser *parser = nvonnxparser::createParser(*network, *builder->getLogger());
    if (!parser->parseFromFile(params->onnxFilePath, 1)) {
        for (int i = 0; i < parser->getNbErrors(); ++i) {
            const nvonnxparser::IParserError *error = parser->getError(i);
            log("error " + std::to_string(int(error->code())) + " " + error->desc());
        }
        return false;
    }
    log("layers " + std::to_string(network->getNbLayers()) + " " +
        network->getInput(0)->getName());
    IOptimizationProfile *profile = builder->createOptimizationProfile();
    Dims dims = network->getInput(0)->getDimensions();
    for (int which = 0; which < 3; ++which) {
        dims.d[0] = which ? int(params->maxBatchSize) : 1;
        profile->setDimensions(network->getInput(0)->getName(), OptProfileSelector(which), dims);
    }
    config->addOptimizationProfile(profile);
    engine = built(*builder, *config, *network);
    return engine;
}

// x * 4, as a factory's layer.
class Times4 : public IPluginV2 {
public:
    const char *getPluginType() const override { return "Times4"; }
    const char *getPluginVersion() const override { return "1"; }
    int32_t getNbOutputs() const override { return 1; }
    Dims getOutputDimensions(int32_t, const Dims *in, int32_t) override { return in[0]; }
    bool supportsFormat(DataType type, PluginFormat format) const override {
        return type == DataType::kFLOAT && format == PluginFormat::kLINEAR;
    }
    void configureWithFormat(const Dims *in, int32_t, const Dims *, int32_t, DataType,
                             PluginFormat, int32_t) override {
        count_ = 1;
        for (int i = 0; i < in[0].nbDims; ++i) count_ *= int(in[0].d[i]);
    }
    int32_t initialize() override { return 0; }
    void terminate() override {}
    size_t getWorkspaceSize(int32_t) const override { return 0; }
    int32_t enqueue(int32_t batch, const void *const *in, HEADRACE_OUTPUTS out, void *,
                    cudaStream_t) override {
        for (int i = 0; i < batch * count_; ++i)
            static_cast<float *>(out[0])[i] = 4 * static_cast<const float *>(in[0])[i];
        return 0;
    }
    size_t getSerializationSize() const override { return sizeof(count_); }
    void serialize(void *buffer) const override { std::memcpy(buffer, &count_, sizeof(count_)); }
    void destroy() override { delete this; }
    IPluginV2 *clone() const override { return new Times4(*this); }
    void setPluginNamespace(const char *) override {}
    const char *getPluginNamespace() const override { return ""; }
    int count_ = 0;
};

class Times4Creator : public IPluginCreator {
public:
    const char *getPluginName() const override { return "Times4"; }
    const char *getPluginVersion() const override { return "1"; }
    const PluginFieldCollection *getFieldNames() override { return &none_; }
    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *) override {
        return new Times4;
    }
    IPluginV2 *deserializePlugin(const char *, const void *data, size_t size) override {
        Times4 *made = new Times4;
        std::memcpy(&made->count_, data, size);
        return made;
    }
    void setPluginNamespace(const char *) override {}
    const char *getPluginNamespace() const override { return ""; }

private:
    PluginFieldCollection none_{0, nullptr};
};
REGISTER_TENSORRT_PLUGIN(Times4Creator);

struct Factory : nvcaffeparser1::IPluginFactoryV2 {
    Times4 mine;
    bool isPluginV2(const char *layer) override { return !std::strcmp(layer, "times"); }
    IPluginV2 *createPlugin(const char *layer, const Weights *weights, int32_t n,
                            const char *) override {
        log(std::string("createPlugin ") + layer + " " + std::to_string(n) + " " +
            std::to_string(n ? static_cast<const float *>(weights[0].values)[0] : 0.0F));
        return &mine;
    }
};

CREATOR(ParsesCaffe) {
    INetworkDefinition *network = builder->createNetworkV2(0U);
    nvcaffeparser1::ICaffeParser *parser = nvcaffeparser1::createCaffeParser();
    Factory factory;
    parser->setPluginFactoryV2(&factory);
    const nvcaffeparser1::IBlobNameToTensor *tensors =
        parser->parse(params->protoFilePath, params->modelFilePath, *network, DataType::kFLOAT);
    if (!tensors) return false;
    ITensor *out = tensors->find(params->outputLayerNames[0]);
    if (!out || tensors->find("no such blob")) return false;
    network->markOutput(*out);
    parser->destroy();
    engine = builder->buildEngineWithConfig(*network, *config);
    network->destroy();
    return engine;
}

CREATOR(ParsesUff) {
    INetworkDefinition *network = builder->createNetworkV2(0U);
    nvuffparser::IUffParser *parser = nvuffparser::createUffParser();
    parser->registerInput("x", Dims3(3, 5, 6), nvuffparser::UffInputOrder::kNCHW);
    parser->registerOutput(params->outputLayerNames[0]);
    if (!parser->parse(params->uffFilePath, *network, DataType::kFLOAT)) return false;
    parser->destroy();
    engine = builder->buildEngineWithConfig(*network, *config);
    return engine;
}

// A layer from before IPluginV2, by code: x * 3.
class Times3 : public IPluginExt {
public:
    int getNbOutputs() const override { return 1; }
    Dims getOutputDimensions(int, const Dims *in, int) override { return in[0]; }
    bool supportsFormat(DataType type, PluginFormat format) const override {
        return type == DataType::kFLOAT && format == PluginFormat::kLINEAR;
    }
    void configureWithFormat(const Dims *, int, const Dims *, int, DataType, PluginFormat,
                             int) override {}
    int initialize() override { return 0; }
    void terminate() override {}
    size_t getWorkspaceSize(int) const override { return 0; }
    int enqueue(int batch, const void *const *in, void **out, void *, cudaStream_t) override {
        for (int i = 0; i < 4 * batch; ++i)
            static_cast<float *>(out[0])[i] = 3 * static_cast<const float *>(in[0])[i];
        return 0;
    }
    size_t getSerializationSize() override { return 0; }
    void serialize(void *) override {}
};

struct OldFactory : IPluginFactory {
    Times3 mine;
    IPlugin *createPlugin(const char *layer, const void *, size_t) override {
        log(std::string("createPlugin ") + layer);
        return &mine;
    }
};

struct Silent : ILogger {
    void log(Severity, const char *) override {}
};

extern "C" float old_plugins(int how) {
    Silent logger;
    IBuilder *builder = createInferBuilder(logger);
    builder->setMaxBatchSize(1);
    INetworkDefinition *network = builder->createNetworkV2(0U);
    ITensor *x = network->addInput("x", DataType::kFLOAT, Dims3(1, 1, 4));
    Times3 plugin;
    IPluginLayer *layer = network->addPluginExt(&x, 1, plugin);
    if (!layer) return -2;
    layer->setName("mine");
    layer->getOutput(0)->setName("y");
    network->markOutput(*layer->getOutput(0));
    IBuilderConfig *config = builder->createBuilderConfig();
    IHostMemory *plan = builder->buildSerializedNetwork(*network, *config);
    if (!plan) return -3;
    IRuntime *runtime = createInferRuntime(logger);
    OldFactory factory;
    ICudaEngine *engine =
        runtime->deserializeCudaEngine(plan->data(), plan->size(), how == 2 ? &factory : nullptr);
    if (!engine) return -1;
    IExecutionContext *context = engine->createExecutionContext();
    float in[4] = {2, 2, 2, 2}, out[4] = {};
    void *bindings[] = {in, out};
    const bool ran = context->executeV2(bindings);
    context->destroy();
    engine->destroy();
    return ran ? out[3] : -4;
}
