// Python face of the host of C++ networks and plugins.
#include "host_foreign.h"
#include "module.h"

void bind_host(nanobind::module_ &m) {
    bind_host_foreign(m);
    bind_host_plugin_v2(m);
    bind_host_plugin_v3(m);
    bind_host_entry(m);
    bind_host_factory(m);
}
