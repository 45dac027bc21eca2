// Layers of language models: attention, rotary embeddings and key-value caches; mixtures of experts
// and collectives are refused by name.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_ATTENTION_H
#define HEADRACE_TRT_ATTENTION_H

#include "layers.h"

namespace nvinfer1 {

class IAttention;

// An attention is one layer here, the output layer.
class IAttentionBoundaryLayer : public ILayer {
public:
    IAttention *getAttention() const;
};
class IAttentionInputLayer : public IAttentionBoundaryLayer {};
class IAttentionOutputLayer : public IAttentionBoundaryLayer {};

class IAttention : public headrace::Object {
public:
    bool setNormalizationOperation(AttentionNormalizationOp op) {
        return headrace::set(this, "norm_op", op);
    }
    HEADRACE_GET(AttentionNormalizationOp, getNormalizationOperation, "norm_op")
    bool setCausal(bool causal) { return headrace::set(this, "causal", causal); }
    HEADRACE_GET(bool, getCausal, "causal")
    bool setCausalKind(CausalMaskKind kind) { return headrace::set(this, "causal_kind", kind); }
    HEADRACE_GET(CausalMaskKind, getCausalKind, "causal_kind")
    bool setMask(ITensor &mask) { return headrace::set(this, "mask", mask); }
    HEADRACE_GET(ITensor *, getMask, "mask")
    bool setDecomposable(bool on) { return headrace::set(this, "decomposable", on); }
    HEADRACE_GET(bool, getDecomposable, "decomposable")
    HEADRACE_CALL(bool, setInput(int32_t index, ITensor &input), "set_input", index, input)
    HEADRACE_GET(int32_t, getNbInputs, "num_inputs")
    HEADRACE_CALL(ITensor *, getInput(int32_t index) const, "get_input", index)
    HEADRACE_GET(int32_t, getNbOutputs, "num_outputs")
    HEADRACE_CALL(ITensor *, getOutput(int32_t index) const, "get_output", index)
    bool setName(const char *name) { return headrace::set(this, "name", name); }
    HEADRACE_GET(const char *, getName, "name")
    bool setMetadata(const char *text) { return headrace::set(this, "metadata", text); }
    HEADRACE_GET(const char *, getMetadata, "metadata")
    bool setNormalizationQuantizeScale(ITensor &scale) {
        return headrace::set(this, "normalization_quantize_scale", scale);
    }
    HEADRACE_GET(ITensor *, getNormalizationQuantizeScale, "normalization_quantize_scale")
    bool setNormalizationQuantizeToType(DataType type) {
        return headrace::set(this, "normalization_quantize_to_type", type);
    }
    HEADRACE_GET(DataType, getNormalizationQuantizeToType, "normalization_quantize_to_type")
    HEADRACE_REFUSED(bool, setNbRanks(int32_t), "IAttention::setNbRanks", "10.16")
    HEADRACE_REFUSED(int32_t, getNbRanks() const, "IAttention::getNbRanks", "10.16")
    HEADRACE_REFUSED(bool, setQueryForm(AttentionIOForm), "IAttention::setQueryForm", "11.0")
    HEADRACE_REFUSED(AttentionIOForm, getQueryForm() const, "IAttention::getQueryForm", "11.0")
    HEADRACE_REFUSED(bool, setKeyValueForm(AttentionIOForm), "IAttention::setKeyValueForm", "11.0")
    HEADRACE_REFUSED(AttentionIOForm, getKeyValueForm() const, "IAttention::getKeyValueForm",
                     "11.0")
    HEADRACE_REFUSED(bool, setQueryLengths(ITensor &), "IAttention::setQueryLengths", "11.0")
    HEADRACE_REFUSED(ITensor *, getQueryLengths() const, "IAttention::getQueryLengths", "11.0")
    HEADRACE_REFUSED(bool, setKeyValueLengths(ITensor &), "IAttention::setKeyValueLengths", "11.0")
    HEADRACE_REFUSED(ITensor *, getKeyValueLengths() const, "IAttention::getKeyValueLengths",
                     "11.0")

private:
    IAttention() = delete;
};

inline IAttention *IAttentionBoundaryLayer::getAttention() const {
    return headrace::get<IAttention *>(this, "attention");
}

// Inputs: x, cosines, sines; positions, set as input 3.
class IRotaryEmbeddingLayer : public ILayer {
public:
    HEADRACE_PROPERTY(bool, getInterleaved, setInterleaved, "interleaved")
    bool setRotaryEmbeddingDim(int32_t dim) {
        return headrace::set(this, "rotary_embedding_dim", dim);
    }
    HEADRACE_GET(int32_t, getRotaryEmbeddingDim, "rotary_embedding_dim")
    using ILayer::setInput;
};

// Inputs: cache, update, the index of the first position that each sequence writes.
class IKVCacheUpdateLayer : public ILayer {
public:
    bool setCacheMode(KVCacheMode mode) { return headrace::set(this, "cache_mode", mode); }
    HEADRACE_GET(KVCacheMode, getCacheMode, "cache_mode")
    HEADRACE_REFUSED(bool, setUpdateForm(AttentionIOForm), "IKVCacheUpdateLayer::setUpdateForm",
                     "11.0")
    HEADRACE_REFUSED(AttentionIOForm, getUpdateForm() const, "IKVCacheUpdateLayer::getUpdateForm",
                     "11.0")
    HEADRACE_REFUSED(bool, setUpdateLengths(ITensor &), "IKVCacheUpdateLayer::setUpdateLengths",
                     "11.0")
    HEADRACE_REFUSED(ITensor *, getUpdateLengths() const, "IKVCacheUpdateLayer::getUpdateLengths",
                     "11.0")
};

class IDistCollectiveLayer : public ILayer {};

// There is none: INetworkDefinition::addMoE is refused.
class IMoELayer : public ILayer {
public:
    HEADRACE_REFUSED(void, setGatedWeights(ITensor &, ITensor &, ITensor &, MoEActType),
                     "IMoELayer::setGatedWeights", "10.16")
    HEADRACE_REFUSED(void, setGatedBiases(ITensor &, ITensor &, ITensor &),
                     "IMoELayer::setGatedBiases", "10.16")
    HEADRACE_REFUSED(void, setActivationType(MoEActType), "IMoELayer::setActivationType", "10.16")
    HEADRACE_REFUSED(MoEActType, getActivationType() const, "IMoELayer::getActivationType", "10.16")
    HEADRACE_REFUSED(void, setQuantizationStatic(ITensor &, DataType),
                     "IMoELayer::setQuantizationStatic", "10.16")
    HEADRACE_REFUSED(void, setQuantizationDynamicDblQ(ITensor &, DataType, const Dims &, DataType),
                     "IMoELayer::setQuantizationDynamicDblQ", "10.16")
    HEADRACE_REFUSED(void, setQuantizationToType(DataType), "IMoELayer::setQuantizationToType",
                     "10.16")
    HEADRACE_REFUSED(DataType, getQuantizationToType() const, "IMoELayer::getQuantizationToType",
                     "10.16")
    HEADRACE_REFUSED(void, setQuantizationBlockShape(const Dims &),
                     "IMoELayer::setQuantizationBlockShape", "10.16")
    HEADRACE_REFUSED(Dims, getQuantizationBlockShape() const,
                     "IMoELayer::getQuantizationBlockShape", "10.16")
    HEADRACE_REFUSED(void, setDynQOutputScaleType(DataType), "IMoELayer::setDynQOutputScaleType",
                     "10.16")
    HEADRACE_REFUSED(DataType, getDynQOutputScaleType() const, "IMoELayer::getDynQOutputScaleType",
                     "10.16")
    HEADRACE_REFUSED(void, setSwigluParams(float, float, float), "IMoELayer::setSwigluParams",
                     "10.16")
    HEADRACE_REFUSED(void, setSwigluParamLimit(float), "IMoELayer::setSwigluParamLimit", "10.16")
    HEADRACE_REFUSED(float, getSwigluParamLimit() const, "IMoELayer::getSwigluParamLimit", "10.16")
    HEADRACE_REFUSED(void, setSwigluParamAlpha(float), "IMoELayer::setSwigluParamAlpha", "10.16")
    HEADRACE_REFUSED(float, getSwigluParamAlpha() const, "IMoELayer::getSwigluParamAlpha", "10.16")
    HEADRACE_REFUSED(void, setSwigluParamBeta(float), "IMoELayer::setSwigluParamBeta", "10.16")
    HEADRACE_REFUSED(float, getSwigluParamBeta() const, "IMoELayer::getSwigluParamBeta", "10.16")
    HEADRACE_REFUSED(void, setInput(int32_t, ITensor &), "IMoELayer::setInput", "10.16")
};

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_ATTENTION_H
