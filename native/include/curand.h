/* Types and functions of cuRAND that plugins name. Its series of numbers are not made on the host:
 * each call is named and fails. Part of headrace, Apache-2.0. Valid C++11.
 */
#ifndef HEADRACE_CURAND_H
#define HEADRACE_CURAND_H

#include <cuda_runtime_api.h>
#include <library_types.h>

#define CURAND_H_ /* sources ask by it whether they may name the types */

typedef enum curandStatus {
    CURAND_STATUS_SUCCESS = 0,
    CURAND_STATUS_VERSION_MISMATCH = 100,
    CURAND_STATUS_NOT_INITIALIZED = 101,
    CURAND_STATUS_ALLOCATION_FAILED = 102,
    CURAND_STATUS_TYPE_ERROR = 103,
    CURAND_STATUS_OUT_OF_RANGE = 104,
    CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
    CURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
    CURAND_STATUS_LAUNCH_FAILURE = 201,
    CURAND_STATUS_PREEXISTING_FAILURE = 202,
    CURAND_STATUS_INITIALIZATION_FAILED = 203,
    CURAND_STATUS_ARCH_MISMATCH = 204,
    CURAND_STATUS_INTERNAL_ERROR = 999
} curandStatus_t;
typedef enum curandRngType {
    CURAND_RNG_PSEUDO_DEFAULT = 100,
    CURAND_RNG_PSEUDO_XORWOW = 101,
    CURAND_RNG_PSEUDO_MRG32K3A = 121,
    CURAND_RNG_PSEUDO_MTGP32 = 141,
    CURAND_RNG_PSEUDO_MT19937 = 142,
    CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
    CURAND_RNG_QUASI_DEFAULT = 200,
    CURAND_RNG_QUASI_SOBOL32 = 201,
    CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 = 202,
    CURAND_RNG_QUASI_SOBOL64 = 203,
    CURAND_RNG_QUASI_SCRAMBLED_SOBOL64 = 204
} curandRngType_t;
typedef struct curandGenerator_st *curandGenerator_t;

#ifdef HEADRACE_CUDA_RUNTIME_API_H
#define HEADRACE_CURAND(name, ...)                   \
    static inline curandStatus_t name(__VA_ARGS__) { \
        headrace_not_computed(#name);                \
        return CURAND_STATUS_INITIALIZATION_FAILED;  \
    }
#else /* beside CUDA's own runtime cuRAND itself is linked */
#define HEADRACE_CURAND(name, ...) extern "C" curandStatus_t name(__VA_ARGS__);
#endif

HEADRACE_CURAND(curandCreateGenerator, curandGenerator_t *, curandRngType_t)
HEADRACE_CURAND(curandDestroyGenerator, curandGenerator_t)
HEADRACE_CURAND(curandSetStream, curandGenerator_t, cudaStream_t)
HEADRACE_CURAND(curandSetPseudoRandomGeneratorSeed, curandGenerator_t, unsigned long long)
HEADRACE_CURAND(curandSetGeneratorOffset, curandGenerator_t, unsigned long long)
HEADRACE_CURAND(curandGenerate, curandGenerator_t, unsigned int *, size_t)
HEADRACE_CURAND(curandGenerateUniform, curandGenerator_t, float *, size_t)
HEADRACE_CURAND(curandGenerateUniformDouble, curandGenerator_t, double *, size_t)
HEADRACE_CURAND(curandGenerateNormal, curandGenerator_t, float *, size_t, float, float)
HEADRACE_CURAND(curandGenerateNormalDouble, curandGenerator_t, double *, size_t, double, double)

#undef HEADRACE_CURAND

#endif /* HEADRACE_CURAND_H */
