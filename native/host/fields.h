// Fields of plugins, where they are plain memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace headrace::hosting {

// Bytes of the elements of a field; 0 where the type does not say.
inline size_t field_bytes(int32_t type, int32_t length) {
    constexpr size_t kBits[] = {16, 32, 64, 8, 16, 32, 8, 0, 8, 16, 64, 8, 4, 4};
    if (length <= 0 || type < 0 || type >= static_cast<int32_t>(std::size(kBits))) return 0;
    return (static_cast<size_t>(length) * kBits[type] + 7) / 8;
}

}  // namespace headrace::hosting
