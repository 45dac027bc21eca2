// What TensorRT 7 had and later releases dropped: recurrent layers, which are refused by name, and
// formulas for the extents of windows.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_RECURRENT_H
#define HEADRACE_TRT_RECURRENT_H

#include "layers.h"

namespace nvinfer1 {

enum class RNNOperation : int32_t { kRELU = 0, kTANH = 1, kLSTM = 2, kGRU = 3 };
enum class RNNDirection : int32_t { kUNIDIRECTION = 0, kBIDIRECTION = 1 };
enum class RNNInputMode : int32_t { kLINEAR = 0, kSKIP = 1 };
enum class RNNGateType : int32_t {
    kINPUT = 0,
    kOUTPUT = 1,
    kFORGET = 2,
    kUPDATE = 3,
    kRESET = 4,
    kCELL = 5,
    kHIDDEN = 6
};

// The methods that both recurrent layers have.
#define HEADRACE_RECURRENT(name)                                                      \
    HEADRACE_REFUSED(int32_t, getLayerCount() const, name "::getLayerCount", "5")     \
    HEADRACE_REFUSED(int32_t, getHiddenSize() const, name "::getHiddenSize", "5")     \
    HEADRACE_REFUSED(void, setOperation(RNNOperation), name "::setOperation", "5")    \
    HEADRACE_REFUSED(RNNOperation, getOperation() const, name "::getOperation", "5")  \
    HEADRACE_REFUSED(void, setInputMode(RNNInputMode), name "::setInputMode", "5")    \
    HEADRACE_REFUSED(RNNInputMode, getInputMode() const, name "::getInputMode", "5")  \
    HEADRACE_REFUSED(void, setDirection(RNNDirection), name "::setDirection", "5")    \
    HEADRACE_REFUSED(RNNDirection, getDirection() const, name "::getDirection", "5")  \
    HEADRACE_REFUSED(void, setHiddenState(ITensor &), name "::setHiddenState", "5")   \
    HEADRACE_REFUSED(ITensor *, getHiddenState() const, name "::getHiddenState", "5") \
    HEADRACE_REFUSED(void, setCellState(ITensor &), name "::setCellState", "5")       \
    HEADRACE_REFUSED(ITensor *, getCellState() const, name "::getCellState", "5")     \
    HEADRACE_REFUSED(int32_t, getDataLength() const, name "::getDataLength", "5")

class IRNNLayer : public ILayer {
public:
    HEADRACE_RECURRENT("IRNNLayer")
    HEADRACE_REFUSED(int32_t, getSeqLength() const, "IRNNLayer::getSeqLength", "5")
    HEADRACE_REFUSED(void, setWeights(Weights), "IRNNLayer::setWeights", "5")
    HEADRACE_REFUSED(Weights, getWeights() const, "IRNNLayer::getWeights", "5")
    HEADRACE_REFUSED(void, setBias(Weights), "IRNNLayer::setBias", "5")
    HEADRACE_REFUSED(Weights, getBias() const, "IRNNLayer::getBias", "5")
};

class IRNNv2Layer : public ILayer {
public:
    HEADRACE_RECURRENT("IRNNv2Layer")
    HEADRACE_REFUSED(int32_t, getMaxSeqLength() const, "IRNNv2Layer::getMaxSeqLength", "5")
    HEADRACE_REFUSED(void, setSequenceLengths(ITensor &), "IRNNv2Layer::setSequenceLengths", "5")
    HEADRACE_REFUSED(ITensor *, getSequenceLengths() const, "IRNNv2Layer::getSequenceLengths", "5")
    HEADRACE_REFUSED(void, setWeightsForGate(int32_t, RNNGateType, bool, Weights),
                     "IRNNv2Layer::setWeightsForGate", "5")
    HEADRACE_REFUSED(Weights, getWeightsForGate(int32_t, RNNGateType, bool) const,
                     "IRNNv2Layer::getWeightsForGate", "5")
    HEADRACE_REFUSED(void, setBiasForGate(int32_t, RNNGateType, bool, Weights),
                     "IRNNv2Layer::setBiasForGate", "5")
    HEADRACE_REFUSED(Weights, getBiasForGate(int32_t, RNNGateType, bool) const,
                     "IRNNv2Layer::getBiasForGate", "5")
};

class IOutputDimensionsFormula {
public:
    virtual DimsHW compute(DimsHW inputDims, DimsHW kernelSize, DimsHW stride, DimsHW padding,
                           DimsHW dilation, const char *layerName) const = 0;
    virtual ~IOutputDimensionsFormula() = default;
};

}  // namespace nvinfer1

namespace headrace {
inline namespace HEADRACE_GENERATION {

template <>
struct Callback<nvinfer1::IOutputDimensionsFormula> {
    static const char *kind() { return "IOutputDimensionsFormula"; }
    static nvinfer1::DimsHW two(const headrace_value &value) {
        const nvinfer1::Dims all = As<nvinfer1::Dims>::from(value);
        return nvinfer1::DimsHW(all.d[0], all.d[1]);
    }
    static Value call(nvinfer1::IOutputDimensionsFormula &self, const char *,
                      const headrace_value *a) {
        return Value(self.compute(two(a[0]), two(a[1]), two(a[2]), two(a[3]), two(a[4]),
                                  As<const char *>::from(a[5])));
    }
};

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

#define HEADRACE_FORMULA(getter, setter, kind)                                                  \
    void setter(IOutputDimensionsFormula *formula) {                                            \
        headrace::withCallback(formula, [&](const headrace::Value &value) {                     \
            headrace::call<void>(nullptr, "set_formula", {headrace::Value(this), kind, value}); \
        });                                                                                     \
    }                                                                                           \
    IOutputDimensionsFormula &getter() const {                                                  \
        return *headrace::callbackFrom<IOutputDimensionsFormula>(                               \
            headrace::callValue(nullptr, "get_formula", {headrace::Value(this), kind}));        \
    }

#endif  // HEADRACE_TRT_RECURRENT_H
