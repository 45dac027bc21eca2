#pragma once
#include <cstddef>

namespace headrace::plugins {

// Both are for signal handlers: they ask this thread alone, and take no memory.
bool runs_here();

// Says which call of a plugin runs, where an address is behind its memory, and what to do next.
void say_call(const void *address, void (*say)(const char *, std::size_t));

}  // namespace headrace::plugins
