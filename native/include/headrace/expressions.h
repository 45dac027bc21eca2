// Symbolic shapes: what plugins compute their outputs' dimensions with.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_EXPRESSIONS_H
#define HEADRACE_TRT_EXPRESSIONS_H

#include "host_call.h"

namespace nvinfer1 {

class IDimensionExpr : public headrace::Object {
public:
    bool isConstant() const { return headrace::call<bool>(this, "is_constant"); }
    // INT_MIN (INT64_MIN from 10 on) where it is not constant.
    HeadraceExtent getConstantValue() const {
        if (!isConstant())
            return static_cast<HeadraceExtent>(sizeof(HeadraceExtent) == 8 ? INT64_MIN : INT32_MIN);
        return headrace::call<HeadraceExtent>(this, "get_constant_value");
    }
    bool isSizeTensor() const { return headrace::call<bool>(this, "is_size_tensor"); }

private:
    IDimensionExpr() = delete;
};

class IExprBuilder : public headrace::Object {
public:
    const IDimensionExpr *constant(HeadraceExtent value) {
        return headrace::call<IDimensionExpr *>(this, "constant", {static_cast<long long>(value)});
    }
    const IDimensionExpr *operation(DimensionOperation op, const IDimensionExpr &first,
                                    const IDimensionExpr &second) {
        return headrace::call<IDimensionExpr *>(this, "operation", {op, first, second});
    }
    const IDimensionExpr *declareSizeTensor(int32_t outputIndex, const IDimensionExpr &opt,
                                            const IDimensionExpr &upper) {
        return headrace::call<IDimensionExpr *>(this, "declare_size_tensor",
                                                {outputIndex, opt, upper});
    }

private:
    IExprBuilder() = delete;
};

class DimsExprs {
public:
    int32_t nbDims;
    const IDimensionExpr *d[Dims::MAX_DIMS];
};

}  // namespace nvinfer1

namespace headrace {
inline namespace HEADRACE_GENERATION {

inline nvinfer1::DimsExprs fromHost(const headrace_exprs &exprs) {
    nvinfer1::DimsExprs out = {};
    out.nbDims = exprs.count;
    for (int i = 0; i < exprs.count && i < HEADRACE_MAX_AXES; ++i)
        out.d[i] = reinterpret_cast<const nvinfer1::IDimensionExpr *>(exprs.axes[i]);
    return out;
}

inline headrace_exprs toHost(const nvinfer1::DimsExprs &exprs) {
    headrace_exprs out = {};
    out.count = exprs.nbDims;
    for (int i = 0; i < exprs.nbDims && i < HEADRACE_MAX_AXES; ++i)
        out.axes[i] = exprs.d[i] ? exprs.d[i]->headraceObject() : nullptr;
    return out;
}

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

#endif  // HEADRACE_TRT_EXPRESSIONS_H
