// The layers, each with what can be set on it after it was added.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_LAYERS_H
#define HEADRACE_TRT_LAYERS_H

#include "creators.h"
#include "tensor.h"

namespace nvinfer1 {

class IPlugin;

// The type of the indices that a layer gives.
#define HEADRACE_INDICES                                                                     \
    bool setIndicesType(DataType type) { return headrace::set(this, "indices_type", type); } \
    HEADRACE_GET(DataType, getIndicesType, "indices_type")

// Kernels that move over an image: convolution, deconvolution and pooling have these in common.
#define HEADRACE_WINDOW                                                            \
    HEADRACE_PROPERTY(Dims, getPrePadding, setPrePadding, "pre_padding")           \
    HEADRACE_PROPERTY(Dims, getPostPadding, setPostPadding, "post_padding")        \
    HEADRACE_PROPERTY(PaddingMode, getPaddingMode, setPaddingMode, "padding_mode") \
    HEADRACE_PROPERTY(Dims, getStrideNd, setStrideNd, "stride_nd")                 \
    HEADRACE_PROPERTY(Dims, getPaddingNd, setPaddingNd, "padding_nd")              \
    void setStride(DimsHW value) { headrace::set(this, "stride_nd", value); }      \
    void setPadding(DimsHW value) { headrace::set(this, "padding_nd", value); }    \
    DimsHW getStride() const { return twoOf("stride_nd"); }                        \
    DimsHW getPadding() const { return twoOf("padding_nd"); }                      \
                                                                                   \
private:                                                                           \
    DimsHW twoOf(const char *name) const {                                         \
        const Dims all = headrace::get<Dims>(this, name);                          \
        return DimsHW(all.d[0], all.d[1]);                                         \
    }                                                                              \
                                                                                   \
public:

class IConvolutionLayer : public ILayer {
public:
    HEADRACE_WINDOW
    HEADRACE_PROPERTY(Dims, getKernelSizeNd, setKernelSizeNd, "kernel_size_nd")
    void setKernelSize(DimsHW value) { setKernelSizeNd(value); }
    DimsHW getKernelSize() const { return twoOf("kernel_size_nd"); }
    HEADRACE_PROPERTY(int64_t, getNbOutputMaps, setNbOutputMaps, "num_output_maps")
    HEADRACE_PROPERTY(int64_t, getNbGroups, setNbGroups, "num_groups")
    HEADRACE_PROPERTY(Dims, getDilationNd, setDilationNd, "dilation_nd")
    void setDilation(DimsHW value) { setDilationNd(value); }
    DimsHW getDilation() const { return twoOf("dilation_nd"); }
    HEADRACE_WEIGHTS(getKernelWeights, setKernelWeights, "kernel")
    HEADRACE_WEIGHTS(getBiasWeights, setBiasWeights, "bias")
};

class IDeconvolutionLayer : public ILayer {
public:
    HEADRACE_WINDOW
    HEADRACE_PROPERTY(Dims, getKernelSizeNd, setKernelSizeNd, "kernel_size_nd")
    void setKernelSize(DimsHW value) { setKernelSizeNd(value); }
    DimsHW getKernelSize() const { return twoOf("kernel_size_nd"); }
    HEADRACE_PROPERTY(int64_t, getNbOutputMaps, setNbOutputMaps, "num_output_maps")
    HEADRACE_PROPERTY(int64_t, getNbGroups, setNbGroups, "num_groups")
    HEADRACE_PROPERTY(Dims, getDilationNd, setDilationNd, "dilation_nd")
    HEADRACE_WEIGHTS(getKernelWeights, setKernelWeights, "kernel")
    HEADRACE_WEIGHTS(getBiasWeights, setBiasWeights, "bias")
};

class IPoolingLayer : public ILayer {
public:
    HEADRACE_WINDOW
    HEADRACE_PROPERTY(PoolingType, getPoolingType, setPoolingType, "type")
    HEADRACE_PROPERTY(Dims, getWindowSizeNd, setWindowSizeNd, "window_size_nd")
    void setWindowSize(DimsHW value) { setWindowSizeNd(value); }
    DimsHW getWindowSize() const { return twoOf("window_size_nd"); }
    HEADRACE_PROPERTY(float, getBlendFactor, setBlendFactor, "blend_factor")
    HEADRACE_PROPERTY(bool, getAverageCountExcludesPadding, setAverageCountExcludesPadding,
                      "average_count_excludes_padding")
};
#undef HEADRACE_WINDOW

class IFullyConnectedLayer : public ILayer {
public:
    HEADRACE_PROPERTY(int32_t, getNbOutputChannels, setNbOutputChannels, "num_output_channels")
    HEADRACE_WEIGHTS(getKernelWeights, setKernelWeights, "kernel")
    HEADRACE_WEIGHTS(getBiasWeights, setBiasWeights, "bias")
};

class IActivationLayer : public ILayer {
public:
    HEADRACE_PROPERTY(ActivationType, getActivationType, setActivationType, "type")
    HEADRACE_PROPERTY(float, getAlpha, setAlpha, "alpha")
    HEADRACE_PROPERTY(float, getBeta, setBeta, "beta")
};

class ILRNLayer : public ILayer {
public:
    HEADRACE_PROPERTY(int64_t, getWindowSize, setWindowSize, "window_size")
    HEADRACE_PROPERTY(float, getAlpha, setAlpha, "alpha")
    HEADRACE_PROPERTY(float, getBeta, setBeta, "beta")
    HEADRACE_PROPERTY(float, getK, setK, "k")
};

class IScaleLayer : public ILayer {
public:
    HEADRACE_PROPERTY(ScaleMode, getMode, setMode, "mode")
    HEADRACE_WEIGHTS(getShift, setShift, "shift")
    HEADRACE_WEIGHTS(getScale, setScale, "scale")
    HEADRACE_WEIGHTS(getPower, setPower, "power")
    HEADRACE_PROPERTY(int32_t, getChannelAxis, setChannelAxis, "channel_axis")
};

class ISoftMaxLayer : public ILayer {
public:
    HEADRACE_PROPERTY(uint32_t, getAxes, setAxes, "axes")
};

class IConcatenationLayer : public ILayer {
public:
    HEADRACE_PROPERTY(int32_t, getAxis, setAxis, "axis")
};

class IElementWiseLayer : public ILayer {
public:
    HEADRACE_PROPERTY(ElementWiseOperation, getOperation, setOperation, "op")
};

class IUnaryLayer : public ILayer {
public:
    HEADRACE_PROPERTY(UnaryOperation, getOperation, setOperation, "op")
};

class IReduceLayer : public ILayer {
public:
    HEADRACE_PROPERTY(ReduceOperation, getOperation, setOperation, "op")
    HEADRACE_PROPERTY(uint32_t, getReduceAxes, setReduceAxes, "axes")
    HEADRACE_PROPERTY(bool, getKeepDimensions, setKeepDimensions, "keep_dims")
};

class IPaddingLayer : public ILayer {
public:
    HEADRACE_PROPERTY(Dims, getPrePaddingNd, setPrePaddingNd, "pre_padding_nd")
    HEADRACE_PROPERTY(Dims, getPostPaddingNd, setPostPaddingNd, "post_padding_nd")
    void setPrePadding(DimsHW value) { setPrePaddingNd(value); }
    void setPostPadding(DimsHW value) { setPostPaddingNd(value); }
    DimsHW getPrePadding() const { return twoOf(getPrePaddingNd()); }
    DimsHW getPostPadding() const { return twoOf(getPostPaddingNd()); }

private:
    static DimsHW twoOf(const Dims &all) { return DimsHW(all.d[0], all.d[1]); }
};

class IShuffleLayer : public ILayer {
public:
    HEADRACE_PROPERTY(Dims, getReshapeDimensions, setReshapeDimensions, "reshape_dims")
    void setFirstTranspose(Permutation order) { headrace::set(this, "first_transpose", order); }
    void setSecondTranspose(Permutation order) { headrace::set(this, "second_transpose", order); }
    Permutation getFirstTranspose() const { return order("first_transpose"); }
    Permutation getSecondTranspose() const { return order("second_transpose"); }
    HEADRACE_PROPERTY(bool, getZeroIsPlaceholder, setZeroIsPlaceholder, "zero_is_placeholder")

private:
    Permutation order(const char *name) const {
        const Dims axes = headrace::get<Dims>(this, name);
        Permutation out = {};
        for (int i = 0; i < axes.nbDims && i < Dims::MAX_DIMS; ++i)
            out.order[i] = static_cast<int32_t>(axes.d[i]);
        return out;
    }
};

class ISliceLayer : public ILayer {
public:
    HEADRACE_PROPERTY(Dims, getStart, setStart, "start")
    HEADRACE_PROPERTY(Dims, getSize, setSize, "shape")
    HEADRACE_PROPERTY(Dims, getStride, setStride, "stride")
    HEADRACE_PROPERTY(SampleMode, getMode, setMode, "mode")
    HEADRACE_PROPERTY(Dims, getAxes, setAxes, "axes")
};

class ITopKLayer : public ILayer {
public:
    HEADRACE_PROPERTY(TopKOperation, getOperation, setOperation, "op")
    HEADRACE_PROPERTY(int32_t, getK, setK, "k")
    HEADRACE_PROPERTY(uint32_t, getReduceAxes, setReduceAxes, "axes")
    HEADRACE_INDICES
};

class IGatherLayer : public ILayer {
public:
    HEADRACE_PROPERTY(int32_t, getGatherAxis, setGatherAxis, "axis")
    HEADRACE_PROPERTY(int32_t, getNbElementWiseDims, setNbElementWiseDims, "num_elementwise_dims")
    HEADRACE_PROPERTY(GatherMode, getMode, setMode, "mode")
};

class IScatterLayer : public ILayer {
public:
    HEADRACE_PROPERTY(ScatterMode, getMode, setMode, "mode")
    HEADRACE_PROPERTY(int32_t, getAxis, setAxis, "axis")
};

class IMatrixMultiplyLayer : public ILayer {
public:
    void setOperation(int32_t index, MatrixOperation op) {
        headrace::set(this, index == 0 ? "op0" : "op1", op);
    }
    MatrixOperation getOperation(int32_t index) const {
        return headrace::get<MatrixOperation>(this, index == 0 ? "op0" : "op1");
    }
    void setTranspose(int32_t index, bool value) {
        setOperation(index, value ? MatrixOperation::kTRANSPOSE : MatrixOperation::kNONE);
    }
    bool getTranspose(int32_t index) const {
        return getOperation(index) == MatrixOperation::kTRANSPOSE;
    }
};

class IResizeLayer : public ILayer {
public:
    HEADRACE_PROPERTY(Dims, getOutputDimensions, setOutputDimensions, "shape")
    void setScales(const float *scales, int32_t nbScales) {
        headrace::set(this, "scales", headrace::Value::reals(scales, nbScales));
    }
    // How many there are; they are written if there is room for all.
    int32_t getScales(int32_t size, float *scales) const {
        const int32_t count =
            headrace::call<int32_t>(nullptr, "count_scales", {headrace::Value(this)});
        for (int32_t i = 0; scales && count <= size && i < count; ++i)
            scales[i] = headrace::call<float>(nullptr, "scale_at", {headrace::Value(this), i});
        return count;
    }
    HEADRACE_PROPERTY(InterpolationMode, getResizeMode, setResizeMode, "resize_mode")
    void setAlignCorners(bool value) {
        setCoordinateTransformation(value ? ResizeCoordinateTransformation::kALIGN_CORNERS
                                          : ResizeCoordinateTransformation::kASYMMETRIC);
    }
    bool getAlignCorners() const {
        return getCoordinateTransformation() == ResizeCoordinateTransformation::kALIGN_CORNERS;
    }
    HEADRACE_PROPERTY(ResizeCoordinateTransformation, getCoordinateTransformation,
                      setCoordinateTransformation, "coordinate_transformation")
    HEADRACE_PROPERTY(ResizeSelector, getSelectorForSinglePixel, setSelectorForSinglePixel,
                      "selector_for_single_pixel")
    HEADRACE_PROPERTY(ResizeRoundMode, getNearestRounding, setNearestRounding, "nearest_rounding")
    HEADRACE_PROPERTY(float, getCubicCoeff, setCubicCoeff, "cubic_coeff")
    HEADRACE_PROPERTY(bool, getExcludeOutside, setExcludeOutside, "exclude_outside")
};

class IConstantLayer : public ILayer {
public:
    HEADRACE_PROPERTY(Dims, getDimensions, setDimensions, "shape")
    HEADRACE_WEIGHTS(getWeights, setWeights, "weights")
};

class IFillLayer : public ILayer {
public:
    HEADRACE_PROPERTY(Dims, getDimensions, setDimensions, "shape")
    HEADRACE_PROPERTY(FillOperation, getOperation, setOperation, "operation")
    HEADRACE_PROPERTY(double, getAlpha, setAlpha, "alpha")
    HEADRACE_PROPERTY(double, getBeta, setBeta, "beta")
    HEADRACE_PROPERTY(int64_t, getAlphaInt64, setAlphaInt64, "alpha")
    HEADRACE_PROPERTY(int64_t, getBetaInt64, setBetaInt64, "beta")
    bool isAlphaBetaInt64() const {
        return headrace::call<bool>(nullptr, "fills_with_integers", {headrace::Value(this)});
    }
    HEADRACE_PROPERTY(DataType, getToType, setToType, "to_type")
};

// Extents of the blocks that share a scale.
#define HEADRACE_BLOCKS                                                                         \
    bool setBlockShape(const Dims &shape) { return headrace::set(this, "block_shape", shape); } \
    HEADRACE_GET(Dims, getBlockShape, "block_shape")

class IQuantizeLayer : public ILayer {
public:
    HEADRACE_BLOCKS
    HEADRACE_PROPERTY(int32_t, getAxis, setAxis, "axis")
    HEADRACE_PROPERTY(DataType, getToType, setToType, "to_type")
};

class IDequantizeLayer : public ILayer {
public:
    HEADRACE_BLOCKS
    HEADRACE_PROPERTY(int32_t, getAxis, setAxis, "axis")
    HEADRACE_PROPERTY(DataType, getToType, setToType, "to_type")
};

class ICastLayer : public ILayer {
public:
    HEADRACE_PROPERTY(DataType, getToType, setToType, "to_type")
};

class INMSLayer : public ILayer {
public:
    HEADRACE_PROPERTY(BoundingBoxFormat, getBoundingBoxFormat, setBoundingBoxFormat,
                      "bounding_box_format")
    HEADRACE_PROPERTY(int32_t, getTopKBoxLimit, setTopKBoxLimit, "topk_box_limit")
    HEADRACE_INDICES
};

class IGridSampleLayer : public ILayer {
public:
    HEADRACE_PROPERTY(InterpolationMode, getInterpolationMode, setInterpolationMode,
                      "interpolation_mode")
    HEADRACE_PROPERTY(bool, getAlignCorners, setAlignCorners, "align_corners")
    HEADRACE_PROPERTY(SampleMode, getSampleMode, setSampleMode, "sample_mode")
};

class INormalizationLayer : public ILayer {
public:
    HEADRACE_PROPERTY(float, getEpsilon, setEpsilon, "epsilon")
    HEADRACE_PROPERTY(uint32_t, getAxes, setAxes, "axes")
    HEADRACE_PROPERTY(int64_t, getNbGroups, setNbGroups, "num_groups")
    HEADRACE_PROPERTY(DataType, getComputePrecision, setComputePrecision, "compute_precision")
    HEADRACE_GET(bool, isV2, "is_v2")
};

class IEinsumLayer : public ILayer {
public:
    HEADRACE_PROPERTY(const char *, getEquation, setEquation, "equation")
};

class IOneHotLayer : public ILayer {
public:
    HEADRACE_PROPERTY(int32_t, getAxis, setAxis, "axis")
};

class IAssertionLayer : public ILayer {
public:
    HEADRACE_PROPERTY(const char *, getMessage, setMessage, "message")
};

class IReverseSequenceLayer : public ILayer {
public:
    HEADRACE_PROPERTY(int32_t, getBatchAxis, setBatchAxis, "batch_axis")
    HEADRACE_PROPERTY(int32_t, getSequenceAxis, setSequenceAxis, "sequence_axis")
};

class IIdentityLayer : public ILayer {};
class IShapeLayer : public ILayer {};
class ISelectLayer : public ILayer {};
class INonZeroLayer : public ILayer {
public:
    HEADRACE_INDICES
};
class IParametricReLULayer : public ILayer {};
class IRaggedSoftMaxLayer : public ILayer {};
class ISqueezeLayer : public ILayer {};
class IUnsqueezeLayer : public ILayer {};

class ICumulativeLayer : public ILayer {
public:
    bool setOperation(CumulativeOperation op) { return headrace::set(this, "op", op); }
    HEADRACE_GET(CumulativeOperation, getOperation, "op")
    HEADRACE_PROPERTY(bool, getExclusive, setExclusive, "exclusive")
    HEADRACE_PROPERTY(bool, getReverse, setReverse, "reverse")
};

class IDynamicQuantizeLayer : public ILayer {
public:
    HEADRACE_PROPERTY(int32_t, getAxis, setAxis, "axis")
    HEADRACE_PROPERTY(int32_t, getBlockSize, setBlockSize, "block_size")
    HEADRACE_PROPERTY(Dims, getBlockShape, setBlockShape, "block_shape")
    HEADRACE_PROPERTY(DataType, getToType, setToType, "to_type")
    HEADRACE_PROPERTY(DataType, getScaleType, setScaleType, "scale_type")
};

// getPlugin gives the network's copy of the plugin, which the network keeps.
class IPluginV2Layer : public ILayer {
public:
    IPluginV2 &getPlugin();
};

class IPluginV3Layer : public ILayer {
public:
    IPluginV3 &getPlugin();
};

class IPluginLayer : public ILayer {
public:
    IPlugin &getPlugin();
};

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_LAYERS_H
