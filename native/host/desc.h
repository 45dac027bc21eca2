// Shapes and descriptors of plugins, from Python's classes and back.
#pragma once
#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "host/object.h"

namespace headrace::hosting {

headrace_dims dims_of(nanobind::handle axes);
nanobind::tuple dims_to_python(const headrace_dims &dims);

// PluginTensorDesc or DynamicPluginTensorDesc objects.
std::vector<headrace_desc> descs_of(nanobind::handle descs);
std::vector<headrace_dims> all_dims_of(nanobind::handle shapes);
std::vector<int32_t> ints_of(nanobind::handle values);
std::vector<uint8_t> bools_of(nanobind::handle values);
std::vector<void *> addresses_of(nanobind::handle values);

// Expressions as handles, for the time of one call.
class LentExprs {
public:
    LentExprs() : mark_(headrace_object::count()) {}
    ~LentExprs() { headrace_object::forget(mark_); }
    LentExprs(const LentExprs &) = delete;
    LentExprs &operator=(const LentExprs &) = delete;

    std::vector<headrace_exprs> lend(nanobind::handle all);
    headrace_object *lend_one(nanobind::handle object) { return headrace_object::of(object); }
    // None where a library left an axis out.
    static nanobind::list taken(const headrace_exprs &exprs);

private:
    uint64_t mark_;
};

// Text of a library; null is None.
nanobind::object text_or_none(const char *text);

}  // namespace headrace::hosting
