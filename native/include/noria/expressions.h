// Symbolic shapes: what plugins compute their outputs' dimensions with.
//
// Part of noria, Apache-2.0. Valid C++11.
#ifndef NORIA_TRT_EXPRESSIONS_H
#define NORIA_TRT_EXPRESSIONS_H

#include "host_call.h"

namespace nvinfer1 {

class IDimensionExpr : public noria::Object {
public:
    bool isConstant() const { return noria::call<bool>(this, "is_constant"); }
    // INT_MIN (INT64_MIN from 10 on) where it is not constant.
    NoriaExtent getConstantValue() const {
        if (!isConstant())
            return static_cast<NoriaExtent>(sizeof(NoriaExtent) == 8 ? INT64_MIN : INT32_MIN);
        return noria::call<NoriaExtent>(this, "get_constant_value");
    }
    bool isSizeTensor() const { return noria::call<bool>(this, "is_size_tensor"); }

private:
    IDimensionExpr() = delete;
};

class IExprBuilder : public noria::Object {
public:
    const IDimensionExpr *constant(NoriaExtent value) {
        return noria::call<IDimensionExpr *>(this, "constant", {static_cast<long long>(value)});
    }
    const IDimensionExpr *operation(DimensionOperation op, const IDimensionExpr &first,
                                    const IDimensionExpr &second) {
        return noria::call<IDimensionExpr *>(this, "operation", {op, first, second});
    }
    const IDimensionExpr *declareSizeTensor(int32_t outputIndex, const IDimensionExpr &opt,
                                            const IDimensionExpr &upper) {
        return noria::call<IDimensionExpr *>(this, "declare_size_tensor",
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

namespace noria {
inline namespace NORIA_GENERATION {

inline nvinfer1::DimsExprs fromHost(const noria_exprs &exprs) {
    nvinfer1::DimsExprs out = {};
    out.nbDims = exprs.count;
    for (int i = 0; i < exprs.count && i < NORIA_MAX_AXES; ++i)
        out.d[i] = reinterpret_cast<const nvinfer1::IDimensionExpr *>(exprs.axes[i]);
    return out;
}

inline noria_exprs toHost(const nvinfer1::DimsExprs &exprs) {
    noria_exprs out = {};
    out.count = exprs.nbDims;
    for (int i = 0; i < exprs.nbDims && i < NORIA_MAX_AXES; ++i)
        out.axes[i] = exprs.d[i] ? exprs.d[i]->noriaObject() : nullptr;
    return out;
}

}  // namespace NORIA_GENERATION
}  // namespace noria

#endif  // NORIA_TRT_EXPRESSIONS_H
