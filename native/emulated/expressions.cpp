#include "emulated/expressions.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace headrace::emulated {
namespace {

constexpr int kDeepest = 1000;

// The numbers of operations are those of DimensionOperation.
bool computed(int64_t operation, int64_t a, int64_t b, int64_t &out) {
    switch (operation) {
    case 0: out = static_cast<int64_t>(uint64_t(a) + uint64_t(b)); return true;
    case 1: out = static_cast<int64_t>(uint64_t(a) * uint64_t(b)); return true;
    case 2: out = std::max(a, b); return true;
    case 3: out = std::min(a, b); return true;
    case 4: out = static_cast<int64_t>(uint64_t(a) - uint64_t(b)); return true;
    case 5: out = a == b; return true;
    case 6: out = a < b; return true;
    case 7:
        if (!b || (b == -1 && a == INT64_MIN)) return false;
        out = a / b - (a % b && (a < 0) != (b < 0));
        return true;
    case 8:
        if (!b || (b == -1 && a == INT64_MIN)) return false;
        out = a / b + (a % b && (a < 0) == (b < 0));
        return true;
    default: return false;
    }
}

void write_one(Body &to, const headrace_object *one, int depth) {
    if (depth > kDeepest) throw std::runtime_error("an expression of a shape that does not end");
    to.add<uint32_t>(one ? one->kind : headrace_object::kNull);
    if (!one || one->kind == headrace_object::kNull) return;
    to.add<int64_t>(one->number);
    if (one->kind != headrace_object::kOperation && one->kind != headrace_object::kSize) return;
    write_one(to, one->first, depth + 1);
    write_one(to, one->second, depth + 1);
}

const headrace_object *given(const headrace_value &value) {
    return value.kind == HEADRACE_OBJECT ? static_cast<const headrace_object *>(value.data)
                                         : nullptr;
}

}  // namespace

std::deque<headrace_object> &Expressions::all() {
    static std::deque<headrace_object> one;
    return one;
}

headrace_object *Expressions::add(const headrace_object &one) {
    all().push_back(one);
    return &all().back();
}

std::vector<headrace_exprs> Expressions::read(Reader &from) {
    std::vector<headrace_exprs> out;
    for (auto count = from.take<uint32_t>(); count; --count) {
        headrace_exprs shape{};
        for (auto axes = from.take<uint32_t>(); axes; --axes) {
            const auto constant = from.take<uint32_t>();
            const auto number = from.take<int64_t>();
            if (shape.count == HEADRACE_MAX_AXES) throw std::runtime_error("too many axes");
            shape.axes[shape.count++] =
                add({constant ? headrace_object::kConstant : headrace_object::kAxis, number});
        }
        out.push_back(shape);
    }
    return out;
}

headrace_object *Expressions::builder() { return add({headrace_object::kBuilder}); }

void Expressions::write(Body &to, const headrace_exprs &exprs) {
    to.add<int32_t>(exprs.count);
    for (int32_t i = 0; i < exprs.count && i < HEADRACE_MAX_AXES; ++i)
        write_one(to, exprs.axes[i], 0);
}

bool Expressions::answer(const headrace_object *object, const char *method,
                         const headrace_value *arguments, int32_t count, headrace_value *result) {
    const std::string name = method;
    *result = {};
    const auto made = [&](const headrace_object &one) {
        result->kind = HEADRACE_OBJECT, result->data = add(one);
        return true;
    };
    const auto told = [&](int32_t kind, int64_t number) {
        result->kind = kind, result->number = number;
        return true;
    };
    if (object->kind == headrace_object::kContext) return told(HEADRACE_NONE, 0);
    if (object->kind != headrace_object::kBuilder) {
        const bool constant = object->kind == headrace_object::kConstant;
        if (name == "is_constant") return told(HEADRACE_BOOL, constant);
        if (name == "is_size_tensor")
            return told(HEADRACE_BOOL, object->kind == headrace_object::kSize);
        if (name == "get_constant_value")
            return told(HEADRACE_INT, constant ? object->number : INT32_MIN);
        return false;
    }
    if (name == "constant" && count == 1)
        return made({headrace_object::kConstant, arguments[0].number});
    if ((name != "operation" && name != "declare_size_tensor") || count != 3) return false;
    const headrace_object *a = given(arguments[1]), *b = given(arguments[2]);
    if (!a || !b) return false;
    if (name == "declare_size_tensor")
        return made({headrace_object::kSize, arguments[0].number, a, b});
    int64_t value = 0;
    if (a->kind == headrace_object::kConstant && b->kind == headrace_object::kConstant)
        return computed(arguments[0].number, a->number, b->number, value) &&
               made({headrace_object::kConstant, value});
    return made({headrace_object::kOperation, arguments[0].number, a, b});
}

}  // namespace headrace::emulated
