// What a process that runs a user's library gives up before it loads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Gives up, in this process and for good: new privileges, core files, address space beyond
// `memory_bytes` more than now (0: no limit), sockets to others, and signals to other processes.
// Its parent's death ends it. Returns what could not be done, in words; never throws.
// With `gpu` a driver of NVIDIA works in it: unix sockets can be made, bound and listened at, but
// not connected, and the limit is one of private writable memory, not of addresses, of which CUDA
// reserves as many as both memories have.
std::vector<std::string> guard_sandbox(uint64_t memory_bytes, bool gpu);
