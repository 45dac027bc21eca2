#include "host/world.h"

#include <stdexcept>

namespace nb = nanobind;

namespace headrace::hosting {
namespace {

nb::object &the_world() {
    static auto *one = new nb::object;  // outlives the interpreter
    return *one;
}

}  // namespace

nb::object world() {
    if (!the_world().is_valid()) throw std::runtime_error("the host is not set up");
    return the_world();
}

void set_world(nb::object object) { the_world() = std::move(object); }

bool python_is_there() {
#if defined(Py_LIMITED_API)  // has no function that tells an interpreter's end
    return Py_IsInitialized() && nb::is_alive();
#elif PY_VERSION_HEX >= 0x030D0000
    return Py_IsInitialized() && !Py_IsFinalizing();
#else
    return Py_IsInitialized() && !_Py_IsFinalizing();
#endif
}

void tell_failure(const char *what) noexcept {
    try {
        try {
            throw;
        } catch (nb::python_error &error) {
            world().attr("failed")(what, error.value());
        } catch (const std::exception &error) {
            const nb::object text = nb::steal(PyUnicode_DecodeUTF8(
                error.what(), static_cast<Py_ssize_t>(strlen(error.what())), "replace"));
            world().attr("failed")(what, text);
        }
    } catch (...) {
        PyErr_Clear();
    }
}

}  // namespace headrace::hosting
