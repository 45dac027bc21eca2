// Bindings of memory by address: what plugins are given are numbers.
#include <cstdint>

#include "core/array_view.h"
#include "module.h"

namespace nb = nanobind;

namespace headrace::core {
namespace {

std::uintptr_t address_of(nb::handle array) {
    ArrayView view;
    if (!view.open(array, PyBUF_ND)) throw nb::python_error();
    return view->len ? reinterpret_cast<std::uintptr_t>(view->buf) : 0;
}

}  // namespace

void bind_memory_view(nb::module_ &m) {
    m.def("address_of", &address_of, nb::arg("array"),
          nb::sig("def address_of(array: object) -> int"),
          "Where a dense, row-major array begins; 0 if it is empty. Anything else is a BufferError "
          "or ValueError.");
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

}  // namespace headrace::core
