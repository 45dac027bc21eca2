// IExprBuilder and IDimensionExpr of a line, for the time of one call.
#pragma once

#include <deque>
#include <limits>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "foreign/host.h"
#include "foreign/values.h"

namespace headrace::foreign {

// In line 7 the class that a library knows is the object; from 8 on it holds a pointer to it.
template <typename L, bool thin = (L::number >= 8)>
struct ExprFaces {
    using Expr = typename L::VDimensionExpr;
    using Builder = typename L::VExprBuilder;
};
template <typename L>
struct ExprFaces<L, false> {
    using Expr = typename L::IDimensionExpr;
    using Builder = typename L::IExprBuilder;
};

template <typename L>
class Expressions {
    using Face = typename ExprFaces<L>::Expr;
    using BuilderFace = typename ExprFaces<L>::Builder;
    using Extent = std::remove_reference_t<decltype(L::Dims::d[0])>;

public:
    explicit Expressions(headrace_object *builder) : builder_(*this, builder) {}
    Expressions(const Expressions &) = delete;
    Expressions &operator=(const Expressions &) = delete;

    // What the library is given for the builder.
    void *builder() { return shown(builder_); }

    typename L::DimsExprs lend(const headrace_exprs &exprs) {
        typename L::DimsExprs out{};
        out.nbDims = exprs.count;
        for (int i = 0; i < exprs.count && i < HEADRACE_MAX_AXES; ++i)
            out.d[i] = add(exprs.axes[i]);
        return out;
    }
    std::vector<typename L::DimsExprs> lend(const headrace_exprs *exprs, int32_t n) {
        std::vector<typename L::DimsExprs> out;
        for (int32_t i = 0; i < n; ++i) out.push_back(lend(exprs[i]));
        return out;
    }
    // Throws std::invalid_argument if an expression is none of this call.
    headrace_exprs taken(const typename L::DimsExprs &exprs, const char *function) const {
        headrace_exprs out{};
        out.count = exprs.nbDims;
        for (int i = 0; i < exprs.nbDims && i < HEADRACE_MAX_AXES; ++i) {
            if (!exprs.d[i]) continue;
            const auto known = known_.find(exprs.d[i]);
            if (known == known_.end())
                throw std::invalid_argument(std::string(function) + " returned, for axis " +
                                            std::to_string(i) +
                                            ", an expression that is not of this call");
            out.axes[i] = known->second;
        }
        return out;
    }

private:
    struct Expr final : Face {
        headrace_object *object;
        typename L::Public face;
        explicit Expr(headrace_object *of) : object(of), face(static_cast<Face *>(this)) {}
        bool isConstant() override {
            const headrace_value v = call(object, "is_constant", {});
            return v.kind == HEADRACE_BOOL && v.number;
        }
        Extent getConstantValue() override {
            if (!isConstant()) return std::numeric_limits<Extent>::min();
            return static_cast<Extent>(call(object, "get_constant_value", {}).number);
        }
        // of lines 10 and 11; in others nothing asks for it
        virtual bool isSizeTensor() {
            const headrace_value v = call(object, "is_size_tensor", {});
            return v.kind == HEADRACE_BOOL && v.number;
        }
    };

    struct Builder final : BuilderFace {
        Expressions &all;
        headrace_object *object;
        typename L::Public face;
        Builder(Expressions &all, headrace_object *of)
            : all(all), object(of), face(static_cast<BuilderFace *>(this)) {}
        const void *constant(Extent value) override {
            return all.made(call(object, "constant", {number(value)}));
        }
        const void *operation(int op, const void *first, const void *second) override {
            headrace_object *a = all.find(first), *b = all.find(second);
            if (!a || !b) return nullptr;
            return all.made(call(
                object, "operation",
                {enumerator("DimensionOperation", op), foreign::object(a), foreign::object(b)}));
        }
        virtual const void *declareSizeTensor(int output, const void *optimum, const void *upper) {
            headrace_object *a = all.find(optimum), *b = all.find(upper);
            if (!a || !b) return nullptr;
            return all.made(call(object, "declare_size_tensor",
                                 {number(output), foreign::object(a), foreign::object(b)}));
        }
    };

    template <typename T>
    static void *shown(T &one) {
        if constexpr (L::number >= 8) return &one.face;
        return static_cast<void *>(&one);
    }

    const void *add(headrace_object *object) {
        exprs_.emplace_back(object);
        const void *const given = shown(exprs_.back());
        known_[given] = object;
        return given;
    }
    const void *made(const headrace_value &value) noexcept {
        headrace_object *const object = as_object(value);
        try {
            return object ? add(object) : nullptr;
        } catch (...) {
            return nullptr;
        }
    }
    headrace_object *find(const void *given) const noexcept {
        const auto known = known_.find(given);
        if (known != known_.end()) return known->second;
        fail("IExprBuilder", "it was given an expression that is not of this call");
        return nullptr;
    }

    std::deque<Expr> exprs_;
    std::unordered_map<const void *, headrace_object *> known_;
    Builder builder_;
};

}  // namespace headrace::foreign
