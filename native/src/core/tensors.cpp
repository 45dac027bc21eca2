// Bindings of tensors lent and borrowed by DLPack. Their memory is never looked at: it may be a GPU's.
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
    nb::ndarray<nb::ro> array;

    template <typename Get>
    std::vector<std::int64_t> of_axes(Get get) const {
        std::vector<std::int64_t> values(array.ndim());
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = get(i);
        return values;
    }
};

nb::ndarray<> dlpack_capsule(std::uintptr_t address, const std::vector<std::size_t> &shape,
                          const std::optional<std::vector<std::int64_t>> &strides, std::uint8_t code,
                          std::uint8_t bits, nb::handle owner, int device, int number) {
    return nb::ndarray<>(reinterpret_cast<void *>(address), shape.size(), shape.data(), owner,
                         strides ? strides->data() : nullptr, nb::dlpack::dtype{code, bits, 1}, device,
                         number, 'C');
}

}  // namespace

void bind_tensors(nb::module_ &m) {
    m.def("dlpack_capsule", &dlpack_capsule, nb::arg("address"), nb::arg("shape"), nb::arg("strides").none(),
          nb::arg("code"), nb::arg("bits"), nb::arg("owner"), nb::arg("device"), nb::arg("number"),
          nb::rv_policy::reference, nb::sig("def dlpack_capsule(address: int, shape: Sequence[int], strides: Sequence[int] | None, "
                  "code: int, bits: int, owner: object, device: int, number: int) -> object"),
          "A DLPack capsule over memory that `owner` keeps; strides count elements, None is row-major.");
    nb::class_<BorrowedTensor>(m, "BorrowedTensor", "A tensor taken from a DLPack capsule, held with it.")
        .def("__init__",
             [](BorrowedTensor *self, nb::ndarray<nb::ro> array) {
                 new (self) BorrowedTensor{std::move(array)};
             },
             nb::arg("capsule"), nb::sig("def __init__(self, capsule: object) -> None"))
        .def_prop_ro("address",
                     [](const BorrowedTensor &t) { return reinterpret_cast<std::uintptr_t>(t.array.data()); })
        .def_prop_ro("shape",
                     [](const BorrowedTensor &t) {
                         return t.of_axes([&](std::size_t i) { return t.array.shape(i); });
                     })
        .def_prop_ro("strides", [](const BorrowedTensor &t) {
                         return t.of_axes([&](std::size_t i) { return t.array.stride(i); });
                     },
                     "In elements.")
        .def_prop_ro("dtype", [](const BorrowedTensor &t) {
                         const nb::dlpack::dtype type = t.array.dtype();
                         return nb::make_tuple(type.code, type.bits, type.lanes);
                     },
                     nb::sig("def dtype(self) -> tuple[int, int, int]"),
                     "DLPack's code, bits and lanes.");
}

}  // namespace headrace::core
