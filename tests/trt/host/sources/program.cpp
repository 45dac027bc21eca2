// A program as TensorRT's users write them: builds LeNet from weights in a file, saves it, loads it,
// runs it; and the calls that public sources use around that.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <vector>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "cuda_fp16.h"
#include "cuda_runtime_api.h"
#include "nvdsinfer_custom_impl.h"

using namespace nvinfer1;

// The checks of DeepStream's header, with a semicolon and without.
extern "C" bool ParseNothing(std::vector<NvDsInferLayerInfo> const &, NvDsInferNetworkInfo const &,
                             NvDsInferParseDetectionParams const &,
                             std::vector<NvDsInferObjectDetectionInfo> &) {
    return true;
}
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(ParseNothing)
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(ParseNothing);

static __device__ inline float twice(float value) { return 2 * value; }

class Logger : public ILogger {
    void log(Severity severity, const char *text) noexcept override {
        if (severity <= Severity::kWARNING) std::cerr << "[TRT] " << text << std::endl;
    }
} logger;

// Memory of the program's own, as sources hand it around.
class FileMemory : public IHostMemory {
public:
    explicit FileMemory(const char *path) {
        std::ifstream file(path, std::ios::binary);
        bytes_.assign(std::istreambuf_iterator<char>(file), {});
    }
    void *data() const noexcept override { return const_cast<char *>(bytes_.data()); }
    size_t size() const noexcept override { return bytes_.size(); }
    DataType type() const noexcept override { return DataType::kINT8; }

private:
    std::vector<char> bytes_;
};

class FileReader : public IStreamReader {
public:
    explicit FileReader(const char *path) : file_(path, std::ios::binary) {}
    int64_t read(void *to, int64_t most) override {
        file_.read(static_cast<char *>(to), most);
        return file_.gcount();
    }

private:
    std::ifstream file_;
};

class Grown : public IOutputAllocator {
public:
    void *reallocateOutput(const char *, void *, uint64_t size, uint64_t) noexcept override {
        bytes.resize(size);
        return bytes.data();
    }
    void notifyShape(const char *, const Dims &dims) noexcept override { shape = dims; }
    std::vector<char> bytes;
    Dims shape{};
};

static std::vector<float> read(const char *path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    const float *values = reinterpret_cast<const float *>(bytes.data());
    return std::vector<float>(values, values + bytes.size() / sizeof(float));
}

class Choose : public IAlgorithmSelector {
public:
    int32_t selectAlgorithms(const IAlgorithmContext &, const IAlgorithm *const *, int32_t,
                             int32_t *) noexcept override {
        return 0;
    }
    void reportAlgorithms(const IAlgorithmContext *const *, const IAlgorithm *const *,
                          int32_t) noexcept override {}
};

// Of the time before explicit batches: what is behind the batch's last item stays as it was.
static bool runsImplicitBatches(IBuilder &builder, IBuilderConfig &config) {
    std::unique_ptr<INetworkDefinition> network{builder.createNetwork()};
    ITensor *x = network->addInput("x", DataType::kFLOAT, Dims3{1, 1, 2});
    ITensor *y = network->addActivation(*x, ActivationType::kRELU)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    builder.setMaxBatchSize(2);
    std::unique_ptr<ICudaEngine> engine{builder.buildEngineWithConfig(*network, config)};
    if (!engine) return false;
    std::unique_ptr<IExecutionContext> context{engine->createExecutionContext()};
    float in[] = {-1, 2, -3, 4}, out[] = {9, 9, 9, 9};
    void *bindings[] = {in, out};
    if (!context->setOptimizationProfile(0)) return false;
    if (!context->enqueue(1, bindings, nullptr, nullptr) || out[1] != 2 || out[2] != 9) return false;
    return context->execute(2, bindings) && out[0] == 0 && out[2] == 0 && out[3] == 4 &&
           !context->execute(3, bindings);
}

static int build(const char *weights, const char *plan) {
    const std::vector<float> all = read(weights);
    const float *at = all.data();
    const auto take = [&](int64_t count) {
        const Weights part{DataType::kFLOAT, at, count};
        at += count;
        return part;
    };
    std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
    std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(1U)};
    std::unique_ptr<IBuilderConfig> config{builder->createBuilderConfig()};
    ITensor *x = network->addInput("data", DataType::kFLOAT, Dims4{1, 1, 28, 28});
    int64_t maps = 1;
    for (int64_t next : {4, 6}) {
        const Weights kernel = take(next * maps * 25), bias = take(next);
        auto *conv = network->addConvolutionNd(*x, next, DimsHW{5, 5}, kernel, bias);
        conv->setStrideNd(DimsHW{1, 1});
        auto *relu = network->addActivation(*conv->getOutput(0), ActivationType::kRELU);
        auto *pool =
            network->addPoolingNd(*relu->getOutput(0), PoolingType::kMAX, DimsHW{2, 2});
        pool->setStrideNd(DimsHW{2, 2});
        x = pool->getOutput(0), maps = next;
    }
    auto *flat = network->addShuffle(*x);
    flat->setReshapeDimensions(Dims2{1, 96});
    auto *fc = network->addConstant(Dims2{10, 96}, take(960));
    fc->setName("fc");
    auto *matrix = fc->getOutput(0);
    auto *product = network->addMatrixMultiply(*flat->getOutput(0), MatrixOperation::kNONE, *matrix,
                                               MatrixOperation::kTRANSPOSE);
    // doubled three times by a loop
    auto *loop = network->addLoop();
    const int32_t three = 3;
    auto *times = network->addConstant(Dims{}, Weights{DataType::kINT32, &three, 1})->getOutput(0);
    loop->addTripLimit(*times, TripLimit::kCOUNT);
    auto *value = loop->addRecurrence(*product->getOutput(0));
    auto *sum = network->addElementWise(*value->getOutput(0), *value->getOutput(0),
                                        ElementWiseOperation::kSUM);
    value->setInput(1, *sum->getOutput(0));
    auto *last = loop->addLoopOutput(*value->getOutput(0), LoopOutput::kLAST_VALUE);
    last->getOutput(0)->setName("prob");
    network->markOutput(*last->getOutput(0));
    config->setFlag(BuilderFlag::kREFIT);
    std::unique_ptr<ITimingCache> cache{config->createTimingCache("", 0)};
    config->setTimingCache(*cache, false);
    std::unique_ptr<IBuilderConfig> plain{builder->createBuilderConfig()};
    if (!runsImplicitBatches(*builder, *plain)) return 2;
    Choose choose;
    config->setAlgorithmSelector(&choose);
    std::unique_ptr<IHostMemory> made{builder->buildSerializedNetwork(*network, *config)};
    if (!made) return 1;
    std::ofstream(plan, std::ios::binary)
        .write(static_cast<const char *>(made->data()), static_cast<std::streamsize>(made->size()));
    return 0;
}

static int run(const char *plan, const char *input, const char *output) {
    std::vector<float> image = read(input), result(10), again(10);
    const FileMemory memory(plan);
    FileReader reader(plan);
    std::unique_ptr<IRuntime> runtime{createInferRuntime(logger)};
    std::unique_ptr<ICudaEngine> first{runtime->deserializeCudaEngine(memory.data(), memory.size())};
    std::unique_ptr<ICudaEngine> engine{runtime->deserializeCudaEngine(reader)};
    if (!first || !engine) return 1;
    std::unique_ptr<IExecutionContext> context{engine->createExecutionContext()};
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaStreamCreate(&stream);
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess) return 2;
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess || graph) return 3;
    cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
    void *device, *back, *pinned;
    cudaMalloc(&device, 28 * 28 * sizeof(float));
    cudaMalloc(&back, 10 * sizeof(float));
    cudaHostAlloc(&pinned, 16, cudaHostAllocWriteCombined);
    cudaMemcpyAsync(device, image.data(), 28 * 28 * sizeof(float), cudaMemcpyHostToDevice, stream);
    if (!context->setOptimizationProfileAsync(0, stream)) return 4;
    context->setTensorAddress("data", device);
    context->setTensorAddress("prob", back);
    if (!context->enqueueV3(stream)) return 5;
    cudaMemcpyAsync(result.data(), back, 10 * sizeof(float), cudaMemcpyDeviceToHost, stream);
    Grown grown;
    if (!context->setOutputAllocator("prob", &grown) || context->setOutputAllocator("none", &grown))
        return 6;
    if (context->getOutputAllocator("prob") != &grown || !context->enqueueV3(stream)) return 7;
    if (grown.bytes.size() != 40 || grown.shape.nbDims != 2 || grown.shape.d[1] != 10) return 8;
    void *bindings[] = {device, back};
    if (!context->executeV2(bindings)) return 9;
    for (int i = 0; i < 10; ++i)
        if (reinterpret_cast<float *>(grown.bytes.data())[i] != result[static_cast<size_t>(i)])
            return 10;
    std::unique_ptr<IRefitter> refitter{createInferRefitter(*engine, logger)};
    const char *layers[8];
    WeightsRole roles[8];
    const int count = refitter->getAll(8, layers, roles);
    const std::vector<float> zeros(960);
    for (int i = 0; i < count; ++i)
        if (std::string(layers[i]) == "fc" && roles[i] == WeightsRole::kCONSTANT)
            refitter->setWeights(layers[i], roles[i], Weights{DataType::kFLOAT, zeros.data(), 960});
    if (!refitter->refitCudaEngine() || !context->executeV2(bindings)) return 11;
    for (int i = 0; i < 10; ++i)
        if (static_cast<float *>(back)[i] != 0) return 12;
    std::ofstream(output, std::ios::binary)
        .write(reinterpret_cast<const char *>(result.data()), 10 * sizeof(float));
    std::printf("%d weights, %s, %.1f\n", count, engine->getIOTensorName(1),
                static_cast<double>(twice(__half2float(__float2half(0.5F)))));
    return 0;
}

// Calls that cannot be answered: the program sees nothing of them.
static int wrong() {
    std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
    std::unique_ptr<IBuilderConfig> config{builder->createBuilderConfig()};
    for (int i = 0; i < 3; ++i) config->setFlag(static_cast<BuilderFlag>(99));
    config->setFlags(1U << static_cast<int>(BuilderFlag::kSTRIP_PLAN));
    return config->getFlags() == 1U << static_cast<int>(BuilderFlag::kSTRIP_PLAN) ? 0 : 1;
}

// An engine of one model gets the weights of another.
static int refit(const char *model, const char *other) {
    std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
    std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(1U)};
    std::unique_ptr<IBuilderConfig> config{builder->createBuilderConfig()};
    std::unique_ptr<nvonnxparser::IParser> parser{nvonnxparser::createParser(*network, logger)};
    config->setFlag(BuilderFlag::kREFIT);
    config->setRuntimePlatform(RuntimePlatform::kSAME_AS_BUILD);
    if (!config->setTilingOptimizationLevel(TilingOptimizationLevel::kFAST) ||
        config->getTilingOptimizationLevel() != TilingOptimizationLevel::kFAST)
        return 1;
    if (!parser->parseFromFile(model, 0)) return 2;
    std::unique_ptr<IHostMemory> plan{builder->buildSerializedNetwork(*network, *config)};
    std::unique_ptr<IRuntime> runtime{createInferRuntime(logger)};
    std::unique_ptr<ICudaEngine> engine{runtime->deserializeCudaEngine(plan->data(), plan->size())};
    std::unique_ptr<IRefitter> refitter{createInferRefitter(*engine, logger)};
    std::unique_ptr<nvonnxparser::IParserRefitter> reader{
        nvonnxparser::createParserRefitter(*refitter, logger)};
    if (reader->refitFromFile("/no.onnx") || reader->getNbErrors() != 1) return 3;
    std::cout << reader->getError(0)->desc() << std::endl;
    reader->clearErrors();
    if (!reader->refitFromFile(other) || reader->getNbErrors() || !refitter->refitCudaEngine())
        return 4;
    std::unique_ptr<IExecutionContext> context{engine->createExecutionContext()};
    float in[] = {1, 2}, out[2];
    void *bindings[] = {in, out};
    if (!context->executeV2(bindings)) return 5;
    std::cout << out[0] << " " << out[1] << std::endl;
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 4 && std::string(argv[1]) == "refit") return refit(argv[2], argv[3]);
    if (argc == 2 && std::string(argv[1]) == "wrong") return wrong();
    if (argc == 4 && std::string(argv[1]) == "build") return build(argv[2], argv[3]);
    if (argc == 5 && std::string(argv[1]) == "run") return run(argv[2], argv[3], argv[4]);
    std::cerr << "usage: " << argv[0] << " build|run …" << std::endl;
    return 64;
}
