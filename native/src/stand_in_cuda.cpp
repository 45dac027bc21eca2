// CUDA while a library is loaded: one device of compute capability 7.5 whose memory is the host's and
// whose kernels do nothing. Global Thrust vectors, registered kernels and handles of cuBLAS survive it;
// a failing or absent CUDA would end the process in a static initialiser. A parser that calls any of
// it later is refused. Source: custom-library spec 5.4, 5.5.
#include <cstdlib>
#include <cstring>
#include <map>

#include "stand_in.h"

namespace {

constexpr int success = 0, out_of_memory = 2;
char handle;  // what streams, events and other objects point at

struct Extent {  // dim3
    unsigned int x, y, z;
};

// Answers 0 to whatever it is given. One function for each name: it is refused by its name.
#define SILENT(name)                \
    int silent_##name() {           \
        refuse_in_scope(#name);     \
        return success;             \
    }
// The same, with a handle put where the first argument points.
#define CREATES(name)                   \
    int creates_##name(void **object) { \
        refuse_in_scope(#name);         \
        if (object) *object = &handle;  \
        return success;                 \
    }

#define SILENT_NAMES(X)                                                                          \
    X(__cudaRegisterFatBinaryEnd) X(__cudaUnregisterFatBinary) X(__cudaRegisterFunction)        \
    X(__cudaRegisterVar) X(__cudaRegisterManagedVar) X(__cudaPushCallConfiguration)             \
    X(__cudaLaunchKernel) X(__cudaLaunchKernel_ptsz) X(cudaLaunchKernel) X(cudaLaunchKernel_ptsz) \
    X(cudaLaunchKernelExC) X(cudaSetDevice) X(cudaDeviceSynchronize) X(cudaStreamSynchronize)   \
    X(cudaStreamDestroy) X(cudaStreamWaitEvent) X(cudaEventDestroy) X(cudaEventRecord)          \
    X(cudaEventSynchronize) X(cudaGetLastError) X(cudaPeekAtLastError) X(cudaDeviceReset)       \
    X(cudaFuncSetAttribute) X(cudaFuncSetCacheConfig) X(cudaSetDeviceFlags) X(cublasDestroy_v2) \
    X(cublasSetStream_v2) X(cublasSetMathMode) X(cublasLtDestroy) X(cudnnDestroy) X(cudnnSetStream)
#define CREATES_NAMES(X)                                                                         \
    X(__cudaGetKernel) X(cudaStreamCreate) X(cudaStreamCreateWithFlags)                         \
    X(cudaStreamCreateWithPriority) X(cudaEventCreate) X(cudaEventCreateWithFlags)              \
    X(cublasCreate_v2) X(cublasLtCreate) X(cudnnCreate)
SILENT_NAMES(SILENT)
CREATES_NAMES(CREATES)

void **register_fat_binary(void *) {
    refuse_in_scope("__cudaRegisterFatBinary");
    static void *registered;
    return &registered;
}

char init_module(void **) {
    refuse_in_scope("__cudaInitModule");
    return 1;
}

int pop_call_configuration(Extent *grid, Extent *block, size_t *shared, void **stream) {
    refuse_in_scope("__cudaPopCallConfiguration");
    if (grid) *grid = {1, 1, 1};
    if (block) *block = {1, 1, 1};
    if (shared) *shared = 0;
    if (stream) *stream = nullptr;
    return success;
}

int allocate(const char *name, void **memory, size_t bytes) {
    refuse_in_scope(name);
    *memory = std::calloc(bytes ? bytes : 1, 1);
    return *memory ? success : out_of_memory;
}
int cuda_malloc(void **memory, size_t bytes) { return allocate("cudaMalloc", memory, bytes); }
int cuda_malloc_host(void **memory, size_t bytes) {
    return allocate("cudaMallocHost", memory, bytes);
}
int cuda_malloc_async(void **memory, size_t bytes, void *) {
    return allocate("cudaMallocAsync", memory, bytes);
}
int cuda_malloc_managed(void **memory, size_t bytes, unsigned int) {
    return allocate("cudaMallocManaged", memory, bytes);
}
int cuda_host_alloc(void **memory, size_t bytes, unsigned int) {
    return allocate("cudaHostAlloc", memory, bytes);
}

// Objects that were made at load time may be destroyed at any time.
int cuda_free(void *memory) {
    std::free(memory);
    return success;
}

int cuda_memcpy(void *to, const void *from, size_t bytes, int, void *) {
    refuse_in_scope("cudaMemcpy");
    if (bytes) std::memmove(to, from, bytes);
    return success;
}
int cuda_memcpy_async(void *to, const void *from, size_t bytes, int, void *) {
    refuse_in_scope("cudaMemcpyAsync");
    if (bytes) std::memmove(to, from, bytes);
    return success;
}
int cuda_memset(void *memory, int value, size_t bytes, void *) {
    refuse_in_scope("cudaMemset");
    if (bytes) std::memset(memory, value, bytes);
    return success;
}
int cuda_memset_async(void *memory, int value, size_t bytes, void *) {
    refuse_in_scope("cudaMemsetAsync");
    if (bytes) std::memset(memory, value, bytes);
    return success;
}

int put(const char *name, int *where, int value) {
    refuse_in_scope(name);
    if (where) *where = value;
    return success;
}
int get_device(int *device) { return put("cudaGetDevice", device, 0); }
int get_device_count(int *count) { return put("cudaGetDeviceCount", count, 1); }
int driver_version(int *version) { return put("cudaDriverGetVersion", version, 12000); }
int runtime_version(int *version) { return put("cudaRuntimeGetVersion", version, 12000); }
int max_active_blocks(int *blocks, const void *, int, size_t, unsigned int) {
    return put("cudaOccupancyMaxActiveBlocksPerMultiprocessor", blocks, 1);
}
int max_active_blocks_with_flags(int *blocks, const void *, int, size_t, unsigned int) {
    return put("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", blocks, 1);
}

int device_attribute(int *value, int attribute, int) {
    static const std::map<int, int> values = {
        {1, 1024}, {2, 1024},        {3, 1024},  {4, 64}, {5, 2147483647}, {6, 65535},
        {7, 65535}, {8, 49152},      {10, 32},   {12, 65536}, {13, 1},     {16, 1},
        {39, 1024}, {75, 7 /* compute capability 7.5 */}, {76, 5}, {81, 65536}, {97, 65536}};
    const auto found = values.find(attribute);
    return put("cudaDeviceGetAttribute", value, found == values.end() ? 0 : found->second);
}

// The fields that all versions have: three sizes, then threads, registers, two versions.
int function_attributes(void *attributes, const void *) {
    refuse_in_scope("cudaFuncGetAttributes");
    const size_t sizes[3] = {};
    const int numbers[4] = {1024, 32, 75, 75};
    std::memcpy(attributes, sizes, sizeof sizes);
    std::memcpy(static_cast<char *>(attributes) + sizeof sizes, numbers, sizeof numbers);
    return success;
}

const char *error_name(int) { return "cudaSuccess"; }
const char *error_string(int) { return "no error: noria stands in for CUDA"; }

}  // namespace

void *cuda_stand_in(const std::string &function) {
#define ENTRY(name, implementation) {name, reinterpret_cast<void *>(&implementation)},
#define SILENT_ENTRY(name) ENTRY(#name, silent_##name)
#define CREATES_ENTRY(name) ENTRY(#name, creates_##name)
    static const std::map<std::string, void *> table = {
        SILENT_NAMES(SILENT_ENTRY)
        CREATES_NAMES(CREATES_ENTRY)
        ENTRY("__cudaRegisterFatBinary", register_fat_binary)
        ENTRY("__cudaInitModule", init_module)
        ENTRY("__cudaPopCallConfiguration", pop_call_configuration)
        ENTRY("cudaMalloc", cuda_malloc)
        ENTRY("cudaMallocHost", cuda_malloc_host)
        ENTRY("cudaMallocAsync", cuda_malloc_async)
        ENTRY("cudaMallocManaged", cuda_malloc_managed)
        ENTRY("cudaHostAlloc", cuda_host_alloc)
        ENTRY("cudaFree", cuda_free)
        ENTRY("cudaFreeHost", cuda_free)
        ENTRY("cudaFreeAsync", cuda_free)
        ENTRY("cudaMemcpy", cuda_memcpy)
        ENTRY("cudaMemcpyAsync", cuda_memcpy_async)
        ENTRY("cudaMemset", cuda_memset)
        ENTRY("cudaMemsetAsync", cuda_memset_async)
        ENTRY("cudaGetDevice", get_device)
        ENTRY("cudaGetDeviceCount", get_device_count)
        ENTRY("cudaDriverGetVersion", driver_version)
        ENTRY("cudaRuntimeGetVersion", runtime_version)
        ENTRY("cudaDeviceGetAttribute", device_attribute)
        ENTRY("cudaFuncGetAttributes", function_attributes)
        ENTRY("cudaOccupancyMaxActiveBlocksPerMultiprocessor", max_active_blocks)
        ENTRY("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
              max_active_blocks_with_flags)
        ENTRY("cudaGetErrorName", error_name)
        ENTRY("cudaGetErrorString", error_string)};
    const auto found = table.find(function);
    return found == table.end() ? nullptr : found->second;
}
