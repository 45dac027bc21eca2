// Arrays of NumPy's own that a function makes.
#pragma once
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace headrace::core {

// Memory for the arrays of one result, not yet filled, one after the other, each from a multiple of
// 64 bytes on: with few rows, making memory and an owner for each array would take longer than
// filling them.
class ArrayBlock {
public:
    // All functions need the GIL, but those that only look where something is.
    explicit ArrayBlock(std::size_t bytes);

    static std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
    char *start() const { return PyByteArray_AsString(owner_.ptr()); }

    // The next array's memory, with room for `count` of them.
    template <typename T>
    T *room(std::size_t count) {
        T *at = reinterpret_cast<T *>(start() + used_);
        used_ += rounded(count * sizeof(T));
        return at;
    }

    // Arrays over parts of the memory, which they keep alive.
    using Shape = std::initializer_list<std::size_t>;
    nanobind::object array(float *data, Shape shape) const;
    nanobind::object array(std::int32_t *data, Shape shape) const;
    nanobind::object array(std::uint8_t *data, Shape shape) const;

private:
    nanobind::object array(void *data, int type, Shape shape) const;

    nanobind::object owner_;
    std::size_t used_ = 0;
};

}  // namespace headrace::core
