// NumPy arrays as the layers of a custom library's function.
#pragma once
#include <nanobind/nanobind.h>

#include <vector>

#include "array_view.h"
#include "custom_library_function.h"

// Keeps the arrays of one call alive while the function's layers point into them: dense ones that can
// be written to, as parsers may decode in place.
class BoundTensors {
public:
    // Throws std::invalid_argument if set_layers was called for another number of tensors.
    BoundTensors(CustomFunction &function, const nanobind::list &tensors,
                 const std::vector<int> &data_types);

private:
    ArrayViews held_;
};

// Binders of the parts, called by bind_custom_library.
void bind_custom_library_detector(nanobind::module_ &m);
void bind_custom_library_items(nanobind::module_ &m);
