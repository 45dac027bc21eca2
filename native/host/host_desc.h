// Shapes and descriptors of plugins, from Python's classes and back.
#pragma once
#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "host_object.h"

noria_dims dims_of(nanobind::handle axes);
nanobind::tuple dims_to_python(const noria_dims &dims);

// PluginTensorDesc or DynamicPluginTensorDesc objects.
std::vector<noria_desc> descs_of(nanobind::handle descs);
std::vector<noria_dims> all_dims_of(nanobind::handle shapes);
std::vector<int32_t> ints_of(nanobind::handle values);
std::vector<uint8_t> bools_of(nanobind::handle values);
std::vector<void *> addresses_of(nanobind::handle values);

// Expressions as handles, for the time of one call.
class LentExprs {
public:
    LentExprs() : mark_(noria_object::count()) {}
    ~LentExprs() { noria_object::forget(mark_); }
    LentExprs(const LentExprs &) = delete;
    LentExprs &operator=(const LentExprs &) = delete;

    std::vector<noria_exprs> lend(nanobind::handle all);
    noria_object *lend_one(nanobind::handle object) { return noria_object::of(object); }
    // None where a library left an axis out.
    static nanobind::list taken(const noria_exprs &exprs);

private:
    uint64_t mark_;
};

// Text of a library; null is None.
nanobind::object text_or_none(const char *text);
