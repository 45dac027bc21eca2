#include "module.h"

namespace nb = nanobind;

void bind_custom_library(nb::module_ &m) { (void)m; }
