// Expressions of shapes, which plugins make in the emulated program: trees that headrace reads.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "emulated/messages.h"
#include "headrace/host_abi.h"

// What a plugin is given for an expression or their builder; of kHost, a Handle of asking.h.
struct headrace_object {
    enum Kind : uint32_t { kNull, kAxis, kConstant, kOperation, kSize, kBuilder, kContext, kHost };
    Kind kind = kNull;
    int64_t number = 0;  // index of an axis that was given, constant, operation, output; of kHost
    const headrace_object *first = nullptr, *second = nullptr;
};

namespace headrace::emulated {

// The expressions of one call.
class Expressions {
public:
    Expressions() { all().clear(); }
    Expressions(const Expressions &) = delete;
    Expressions &operator=(const Expressions &) = delete;

    // Reads shapes: of each axis whether it is constant, and its number or its index.
    std::vector<headrace_exprs> read(Reader &from);
    headrace_object *builder();
    static void write(Body &to, const headrace_exprs &exprs);

    // Answers a method of an expression or the builder; whether there is such a method.
    static bool answer(const headrace_object *object, const char *method,
                       const headrace_value *arguments, int32_t count, headrace_value *result);

private:
    static headrace_object *add(const headrace_object &one);
    static std::deque<headrace_object> &all();  // of the call that runs: there is one at a time
};

}  // namespace headrace::emulated
