// What a run of a plugin is watched with: memory that says whether it was written to.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/unlocked.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::plugins {
namespace {

template <typename T>
void fill_as(std::uintptr_t at, std::size_t count, std::uint64_t pattern) {
    T *first = reinterpret_cast<T *>(at);
    std::fill(first, first + count, static_cast<T>(pattern));
}

template <typename T>
std::size_t count_as(std::uintptr_t at, std::size_t count, std::uint64_t pattern) {
    const T *first = reinterpret_cast<const T *>(at);
    const T sought = static_cast<T>(pattern);
    std::size_t alike = 0;
    constexpr std::size_t kBlock = 192;  // sums of a byte's width stay below 256
    for (std::size_t i = 0; i < count; i += kBlock) {
        const std::size_t end = std::min(count, i + kBlock);
        std::uint8_t few = 0;
        for (std::size_t k = i; k < end; ++k)
            few = static_cast<std::uint8_t>(few + (first[k] == sought));
        alike += few;
    }
    return alike;
}

void fill(std::uintptr_t at, std::size_t count, std::size_t item, std::uint64_t pattern) {
    const core::Unlocked unlocked(count * item > core::kFew);
    if (item == 1) return fill_as<std::uint8_t>(at, count, pattern);
    if (item == 2) return fill_as<std::uint16_t>(at, count, pattern);
    if (item == 4) return fill_as<std::uint32_t>(at, count, pattern);
    fill_as<std::uint64_t>(at, count * item / 8, pattern);
}

std::size_t count_alike(std::uintptr_t at, std::size_t count, std::size_t item,
                        std::uint64_t pattern) {
    const core::Unlocked unlocked(count * item > core::kFew);
    if (item == 1) return count_as<std::uint8_t>(at, count, pattern);
    if (item == 2) return count_as<std::uint16_t>(at, count, pattern);
    if (item == 4) return count_as<std::uint32_t>(at, count, pattern);
    return count_as<std::uint64_t>(at, count * item / 8, pattern);
}

// Four chains of multiplications: the memory is slower than they are.
std::uint64_t checksum(std::uintptr_t at, std::size_t bytes) {
    constexpr std::uint64_t kPrime = 0x100000001B3ULL;
    const core::Unlocked unlocked(bytes > core::kFew);
    const char *data = reinterpret_cast<const char *>(at);
    std::uint64_t sums[4] = {1, 2, 3, 4};
    std::size_t i = 0;
    for (; i + 32 <= bytes; i += 32) {
        std::uint64_t words[4];
        std::memcpy(words, data + i, 32);
        for (int k = 0; k < 4; ++k) sums[k] = (sums[k] ^ words[k]) * kPrime;
    }
    std::uint64_t sum = bytes;
    for (const std::uint64_t one : sums) sum = (sum ^ one ^ (one >> 29)) * kPrime;
    for (; i < bytes; ++i) sum = (sum ^ static_cast<unsigned char>(data[i])) * kPrime;
    return sum;
}

}  // namespace

void bind_watch(nb::module_ &m) {
    m.def("fill_elements", &fill, "address"_a, "count"_a, "item"_a, "pattern"_a,
          "Set `count` elements of `item` bytes at an address to a pattern of bits.");
    m.def("count_elements", &count_alike, "address"_a, "count"_a, "item"_a, "pattern"_a,
          "How many of the elements have that pattern of bits.");
    m.def("checksum", &checksum, "address"_a, "bytes"_a,
          "A number that changes when memory does; of no use outside of this process.");
}

}  // namespace headrace::plugins
