#include "module.h"

namespace nb = nanobind;

void bind_preprocess(nb::module_ &m) { (void)m; }
