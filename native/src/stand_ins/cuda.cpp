// CUDA while a library is loaded: one device of compute capability 7.5 whose memory is the host's
// and whose kernels do nothing. Global Thrust vectors, registered kernels and handles of cuBLAS
// survive it; a failing or absent CUDA would end the process in a static initialiser. A parser that
// calls any of it later is refused. Source: custom-library spec 5.4, 5.5.
#include <cstdlib>
#include <cstring>
#include <map>

#include "stand_ins/stand_in.h"

namespace headrace::stand_ins {
namespace {

constexpr int kSuccess = 0, kOutOfMemory = 2;
char handle;  // what streams, events and other objects point at

struct Extent {  // dim3
    unsigned int x, y, z;
};

int allocate(void **memory, size_t bytes) {
    *memory = std::calloc(bytes ? bytes : 1, 1);
    return *memory ? kSuccess : kOutOfMemory;
}

int device_attribute(int attribute) {
    static const std::map<int, int> values = {{1, 1024},       {2, 1024},
                                              {3, 1024},       {4, 64},
                                              {5, 2147483647}, {6, 65535},
                                              {7, 65535},      {8, 49152},
                                              {10, 32},        {12, 65536},
                                              {13, 1},         {16, 1},
                                              {39, 1024},      {75, 7 /* compute capability 7.5 */},
                                              {76, 5},         {81, 65536},
                                              {97, 65536}};
    const auto found = values.find(attribute);
    return found == values.end() ? 0 : found->second;
}

// Objects that were made at load time may be destroyed at any time.
int cuda_free(void *memory) {
    std::free(memory);
    return kSuccess;
}

const char *error_name(int) { return "cudaSuccess"; }
const char *error_string(int) { return "no error: headrace stands in for CUDA"; }

}  // namespace

// clang-format off: a table

// An entry of the table: a function that is refused by its name.
#define FUNCTION(name, result, parameters, ...)                 \
    {#name, reinterpret_cast<void *>(+[] parameters -> result { \
         refuse_in_scope(#name);                                \
         __VA_ARGS__                                            \
     })},
// One that does something and answers 0, whatever it is given.
#define DOES(name, parameters, ...) FUNCTION(name, int, parameters, __VA_ARGS__ return kSuccess;)
#define SILENT(name) DOES(name, (), )
#define CREATES(name) DOES(name, (void **object), if (object) *object = &handle;)
#define ALLOCATES(name, parameters) FUNCTION(name, int, parameters, return allocate(memory, bytes);)
#define PUTS(name, parameters, number) DOES(name, parameters, if (where) *where = number;)
#define ALWAYS(name, function) {#name, reinterpret_cast<void *>(&function)},

void *cuda_stand_in(const std::string &function) {
    static const std::map<std::string, void *> table = {
        SILENT(__cudaRegisterFatBinaryEnd) SILENT(__cudaUnregisterFatBinary)
        SILENT(__cudaRegisterFunction) SILENT(__cudaRegisterVar) SILENT(__cudaRegisterManagedVar)
        SILENT(__cudaPushCallConfiguration) SILENT(__cudaLaunchKernel) SILENT(__cudaLaunchKernel_ptsz)
        SILENT(cudaLaunchKernel) SILENT(cudaLaunchKernel_ptsz) SILENT(cudaLaunchKernelExC)
        SILENT(cudaSetDevice) SILENT(cudaDeviceSynchronize) SILENT(cudaStreamSynchronize)
        SILENT(cudaStreamDestroy) SILENT(cudaStreamWaitEvent) SILENT(cudaEventDestroy)
        SILENT(cudaEventRecord) SILENT(cudaEventSynchronize) SILENT(cudaGetLastError)
        SILENT(cudaPeekAtLastError) SILENT(cudaDeviceReset) SILENT(cudaFuncSetAttribute)
        SILENT(cudaFuncSetCacheConfig) SILENT(cudaSetDeviceFlags) SILENT(cublasDestroy_v2)
        SILENT(cublasSetStream_v2) SILENT(cublasSetMathMode) SILENT(cublasLtDestroy)
        SILENT(cudnnDestroy) SILENT(cudnnSetStream)
        CREATES(__cudaGetKernel) CREATES(cudaStreamCreate) CREATES(cudaStreamCreateWithFlags)
        CREATES(cudaStreamCreateWithPriority) CREATES(cudaEventCreate)
        CREATES(cudaEventCreateWithFlags) CREATES(cublasCreate_v2) CREATES(cublasLtCreate)
        CREATES(cudnnCreate)
        FUNCTION(__cudaRegisterFatBinary, void **, (void *), static void *registered; return &registered;)
        FUNCTION(__cudaInitModule, char, (void **), return 1;)
        DOES(__cudaPopCallConfiguration, (Extent *grid, Extent *block, size_t *shared, void **stream),
             if (grid) *grid = {1, 1, 1};
             if (block) *block = {1, 1, 1};
             if (shared) *shared = 0;
             if (stream) *stream = nullptr;)
        ALLOCATES(cudaMalloc, (void **memory, size_t bytes))
        ALLOCATES(cudaMallocHost, (void **memory, size_t bytes))
        ALLOCATES(cudaMallocAsync, (void **memory, size_t bytes, void *))
        ALLOCATES(cudaMallocManaged, (void **memory, size_t bytes, unsigned int))
        ALLOCATES(cudaHostAlloc, (void **memory, size_t bytes, unsigned int))
        ALWAYS(cudaFree, cuda_free) ALWAYS(cudaFreeHost, cuda_free) ALWAYS(cudaFreeAsync, cuda_free)
        DOES(cudaMemcpy, (void *to, const void *from, size_t bytes, int),
             if (bytes) std::memmove(to, from, bytes);)
        DOES(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, int, void *),
             if (bytes) std::memmove(to, from, bytes);)
        DOES(cudaMemset, (void *memory, int value, size_t bytes),
             if (bytes) std::memset(memory, value, bytes);)
        DOES(cudaMemsetAsync, (void *memory, int value, size_t bytes, void *),
             if (bytes) std::memset(memory, value, bytes);)
        PUTS(cudaGetDevice, (int *where), 0)
        PUTS(cudaGetDeviceCount, (int *where), 1)
        PUTS(cudaDriverGetVersion, (int *where), 12000)
        PUTS(cudaRuntimeGetVersion, (int *where), 12000)
        PUTS(cudaDeviceGetAttribute, (int *where, int attribute, int), device_attribute(attribute))
        PUTS(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int *where, const void *, int, size_t), 1)
        PUTS(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
             (int *where, const void *, int, size_t, unsigned int), 1)
        // The fields that all versions have: three sizes, then threads, registers, two versions.
        DOES(cudaFuncGetAttributes, (void *attributes, const void *),
             const size_t sizes[3] = {};
             const int numbers[4] = {1024, 32, 75, 75};
             std::memcpy(attributes, sizes, sizeof sizes);
             std::memcpy(static_cast<char *>(attributes) + sizeof sizes, numbers, sizeof numbers);)
        ALWAYS(cudaGetErrorName, error_name) ALWAYS(cudaGetErrorString, error_string)};
    // clang-format on
    const auto found = table.find(function);
    return found == table.end() ? nullptr : found->second;
}

}  // namespace headrace::stand_ins
