// Binding of a view of memory by address: what plugins are given are numbers.
#include <cstdint>

#include "module.h"

namespace nb = nanobind;

void bind_memory_view(nb::module_ &m) {
    m.def(
        "memory_view",
        [](std::uintptr_t address, Py_ssize_t size, bool writable) {
            return nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char *>(address), size,
                                                     writable ? PyBUF_WRITE : PyBUF_READ));
        },
        nb::arg("address"), nb::arg("size"), nb::arg("writable"),
        nb::sig("def memory_view(address: int, size: int, writable: bool) -> memoryview"),
        "Bytes at an address, which must stay what they are as long as the view is used.");
}
