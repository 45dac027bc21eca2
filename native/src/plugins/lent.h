#pragma once
#include <cstddef>

namespace headrace::plugins {

// For signal handlers: they take no memory. Whether a plugin runs in this thread, or in any.
bool runs_here();
bool runs_anywhere();

// Says which call of a plugin runs, where an address is behind its memory, and what to do next.
void say_call(const void *address, void (*say)(const char *, std::size_t));

}  // namespace headrace::plugins
