// Python face of what a worker writes about its own end.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include "guard/crash.h"
#include "module.h"

namespace headrace::guard {

void bind_crash(nanobind::module_ &m) {
    using namespace nanobind::literals;
    m.def("guard_report_to", &report_to, "fd"_a, "hang_signal"_a,
          "Report fatal signals, std::terminate and exit of this process to a file descriptor.");
    m.def("guard_report", &report_of, "(file of reports or -1, signal that asks for one).");
    m.def("guard_end_as", &end_as, "code"_a,
          "End this process as another one ended: exit status, or a signal's number, negative.");
    m.def("guard_set_function", &set_function, "name"_a, "What is called from now on.");
    m.def("guard_give_up", &give_up, "function"_a, "why"_a,
          "End this process, in which a function has left the GPU unusable.");
    m.def(
        "guard_set_region", &set_region, "slot"_a, "start"_a, "end"_a, "name"_a, "file"_a = -1,
        "offset"_a = 0,
        "Name memory that a protected page follows; memory of a file can only be read, and becomes "
        "a copy of its own when it is written to. `offset`: of the page that `start` is in.");
    m.def("guard_take_back", &take_back_all,
          "Share again what became a copy; whether anything had.");
}

}  // namespace headrace::guard
