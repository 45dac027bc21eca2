/* Marks for a profiler of NVIDIA's, which record nothing here. Part of headrace, Apache-2.0. */
#ifndef HEADRACE_NVTOOLSEXT_H
#define HEADRACE_NVTOOLSEXT_H

#include <stdint.h>
#include <wchar.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NVTX_VERSION 3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))

typedef uint64_t nvtxRangeId_t;
typedef struct nvtxDomainRegistration_st nvtxDomainRegistration;
typedef nvtxDomainRegistration *nvtxDomainHandle_t;
typedef enum nvtxColorType_t { NVTX_COLOR_UNKNOWN = 0, NVTX_COLOR_ARGB = 1 } nvtxColorType_t;
typedef enum nvtxMessageType_t {
    NVTX_MESSAGE_UNKNOWN = 0,
    NVTX_MESSAGE_TYPE_ASCII = 1,
    NVTX_MESSAGE_TYPE_UNICODE = 2
} nvtxMessageType_t;
typedef union {
    const char *ascii;
    const wchar_t *unicode;
} nvtxMessageValue_t;
typedef union {
    uint64_t ullValue;
    int64_t llValue;
    double dValue;
    uint32_t uiValue;
    int32_t iValue;
    float fValue;
} nvtxPayload_t;
typedef struct nvtxEventAttributes_v2 {
    uint16_t version;
    uint16_t size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType;
    int32_t reserved0;
    nvtxPayload_t payload;
    int32_t messageType;
    nvtxMessageValue_t message;
} nvtxEventAttributes_t;

static inline nvtxDomainHandle_t nvtxDomainCreateA(const char *name) {
    return (void)name, (nvtxDomainHandle_t)0;
}
static inline void nvtxDomainDestroy(nvtxDomainHandle_t domain) { (void)domain; }
static inline int nvtxDomainRangePushEx(nvtxDomainHandle_t domain,
                                        const nvtxEventAttributes_t *attributes) {
    return (void)domain, (void)attributes, 0;
}
static inline int nvtxDomainRangePop(nvtxDomainHandle_t domain) { return (void)domain, 0; }
static inline nvtxRangeId_t nvtxDomainRangeStartEx(nvtxDomainHandle_t domain,
                                                   const nvtxEventAttributes_t *attributes) {
    return (void)domain, (void)attributes, 0;
}
static inline void nvtxDomainRangeEnd(nvtxDomainHandle_t domain, nvtxRangeId_t range) {
    (void)domain, (void)range;
}
static inline void nvtxDomainMarkEx(nvtxDomainHandle_t domain,
                                    const nvtxEventAttributes_t *attributes) {
    (void)domain, (void)attributes;
}
static inline int nvtxRangePushA(const char *text) { return (void)text, 0; }
static inline int nvtxRangePushEx(const nvtxEventAttributes_t *attributes) {
    return (void)attributes, 0;
}
static inline int nvtxRangePop(void) { return 0; }
static inline nvtxRangeId_t nvtxRangeStartA(const char *text) { return (void)text, 0; }
static inline void nvtxRangeEnd(nvtxRangeId_t range) { (void)range; }
static inline void nvtxMarkA(const char *text) { (void)text; }
static inline void nvtxNameOsThreadA(uint32_t thread, const char *name) {
    (void)thread, (void)name;
}

#define nvtxDomainCreate nvtxDomainCreateA
#define nvtxRangePush nvtxRangePushA
#define nvtxRangeStart nvtxRangeStartA
#define nvtxMark nvtxMarkA
#define nvtxNameOsThread nvtxNameOsThreadA

#ifdef __cplusplus
}
#endif

#endif
