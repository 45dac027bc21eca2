#include "module.h"

namespace nb = nanobind;

void bind_cluster(nb::module_ &m) { (void)m; }
