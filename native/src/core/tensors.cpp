// Bindings of tensors lent and borrowed by DLPack. Their memory is never looked at: it may be a
// GPU's.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "module.h"

namespace nb = nanobind;

namespace headrace::core {
namespace {

struct BorrowedTensor {
    explicit BorrowedTensor(nb::ndarray<nb::ro> tensor)
        : address(reinterpret_cast<std::uintptr_t>(tensor.data())),
          shape(tensor.shape_ptr(), tensor.shape_ptr() + tensor.ndim()),
          strides(tensor.stride_ptr(), tensor.stride_ptr() + tensor.ndim()),
          code(tensor.dtype().code),
          bits(tensor.dtype().bits),
          lanes(tensor.dtype().lanes),
          held(std::move(tensor)) {}

    std::uintptr_t address;
    std::vector<std::int64_t> shape, strides;
    int code, bits, lanes;
    nb::ndarray<nb::ro> held;
};

nb::ndarray<> dlpack_capsule(std::uintptr_t address, const std::vector<std::size_t> &shape,
                             const std::optional<std::vector<std::int64_t>> &strides,
                             std::uint8_t code, std::uint8_t bits, nb::handle owner, int device,
                             int number) {
    return nb::ndarray<>(reinterpret_cast<void *>(address), shape.size(), shape.data(), owner,
                         strides ? strides->data() : nullptr, nb::dlpack::dtype{code, bits, 1},
                         device, number, 'C');
}

}  // namespace

void bind_tensors(nb::module_ &m) {
    m.def(
        "dlpack_capsule", &dlpack_capsule, nb::arg("address"), nb::arg("shape"),
        nb::arg("strides").none(), nb::arg("code"), nb::arg("bits"), nb::arg("owner"),
        nb::arg("device"), nb::arg("number"), nb::rv_policy::reference,
        nb::sig(
            "def dlpack_capsule(address: int, shape: Sequence[int], strides: Sequence[int] | None, "
            "code: int, bits: int, owner: object, device: int, number: int) -> object"),
        "A DLPack capsule over memory that `owner` keeps; strides count elements, None is "
        "row-major.");
    nb::class_<BorrowedTensor>(m, "BorrowedTensor",
                               "A tensor taken from a DLPack capsule, held with it.")
        .def(nb::init<nb::ndarray<nb::ro>>(), nb::arg("capsule"),
             nb::sig("def __init__(self, capsule: object) -> None"))
        .def_ro("address", &BorrowedTensor::address)
        .def_ro("shape", &BorrowedTensor::shape)
        .def_ro("strides", &BorrowedTensor::strides, "In elements.")
        .def_ro("code", &BorrowedTensor::code)
        .def_ro("bits", &BorrowedTensor::bits)
        .def_ro("lanes", &BorrowedTensor::lanes);
}

}  // namespace headrace::core
