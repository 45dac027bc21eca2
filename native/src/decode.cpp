#include "module.h"

namespace nb = nanobind;

void bind_decode(nb::module_ &m) { (void)m; }
