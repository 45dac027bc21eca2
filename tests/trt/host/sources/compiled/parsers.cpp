// A model parser, and engine creators with calibrators, of a library of TensorRT's own headers. The
// environment's PARSER says what the parser does.
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "NvInfer.h"

using namespace nvinfer1;

#if NV_TENSORRT_MAJOR >= 10
using Extent = int64_t;
#else
using Extent = int32_t;
#endif

class IModelParser {  // as DeepStream declares it
public:
    virtual ~IModelParser() = default;
    virtual int parseModel(INetworkDefinition &network) = 0;
    virtual bool hasFullDimsSupported() const = 0;
    virtual const char *getModelName() const = 0;
};

namespace {

Dims of(int count, Extent a, Extent b, Extent c = 0, Extent d = 0) {
    Dims dims{};
    dims.nbDims = count;
    const Extent all[] = {a, b, c, d};
    for (int i = 0; i < count; ++i) dims.d[i] = all[i];
    return dims;
}

bool is(const char *what) { return !std::strcmp(std::getenv("PARSER"), what); }

// Sums of 2 by 2 pixels of all channels.
void fill(INetworkDefinition &network, bool implicit) {
    float ones[12];
    for (float &one : ones) one = 1;
    const Weights kernel{DataType::kFLOAT, ones, 12}, none{DataType::kFLOAT, nullptr, 0};
    const Dims shape = implicit ? of(3, 3, 4, 6) : of(4, 1, 3, 4, 6);
    ITensor *image = network.addInput("image", DataType::kFLOAT, shape);
    auto *layer = network.addConvolutionNd(*image, 1, of(2, 2, 2), kernel, none);
    layer->setStrideNd(of(2, 2, 2));
    layer->getOutput(0)->setName("sums");
    network.markOutput(*layer->getOutput(0));
}

class Parser : public IModelParser {
public:
    int parseModel(INetworkDefinition &network) override {
        if (is("throws")) throw std::runtime_error("no weights today");
        if (is("fails")) return 7;
        if (is("crashes")) *reinterpret_cast<volatile int *>(16) = 1;
        if (is("nulls"))
            return network.addActivation(*static_cast<ITensor *>(nullptr), ActivationType(0)) ? 0
                                                                                              : 7;
        if (!is("empty")) fill(network, is("implicit"));
        return 0;
    }
    bool hasFullDimsSupported() const override { return !is("implicit"); }
    const char *getModelName() const override { return is("unnamed") ? nullptr : "sums"; }
};

}  // namespace

extern "C" IModelParser *NvDsInferCreateModelParser(const void *) {
    return is("none") ? nullptr : new Parser;
}

#if NV_TENSORRT_MAJOR < 11
namespace {

#if NV_TENSORRT_MAJOR < 8
#define NOEXCEPT
#else
#define NOEXCEPT noexcept
#endif

class Calibrator : public IInt8EntropyCalibrator2 {
public:
    explicit Calibrator(const char *table) : table_(table) {}
    int32_t getBatchSize() const NOEXCEPT override { return 1; }
    bool getBatch(void *bindings[], const char *[], int32_t) NOEXCEPT override {
        bindings[0] = data_;
        return left_-- > 0;
    }
    const void *readCalibrationCache(unsigned long &size) NOEXCEPT override {
        if (table_ == "crash") *reinterpret_cast<volatile int *>(16) = 1;
        size = table_.size();
        return size ? table_.data() : nullptr;
    }
    void writeCalibrationCache(const void *, unsigned long) NOEXCEPT override {}

private:
    std::string table_;
    float data_[72] = {};
    int left_ = 1;
};

bool calibrated(IBuilder *builder, IBuilderConfig *config, ICudaEngine *&made, const char *table) {
    Calibrator calibrator(table);
    if (!config) config = builder->createBuilderConfig();
    INetworkDefinition *network = builder->createNetworkV2(1U);
    fill(*network, false);
    config->setFlag(BuilderFlag(1));  // INT8
    config->setInt8Calibrator(&calibrator);
    if (config->getInt8Calibrator() != &calibrator) return false;
#if NV_TENSORRT_MAJOR < 8
    made = builder->buildEngineWithConfig(*network, *config);
#else
    IHostMemory *plan = builder->buildSerializedNetwork(*network, *config);
    if (!plan) return false;
    IRuntime *runtime = createInferRuntime(*getLogger());
#if NV_TENSORRT_MAJOR < 10
    made = runtime->deserializeCudaEngine(plan->data(), plan->size(), nullptr);
#else
    made = runtime->deserializeCudaEngine(plan->data(), plan->size());
#endif
#endif
    return made;
}

}  // namespace

#if NV_TENSORRT_MAJOR < 8
#define CREATOR(name, table)                                                              \
    extern "C" bool name(IBuilder *builder, const void *, DataType, ICudaEngine *&made) { \
        return calibrated(builder, nullptr, made, table);                                 \
    }
#else
#define CREATOR(name, table)                                                                \
    extern "C" bool name(IBuilder *builder, IBuilderConfig *config, const void *, DataType, \
                         ICudaEngine *&made) {                                              \
        return calibrated(builder, config, made, table);                                    \
    }
#endif
// Steps of 0.25 in the image.
CREATOR(ReadsItsTable, "TRT-8502-EntropyCalibration2\nimage: 3e800000\nsums: 3f000000\n")
CREATOR(AsksForBatches, "")
CREATOR(CrashesReading, "crash")
#endif
