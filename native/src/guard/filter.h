// The filter of system calls: see guard/filter.cpp.
#pragma once

namespace headrace::guard {

// Whether there is a filter for this processor.
bool can_filter();

// Refuses calls, in this process and for good, and in all that it starts: the network, other
// processes, the kernel's own affairs. With `gpu` a driver of NVIDIA works on: unix sockets can be
// made, bound and listened at, but not connected, and any request goes to devices; without
// `shortens` files are not shortened by name, either. False: errno.
bool filter_calls(bool gpu, bool shortens);

}  // namespace headrace::guard
