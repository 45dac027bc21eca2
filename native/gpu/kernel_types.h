#pragma once
// What a kernel needs of <cstdint>, and how its functions are compiled: by NVRTC for the GPU, by
// C++ in tests, which include <cstdint> before.
#ifdef __CUDACC_RTC__
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
#define HEADRACE_TARGET __device__
#else
#define HEADRACE_TARGET
#endif
