// A library that builds YOLO networks from Darknet files layer by layer, as popular ones do: an
// engine creator, the plugin that decodes the heads, and a parser of its rows.
//
// -DWITH_CUDA_ENGINE_GET, -DWITH_MODEL_PARSER: the entry points of fixed names, too.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>

#include "NvInfer.h"
#include "cuda_runtime_api.h"
#include "nvdsinfer_context.h"
#include "nvdsinfer_custom_impl.h"

using namespace nvinfer1;

namespace {

int *volatile nowhere = nullptr;
__attribute__((noinline)) void crash() { *nowhere = 1; }

// Where the file that MINI_YOLO_HARM names says so: once, for it is gone afterwards.
void do_harm(const std::string &where) {
    const char *name = std::getenv("MINI_YOLO_HARM");
    if (!name) return;
    std::string word;
    if (!(std::ifstream(name) >> word) || word != where) return;
    std::remove(name);
    crash();
}

float logistic(float x) { return 1.0f / (1.0f + std::exp(-x)); }

struct Head {
    int32_t width, height, count;
    float scale;
    std::vector<float> anchors;  // pairs, those of the mask
};

// Rows of x1, y1, x2, y2, score, class for each cell of each head: anchor, row, column.
class YoloRows : public IPluginV2DynamicExt {
public:
    YoloRows(int32_t width, int32_t height, int32_t classes, std::vector<Head> heads)
        : width_(width), height_(height), classes_(classes), heads_(std::move(heads)) {}
    YoloRows(const void *data, size_t size) {
        const char *from = static_cast<const char *>(data), *end = from + size;
        take(from, width_), take(from, height_), take(from, classes_);
        while (from < end) {
            Head head;
            take(from, head.width), take(from, head.height), take(from, head.count);
            take(from, head.scale);
            head.anchors.resize(2 * size_t(head.count));
            for (float &anchor : head.anchors) take(from, anchor);
            heads_.push_back(head);
        }
    }
    const char *getPluginType() const noexcept override { return "MiniYoloRows"; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    int getNbOutputs() const noexcept override { return 1; }
    int initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    void destroy() noexcept override { delete this; }
    IPluginV2DynamicExt *clone() const noexcept override { return new YoloRows(*this); }
    void setPluginNamespace(const char *text) noexcept override { space_ = text; }
    const char *getPluginNamespace() const noexcept override { return space_.c_str(); }
    size_t getSerializationSize() const noexcept override {
        size_t size = 12;
        for (const Head &head : heads_) size += 16 + 4 * head.anchors.size();
        return size;
    }
    void serialize(void *buffer) const noexcept override {
        char *to = static_cast<char *>(buffer);
        put(to, width_), put(to, height_), put(to, classes_);
        for (const Head &head : heads_) {
            put(to, head.width), put(to, head.height), put(to, head.count), put(to, head.scale);
            for (float anchor : head.anchors) put(to, anchor);
        }
    }
    DimsExprs getOutputDimensions(int, const DimsExprs *in, int,
                                  IExprBuilder &builder) noexcept override {
        return DimsExprs{3, {in[0].d[0], builder.constant(rows()), builder.constant(6)}};
    }
    DataType getOutputDataType(int, const DataType *, int) const noexcept override {
        return DataType::kFLOAT;
    }
    bool supportsFormatCombination(int pos, const PluginTensorDesc *descs, int,
                                   int) noexcept override {
        return descs[pos].type == DataType::kFLOAT && descs[pos].format == TensorFormat::kLINEAR;
    }
    void configurePlugin(const DynamicPluginTensorDesc *, int, const DynamicPluginTensorDesc *,
                         int) noexcept override {
        do_harm("configure");
    }
    size_t getWorkspaceSize(const PluginTensorDesc *, int, const PluginTensorDesc *,
                            int) const noexcept override {
        return 0;
    }
    int enqueue(const PluginTensorDesc *in, const PluginTensorDesc *, const void *const *inputs,
                void *const *outputs, void *, cudaStream_t stream) noexcept override {
        const int batch = static_cast<int>(in[0].dims.d[0]);
        do_harm("enqueue");
        for (int b = 0; b < batch; ++b) {
            float *row = static_cast<float *>(outputs[0]) + size_t(b) * size_t(rows()) * 6;
            for (size_t h = 0; h < heads_.size(); ++h) {
                void *anchors = nullptr;  // as a kernel would want them
                const size_t bytes = 4 * heads_[h].anchors.size();
                if (cudaMalloc(&anchors, bytes)) return 1;
                cudaMemcpyAsync(anchors, heads_[h].anchors.data(), bytes, cudaMemcpyHostToDevice,
                                stream);
                row = decode(heads_[h], static_cast<const float *>(anchors),
                             static_cast<const float *>(inputs[h]), b, row);
                cudaFree(anchors);
            }
        }
        return 0;
    }

private:
    int32_t rows() const {
        int32_t n = 0;
        for (const Head &head : heads_) n += head.width * head.height * head.count;
        return n;
    }
    float *decode(const Head &head, const float *anchors, const float *t, int b, float *row) const {
        const int cells = head.width * head.height, planes = 5 + classes_;
        t += size_t(b) * size_t(head.count * planes * cells);
        for (int a = 0; a < head.count; ++a)
            for (int cell = 0; cell < cells; ++cell) {
                const float *at = t + a * planes * cells + cell;
                const float shift = (head.scale - 1) / 2;
                const float cx = (logistic(at[0]) * head.scale - shift + cell % head.width) *
                                 width_ / head.width;
                const float cy = (logistic(at[cells]) * head.scale - shift + cell / head.width) *
                                 height_ / head.height;
                const float w = std::exp(at[2 * cells]) * anchors[2 * a];
                const float h = std::exp(at[3 * cells]) * anchors[2 * a + 1];
                int best = 0;
                for (int c = 1; c < classes_; ++c)
                    if (at[(5 + c) * cells] > at[(5 + best) * cells]) best = c;
                const float made[6] = {cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2,
                                       logistic(at[4 * cells]) * logistic(at[(5 + best) * cells]),
                                       static_cast<float>(best)};
                row = std::copy(made, made + 6, row);
            }
        return row;
    }
    template <typename T>
    static void put(char *&to, const T &value) {
        std::memcpy(to, &value, sizeof(T));
        to += sizeof(T);
    }
    template <typename T>
    static void take(const char *&from, T &value) {
        std::memcpy(&value, from, sizeof(T));
        from += sizeof(T);
    }
    int32_t width_ = 0, height_ = 0, classes_ = 0;
    std::vector<Head> heads_;
    std::string space_;
};

class YoloRowsCreator : public IPluginCreator {
public:
    const char *getPluginName() const noexcept override { return "MiniYoloRows"; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    const PluginFieldCollection *getFieldNames() noexcept override { return nullptr; }
    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *) noexcept override {
        return nullptr;
    }
    IPluginV2 *deserializePlugin(const char *, const void *data, size_t size) noexcept override {
        return new YoloRows(data, size);
    }
    void setPluginNamespace(const char *text) noexcept override { space_ = text; }
    const char *getPluginNamespace() const noexcept override { return space_.c_str(); }

private:
    std::string space_;
};
REGISTER_TENSORRT_PLUGIN(YoloRowsCreator);

using Block = std::map<std::string, std::string>;

class Darknet : public IModelParser {
public:
    explicit Darknet(const NvDsInferContextInitParams &params)
        : config_(params.customNetworkConfigFilePath), weights_(params.modelFilePath) {}
    bool hasFullDimsSupported() const override { return true; }
    const char *getModelName() const override { return config_.c_str(); }

    NvDsInferStatus parseModel(INetworkDefinition &network) override {
        std::ifstream weights(weights_, std::ios::binary);
        if (!readBlocks() || !weights) {
            std::cerr << "cannot read " << config_ << " and " << weights_ << std::endl;
            return NVDSINFER_CONFIG_FAILED;
        }
        weights.ignore(20);  // version and the number of images seen
        const std::string bytes((std::istreambuf_iterator<char>(weights)),
                                std::istreambuf_iterator<char>());
        numbers_.resize(bytes.size() / 4);
        std::memcpy(numbers_.data(), bytes.data(), 4 * numbers_.size());
        return build(network) ? NVDSINFER_SUCCESS : NVDSINFER_TENSORRT_ERROR;
    }

    ICudaEngine *engine(IBuilder &builder, IBuilderConfig *given, unsigned int most) {
        std::unique_ptr<IBuilderConfig> own(given ? nullptr : builder.createBuilderConfig());
        IBuilderConfig &config = given ? *given : *own;
        const auto flag = static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
        std::unique_ptr<INetworkDefinition> network(builder.createNetworkV2(1U << flag));
        if (!network || parseModel(*network) != NVDSINFER_SUCCESS) return nullptr;
        IOptimizationProfile *profile = builder.createOptimizationProfile();
        ITensor *input = network->getInput(0);
        Dims dims = input->getDimensions();
        dims.d[0] = 1;
        profile->setDimensions(input->getName(), OptProfileSelector::kMIN, dims);
        dims.d[0] = static_cast<int>(most);
        profile->setDimensions(input->getName(), OptProfileSelector::kOPT, dims);
        profile->setDimensions(input->getName(), OptProfileSelector::kMAX, dims);
        config.addOptimizationProfile(profile);
        std::unique_ptr<IHostMemory> plan(builder.buildSerializedNetwork(*network, config));
        if (!plan) return nullptr;
        std::unique_ptr<IRuntime> runtime(createInferRuntime(*builder.getLogger()));
        return runtime->deserializeCudaEngine(plan->data(), plan->size());
    }

private:
    bool readBlocks() {
        std::ifstream file(config_);
        for (std::string line; std::getline(file, line);) {
            line.erase(std::remove_if(line.begin(), line.end(), isspace), line.end());
            if (line.empty() || line[0] == '#') continue;
            if (line[0] == '[')
                blocks_.push_back({{"type", line.substr(1, line.size() - 2)}});
            else
                blocks_.back()[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
        }
        return !blocks_.empty();
    }
    int number(const Block &block, const char *key, int otherwise) const {
        const auto found = block.find(key);
        return found == block.end() ? otherwise : std::stoi(found->second);
    }
    std::vector<float> list(const std::string &text) const {
        std::vector<float> values;
        std::stringstream stream(text);
        for (std::string item; std::getline(stream, item, ',');) values.push_back(std::stof(item));
        return values;
    }
    Weights take(size_t count) {
        if (next_ + count > numbers_.size()) throw std::runtime_error("the weights end too early");
        held_.emplace_back(new std::vector<float>(numbers_.begin() + long(next_),
                                                  numbers_.begin() + long(next_ + count)));
        next_ += count;
        return Weights{DataType::kFLOAT, held_.back()->data(), int64_t(count)};
    }
    float *values(const Weights &weights) {
        return static_cast<float *>(const_cast<void *>(weights.values));
    }

    bool build(INetworkDefinition &network) {
        const Block &net = blocks_[0];
        const int width = number(net, "width", 0), height = number(net, "height", 0);
        ITensor *x = network.addInput("input", DataType::kFLOAT,
                                      Dims4(-1, number(net, "channels", 3), height, width));
        std::vector<ITensor *> outputs, ends;
        std::vector<Head> heads;
        int classes = 0;
        for (size_t i = 1; i < blocks_.size() && x; ++i) {
            const Block &block = blocks_[i];
            const std::string &type = block.at("type");
            if (type == "convolutional") {
                x = convolution(network, block, *x);
            } else if (type == "maxpool") {
                const int size = number(block, "size", 2), stride = number(block, "stride", 2);
                IPoolingLayer *pool = network.addPoolingNd(*x, PoolingType::kMAX, Dims2(size, size));
                pool->setStrideNd(Dims2(stride, stride));
                if (stride == 1) pool->setPaddingMode(PaddingMode::kSAME_UPPER);
                x = pool->getOutput(0);
            } else if (type == "upsample") {
                const float stride = static_cast<float>(number(block, "stride", 2));
                const float scales[] = {1, 1, stride, stride};
                IResizeLayer *resize = network.addResize(*x);
                resize->setResizeMode(InterpolationMode::kNEAREST);
                resize->setScales(scales, 4);
                x = resize->getOutput(0);
            } else if (type == "route") {
                std::vector<ITensor *> parts;
                for (float from : list(block.at("layers")))
                    parts.push_back(outputs[size_t(from < 0 ? int(outputs.size()) + from : from)]);
                IConcatenationLayer *join =
                    network.addConcatenation(parts.data(), static_cast<int>(parts.size()));
                join->setAxis(1);
                x = join->getOutput(0);
            } else if (type == "shortcut") {
                ITensor *other = outputs[outputs.size() + size_t(number(block, "from", -3))];
                x = network.addElementWise(*x, *other, ElementWiseOperation::kSUM)->getOutput(0);
            } else if (type == "yolo") {
                const Dims dims = x->getDimensions();
                const std::vector<float> all = list(block.at("anchors"));
                Head head{int32_t(dims.d[3]), int32_t(dims.d[2]), 0, 1.0f, {}};
                if (block.count("scale_x_y")) head.scale = std::stof(block.at("scale_x_y"));
                for (float m : list(block.at("mask"))) {
                    head.anchors.push_back(all[2 * size_t(m)]);
                    head.anchors.push_back(all[2 * size_t(m) + 1]);
                    ++head.count;
                }
                classes = number(block, "classes", 80);
                heads.push_back(head);
                ends.push_back(x);
            } else {
                std::cerr << "layer " << type << " is not supported" << std::endl;
                return false;
            }
            outputs.push_back(x);
        }
        if (ends.empty()) return false;
        YoloRows *rows = new YoloRows(width, height, classes, heads);
        IPluginV2Layer *layer =
            network.addPluginV2(ends.data(), static_cast<int>(ends.size()), *rows);
        rows->destroy();
        if (!layer) return false;
        layer->setName("yolo");
        layer->getOutput(0)->setName("rows");
        network.markOutput(*layer->getOutput(0));
        return true;
    }

    ITensor *convolution(INetworkDefinition &network, const Block &block, ITensor &input) {
        const int n = number(block, "filters", 1), k = number(block, "size", 1);
        const int stride = number(block, "stride", 1), pad = number(block, "pad", 0) ? k / 2 : 0;
        const size_t channels = static_cast<size_t>(input.getDimensions().d[1]);
        const size_t maps = static_cast<size_t>(n);
        const bool norm = number(block, "batch_normalize", 0);
        Weights bias = take(maps), scale{DataType::kFLOAT, nullptr, 0}, power = scale;
        if (norm) {
            scale = take(maps);
            const Weights mean = take(maps), variance = take(maps);
            power = Weights{DataType::kFLOAT, nullptr, 0};
            for (size_t i = 0; i < maps; ++i) {
                values(scale)[i] /= std::sqrt(values(variance)[i] + 1e-5f);
                values(bias)[i] -= values(mean)[i] * values(scale)[i];
            }
        }
        const Weights none{DataType::kFLOAT, nullptr, 0};
        IConvolutionLayer *layer =
            network.addConvolutionNd(input, n, Dims2(k, k), take(maps * channels * size_t(k * k)),
                                     norm ? none : bias);
        if (!layer) return nullptr;
        layer->setStrideNd(Dims2(stride, stride));
        layer->setPaddingNd(Dims2(pad, pad));
        ITensor *x = layer->getOutput(0);
        if (norm)
            x = network.addScale(*x, ScaleMode::kCHANNEL, bias, scale, power)->getOutput(0);
        const std::string activation = block.count("activation") ? block.at("activation") : "linear";
        if (activation == "leaky") {
            IActivationLayer *leaky = network.addActivation(*x, ActivationType::kLEAKY_RELU);
            leaky->setAlpha(0.1f);
            x = leaky->getOutput(0);
        }
        return x;
    }

    std::string config_, weights_;
    std::vector<Block> blocks_;
    std::vector<float> numbers_;
    std::vector<std::unique_ptr<std::vector<float>>> held_;
    size_t next_ = 0;
};

}  // namespace

// The signature lost nothing but gained the config when TensorRT became 8.
#if NV_TENSORRT_MAJOR >= 8
#define CONFIG_PARAMETER IBuilderConfig *config,
#else
#define CONFIG_PARAMETER
#endif
extern "C" bool MiniYoloEngineCreate(IBuilder *builder,
                                     CONFIG_PARAMETER const NvDsInferContextInitParams *params,
                                     DataType type, ICudaEngine *&engine);
CHECK_CUSTOM_ENGINE_CREATE_FUNC_PROTOTYPE(MiniYoloEngineCreate);

extern "C" bool MiniYoloEngineCreate(IBuilder *builder,
                                     CONFIG_PARAMETER const NvDsInferContextInitParams *params,
                                     DataType, ICudaEngine *&engine) {
    do_harm("create");
#if NV_TENSORRT_MAJOR < 8
    IBuilderConfig *config = nullptr;
#endif
    engine = Darknet(*params).engine(*builder, config, params->maxBatchSize);
    return engine != nullptr;
}

#ifdef WITH_CUDA_ENGINE_GET
bool NvDsInferCudaEngineGet(IBuilder *builder, NvDsInferContextInitParams *params, DataType,
                            ICudaEngine *&engine) {
    engine = Darknet(*params).engine(*builder, nullptr, params->maxBatchSize);
    return engine != nullptr;
}
#endif

#ifdef WITH_MODEL_PARSER
#ifndef NO_FACTORY
bool NvDsInferPluginFactoryRuntimeGet(IPluginFactory *&) { return false; }
#endif

IModelParser *NvDsInferCreateModelParser(const NvDsInferContextInitParams *params) {
    return new Darknet(*params);
}
#endif

extern "C" bool Crashes(IBuilder *builder, IBuilderConfig *, const NvDsInferContextInitParams *,
                        DataType, ICudaEngine *&) {
    builder->createNetworkV2(1U)->addInput("x", DataType::kFLOAT, Dims4(1, 3, 8, 8));
    crash();
    return true;
}
extern "C" bool Loops(IBuilder *, IBuilderConfig *, const NvDsInferContextInitParams *, DataType,
                      ICudaEngine *&) {
    for (volatile int i = 0;; i = i + 1) {
    }
}

// Every way to fail.
extern "C" bool SaysFalse(IBuilder *, IBuilderConfig *, const NvDsInferContextInitParams *,
                          DataType, ICudaEngine *&) {
    return false;
}
extern "C" bool GivesNoEngine(IBuilder *, IBuilderConfig *, const NvDsInferContextInitParams *,
                              DataType, ICudaEngine *&) {
    return true;
}
extern "C" bool Throws(IBuilder *, IBuilderConfig *, const NvDsInferContextInitParams *, DataType,
                       ICudaEngine *&) {
    throw std::runtime_error("no weights today");
}
extern "C" bool AddsNonsense(IBuilder *builder, IBuilderConfig *config,
                             const NvDsInferContextInitParams *, DataType, ICudaEngine *&engine) {
    INetworkDefinition *network = builder->createNetworkV2(1U);
    ITensor *x = network->addInput("x", DataType::kFLOAT, Dims4(1, 3, 8, 8));
    ITensor *y = network->addInput("y", DataType::kFLOAT, Dims4(1, 3, 8, 7));
    network->markOutput(*network->addElementWise(*x, *y, ElementWiseOperation::kSUM)->getOutput(0));
    IHostMemory *plan = builder->buildSerializedNetwork(*network, *config);
    delete network;
    if (!plan) return false;
    engine = createInferRuntime(*builder->getLogger())->deserializeCudaEngine(plan->data(),
                                                                              plan->size());
    return true;
}

extern "C" bool NvDsInferParseMiniYolo(const std::vector<NvDsInferLayerInfo> &layers,
                                       const NvDsInferNetworkInfo &network,
                                       const NvDsInferParseDetectionParams &params,
                                       std::vector<NvDsInferObjectDetectionInfo> &objects) {
    const float width = float(network.width), height = float(network.height);
    const float *row = static_cast<const float *>(layers[0].buffer);
    for (unsigned int i = 0; i < layers[0].inferDims.d[0]; ++i, row += 6) {
        const unsigned int label = static_cast<unsigned int>(row[5]);
        if (row[4] < params.perClassPreclusterThreshold[label]) continue;
        NvDsInferObjectDetectionInfo object = {};
        object.classId = label;
        object.left = std::min(std::max(row[0], 0.0f), width);
        object.top = std::min(std::max(row[1], 0.0f), height);
        object.width = std::min(std::max(row[2], 0.0f), width) - object.left;
        object.height = std::min(std::max(row[3], 0.0f), height) - object.top;
        object.detectionConfidence = row[4];
        objects.push_back(object);
    }
    return true;
}
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(NvDsInferParseMiniYolo);
