// Operators that CUB had until CUDA 13, for kernels that were written before; nvcc includes it
// first. Part of headrace, Apache-2.0. Valid C++17.
#ifndef HEADRACE_CUB_NAMES_H
#define HEADRACE_CUB_NAMES_H

#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ >= 13
namespace cub {
struct Sum {
    template <typename T, typename U>
    __host__ __device__ auto operator()(const T &a, const U &b) const -> decltype(a + b) {
        return a + b;
    }
};
struct Max {
    template <typename T>
    __host__ __device__ T operator()(const T &a, const T &b) const {
        return a < b ? b : a;
    }
};
struct Min {
    template <typename T>
    __host__ __device__ T operator()(const T &a, const T &b) const {
        return b < a ? b : a;
    }
};
}  // namespace cub
#endif

#endif  // HEADRACE_CUB_NAMES_H
