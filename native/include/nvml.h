/* Names of NVIDIA's management library that sources include; there is no GPU to ask for.
 * Part of headrace, Apache-2.0. Valid C and C++11.
 */
#ifndef HEADRACE_NVML_H
#define HEADRACE_NVML_H

typedef enum nvmlReturn_enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_UNKNOWN = 999
} nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;

static inline const char *nvmlErrorString(nvmlReturn_t result) {
    return result == NVML_SUCCESS ? "Success" : "Driver Not Loaded";
}
static inline nvmlReturn_t nvmlInit_v2(void) { return NVML_ERROR_DRIVER_NOT_LOADED; }
static inline nvmlReturn_t nvmlShutdown(void) { return NVML_ERROR_UNINITIALIZED; }
#define nvmlInit nvmlInit_v2

#endif /* HEADRACE_NVML_H */
