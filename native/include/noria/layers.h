// The layers, each with what can be set on it after it was added.
//
// Part of noria, Apache-2.0. Valid C++11.
#ifndef NORIA_TRT_LAYERS_H
#define NORIA_TRT_LAYERS_H

#include "creators.h"
#include "tensor.h"

namespace nvinfer1 {

// Kernels that move over a picture: convolution, deconvolution and pooling have these in common.
#define NORIA_WINDOW                                                     \
    NORIA_PROPERTY(Dims, getPrePadding, setPrePadding, "pre_padding")    \
    NORIA_PROPERTY(Dims, getPostPadding, setPostPadding, "post_padding") \
    NORIA_PROPERTY(PaddingMode, getPaddingMode, setPaddingMode, "padding_mode") \
    NORIA_PROPERTY(Dims, getStrideNd, setStrideNd, "stride_nd")          \
    NORIA_PROPERTY(Dims, getPaddingNd, setPaddingNd, "padding_nd")       \
    void setStride(DimsHW value) { noria::set(this, "stride_nd", value); }   \
    void setPadding(DimsHW value) { noria::set(this, "padding_nd", value); } \
    DimsHW getStride() const { return twoOf("stride_nd"); }              \
    DimsHW getPadding() const { return twoOf("padding_nd"); }            \
                                                                         \
private:                                                                 \
    DimsHW twoOf(const char *name) const {                               \
        const Dims all = noria::get<Dims>(this, name);                   \
        return DimsHW(all.d[0], all.d[1]);                               \
    }                                                                    \
                                                                         \
public:

class IConvolutionLayer : public ILayer {
public:
    NORIA_WINDOW
    NORIA_PROPERTY(Dims, getKernelSizeNd, setKernelSizeNd, "kernel_size_nd")
    void setKernelSize(DimsHW value) { setKernelSizeNd(value); }
    NORIA_PROPERTY(int64_t, getNbOutputMaps, setNbOutputMaps, "num_output_maps")
    NORIA_PROPERTY(int64_t, getNbGroups, setNbGroups, "num_groups")
    NORIA_PROPERTY(Dims, getDilationNd, setDilationNd, "dilation_nd")
    void setDilation(DimsHW value) { setDilationNd(value); }
    NORIA_SET(Weights, setKernelWeights, "kernel")
    NORIA_SET(Weights, setBiasWeights, "bias")
};

class IDeconvolutionLayer : public ILayer {
public:
    NORIA_WINDOW
    NORIA_PROPERTY(Dims, getKernelSizeNd, setKernelSizeNd, "kernel_size_nd")
    void setKernelSize(DimsHW value) { setKernelSizeNd(value); }
    NORIA_PROPERTY(int64_t, getNbOutputMaps, setNbOutputMaps, "num_output_maps")
    NORIA_PROPERTY(int64_t, getNbGroups, setNbGroups, "num_groups")
    NORIA_PROPERTY(Dims, getDilationNd, setDilationNd, "dilation_nd")
    NORIA_SET(Weights, setKernelWeights, "kernel")
    NORIA_SET(Weights, setBiasWeights, "bias")
};

class IPoolingLayer : public ILayer {
public:
    NORIA_WINDOW
    NORIA_PROPERTY(PoolingType, getPoolingType, setPoolingType, "type")
    NORIA_PROPERTY(Dims, getWindowSizeNd, setWindowSizeNd, "window_size_nd")
    void setWindowSize(DimsHW value) { setWindowSizeNd(value); }
    NORIA_PROPERTY(float, getBlendFactor, setBlendFactor, "blend_factor")
    NORIA_PROPERTY(bool, getAverageCountExcludesPadding, setAverageCountExcludesPadding,
                   "average_count_excludes_padding")
};
#undef NORIA_WINDOW

class IFullyConnectedLayer : public ILayer {
public:
    NORIA_PROPERTY(int32_t, getNbOutputChannels, setNbOutputChannels, "num_output_channels")
    NORIA_SET(Weights, setKernelWeights, "kernel")
    NORIA_SET(Weights, setBiasWeights, "bias")
};

class IActivationLayer : public ILayer {
public:
    NORIA_PROPERTY(ActivationType, getActivationType, setActivationType, "type")
    NORIA_PROPERTY(float, getAlpha, setAlpha, "alpha")
    NORIA_PROPERTY(float, getBeta, setBeta, "beta")
};

class ILRNLayer : public ILayer {
public:
    NORIA_PROPERTY(int64_t, getWindowSize, setWindowSize, "window_size")
    NORIA_PROPERTY(float, getAlpha, setAlpha, "alpha")
    NORIA_PROPERTY(float, getBeta, setBeta, "beta")
    NORIA_PROPERTY(float, getK, setK, "k")
};

class IScaleLayer : public ILayer {
public:
    NORIA_PROPERTY(ScaleMode, getMode, setMode, "mode")
    NORIA_SET(Weights, setShift, "shift")
    NORIA_SET(Weights, setScale, "scale")
    NORIA_SET(Weights, setPower, "power")
    NORIA_PROPERTY(int32_t, getChannelAxis, setChannelAxis, "channel_axis")
};

class ISoftMaxLayer : public ILayer {
public:
    NORIA_PROPERTY(uint32_t, getAxes, setAxes, "axes")
};

class IConcatenationLayer : public ILayer {
public:
    NORIA_PROPERTY(int32_t, getAxis, setAxis, "axis")
};

class IElementWiseLayer : public ILayer {
public:
    NORIA_PROPERTY(ElementWiseOperation, getOperation, setOperation, "op")
};

class IUnaryLayer : public ILayer {
public:
    NORIA_PROPERTY(UnaryOperation, getOperation, setOperation, "op")
};

class IReduceLayer : public ILayer {
public:
    NORIA_PROPERTY(ReduceOperation, getOperation, setOperation, "op")
    NORIA_PROPERTY(uint32_t, getReduceAxes, setReduceAxes, "axes")
    NORIA_PROPERTY(bool, getKeepDimensions, setKeepDimensions, "keep_dims")
};

class IPaddingLayer : public ILayer {
public:
    NORIA_PROPERTY(Dims, getPrePaddingNd, setPrePaddingNd, "pre_padding_nd")
    NORIA_PROPERTY(Dims, getPostPaddingNd, setPostPaddingNd, "post_padding_nd")
};

class IShuffleLayer : public ILayer {
public:
    NORIA_PROPERTY(Dims, getReshapeDimensions, setReshapeDimensions, "reshape_dims")
    void setFirstTranspose(Permutation order) { noria::set(this, "first_transpose", order); }
    void setSecondTranspose(Permutation order) { noria::set(this, "second_transpose", order); }
    Permutation getFirstTranspose() const { return order("first_transpose"); }
    Permutation getSecondTranspose() const { return order("second_transpose"); }
    NORIA_PROPERTY(bool, getZeroIsPlaceholder, setZeroIsPlaceholder, "zero_is_placeholder")

private:
    Permutation order(const char *name) const {
        const Dims axes = noria::get<Dims>(this, name);
        Permutation out = {};
        for (int i = 0; i < axes.nbDims && i < Dims::MAX_DIMS; ++i)
            out.order[i] = static_cast<int32_t>(axes.d[i]);
        return out;
    }
};

class ISliceLayer : public ILayer {
public:
    NORIA_PROPERTY(Dims, getStart, setStart, "start")
    NORIA_PROPERTY(Dims, getSize, setSize, "shape")
    NORIA_PROPERTY(Dims, getStride, setStride, "stride")
    NORIA_PROPERTY(SampleMode, getMode, setMode, "mode")
    NORIA_PROPERTY(Dims, getAxes, setAxes, "axes")
};

class ITopKLayer : public ILayer {
public:
    NORIA_PROPERTY(TopKOperation, getOperation, setOperation, "op")
    NORIA_PROPERTY(int32_t, getK, setK, "k")
    NORIA_PROPERTY(uint32_t, getReduceAxes, setReduceAxes, "axes")
};

class IGatherLayer : public ILayer {
public:
    NORIA_PROPERTY(int32_t, getGatherAxis, setGatherAxis, "axis")
    NORIA_PROPERTY(int32_t, getNbElementWiseDims, setNbElementWiseDims, "num_elementwise_dims")
    NORIA_PROPERTY(GatherMode, getMode, setMode, "mode")
};

class IScatterLayer : public ILayer {
public:
    NORIA_PROPERTY(ScatterMode, getMode, setMode, "mode")
    NORIA_PROPERTY(int32_t, getAxis, setAxis, "axis")
};

class IMatrixMultiplyLayer : public ILayer {
public:
    void setOperation(int32_t index, MatrixOperation op) {
        noria::set(this, index == 0 ? "op0" : "op1", op);
    }
    MatrixOperation getOperation(int32_t index) const {
        return noria::get<MatrixOperation>(this, index == 0 ? "op0" : "op1");
    }
    void setTranspose(int32_t index, bool value) {
        setOperation(index, value ? MatrixOperation::kTRANSPOSE : MatrixOperation::kNONE);
    }
};

class IResizeLayer : public ILayer {
public:
    NORIA_PROPERTY(Dims, getOutputDimensions, setOutputDimensions, "shape")
    void setScales(const float *scales, int32_t nbScales) {
        noria::set(this, "scales", noria::Value::reals(scales, nbScales));
    }
    NORIA_PROPERTY(InterpolationMode, getResizeMode, setResizeMode, "resize_mode")
    void setAlignCorners(bool value) {
        setCoordinateTransformation(value ? ResizeCoordinateTransformation::kALIGN_CORNERS
                                          : ResizeCoordinateTransformation::kASYMMETRIC);
    }
    NORIA_PROPERTY(ResizeCoordinateTransformation, getCoordinateTransformation,
                   setCoordinateTransformation, "coordinate_transformation")
    NORIA_PROPERTY(ResizeSelector, getSelectorForSinglePixel, setSelectorForSinglePixel,
                   "selector_for_single_pixel")
    NORIA_PROPERTY(ResizeRoundMode, getNearestRounding, setNearestRounding, "nearest_rounding")
    NORIA_PROPERTY(float, getCubicCoeff, setCubicCoeff, "cubic_coeff")
    NORIA_PROPERTY(bool, getExcludeOutside, setExcludeOutside, "exclude_outside")
};

class IConstantLayer : public ILayer {
public:
    NORIA_PROPERTY(Dims, getDimensions, setDimensions, "shape")
    NORIA_SET(Weights, setWeights, "weights")
};

class IFillLayer : public ILayer {
public:
    NORIA_PROPERTY(Dims, getDimensions, setDimensions, "shape")
    NORIA_PROPERTY(FillOperation, getOperation, setOperation, "operation")
    NORIA_PROPERTY(double, getAlpha, setAlpha, "alpha")
    NORIA_PROPERTY(double, getBeta, setBeta, "beta")
};

class IQuantizeLayer : public ILayer {
public:
    NORIA_PROPERTY(int32_t, getAxis, setAxis, "axis")
    NORIA_PROPERTY(DataType, getToType, setToType, "to_type")
};

class IDequantizeLayer : public ILayer {
public:
    NORIA_PROPERTY(int32_t, getAxis, setAxis, "axis")
    NORIA_PROPERTY(DataType, getToType, setToType, "to_type")
};

class ICastLayer : public ILayer {
public:
    NORIA_PROPERTY(DataType, getToType, setToType, "to_type")
};

class INMSLayer : public ILayer {
public:
    NORIA_PROPERTY(BoundingBoxFormat, getBoundingBoxFormat, setBoundingBoxFormat,
                   "bounding_box_format")
    NORIA_PROPERTY(int32_t, getTopKBoxLimit, setTopKBoxLimit, "topk_box_limit")
};

class IGridSampleLayer : public ILayer {
public:
    NORIA_PROPERTY(InterpolationMode, getInterpolationMode, setInterpolationMode,
                   "interpolation_mode")
    NORIA_PROPERTY(bool, getAlignCorners, setAlignCorners, "align_corners")
    NORIA_PROPERTY(SampleMode, getSampleMode, setSampleMode, "sample_mode")
};

class INormalizationLayer : public ILayer {
public:
    NORIA_PROPERTY(float, getEpsilon, setEpsilon, "epsilon")
    NORIA_PROPERTY(uint32_t, getAxes, setAxes, "axes")
    NORIA_PROPERTY(int64_t, getNbGroups, setNbGroups, "num_groups")
};

class IEinsumLayer : public ILayer {
public:
    void setEquation(const char *text) { noria::set(this, "equation", text); }
    NORIA_GET(const char *, getEquation, "equation")
};

class IOneHotLayer : public ILayer {
public:
    NORIA_PROPERTY(int32_t, getAxis, setAxis, "axis")
};

class IAssertionLayer : public ILayer {
public:
    void setMessage(const char *text) { noria::set(this, "message", text); }
    NORIA_GET(const char *, getMessage, "message")
};

class IReverseSequenceLayer : public ILayer {
public:
    NORIA_PROPERTY(int32_t, getBatchAxis, setBatchAxis, "batch_axis")
    NORIA_PROPERTY(int32_t, getSequenceAxis, setSequenceAxis, "sequence_axis")
};

class IIdentityLayer : public ILayer {};
class IShapeLayer : public ILayer {};
class ISelectLayer : public ILayer {};
class INonZeroLayer : public ILayer {};
class IParametricReLULayer : public ILayer {};
class IRaggedSoftMaxLayer : public ILayer {};
class IPluginV3Layer : public ILayer {};
class IPluginLayer : public ILayer {};

// The network keeps a copy of the plugin that it was given; it is not to be had back.
class IPluginV2Layer : public ILayer {
public:
    IPluginV2 &getPlugin() = delete;
};

}  // namespace nvinfer1

#endif  // NORIA_TRT_LAYERS_H
