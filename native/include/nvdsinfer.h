/* Basic types shared by a custom library and the program that calls it.
 *
 * Part of headrace, Apache-2.0. Written from a description of the binary interface; layouts are
 * those of x86-64 Linux and of every generation from 5.0 to 9.1, except where a comment says
 * otherwise.
 *
 * Two views, which the macro HEADRACE_NVDSINFER_GENERATION selects (or the folder generation-6, put
 * first on the include path): 9 (default)  9.x: boxes of 28 bytes with rotation_angle
 *   6            6.0 to 6.2: boxes of 24 bytes, and the types of those headers that changed since
 * HEADRACE_BOX_BYTES=24 alone compiles for programs of 7.x and 8.0: today's types with boxes of 24
 * bytes.
 */
#ifndef HEADRACE_NVDSINFER_H
#define HEADRACE_NVDSINFER_H

#include <stddef.h>
#include <stdint.h>

#ifndef HEADRACE_NVDSINFER_GENERATION
#define HEADRACE_NVDSINFER_GENERATION 9
#endif
#if HEADRACE_NVDSINFER_GENERATION != 6 && HEADRACE_NVDSINFER_GENERATION != 9
#error "HEADRACE_NVDSINFER_GENERATION must be 6 (6.0 to 6.2) or 9 (9.x)"
#endif
#ifndef HEADRACE_BOX_BYTES
#if HEADRACE_NVDSINFER_GENERATION == 6
#define HEADRACE_BOX_BYTES 24
#else
#define HEADRACE_BOX_BYTES 28
#endif
#endif
#if HEADRACE_BOX_BYTES != 24 && HEADRACE_BOX_BYTES != 28
#error "HEADRACE_BOX_BYTES must be 24 (generation 8.0 and older) or 28 (9.0 and newer)"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define NVDSINFER_MAX_DIMS 8

#define _DS_DEPRECATED_(text) __attribute__((deprecated(text)))

/* Extents of one tensor without its batch axis; unused entries of d are 0. */
typedef struct {
    unsigned int numDims;
    unsigned int d[NVDSINFER_MAX_DIMS];
    unsigned int numElements;
} NvDsInferDims;

typedef struct {
    unsigned int c;
    unsigned int h;
    unsigned int w;
} NvDsInferDimsCHW;

/* Element types. The enumerators are global on purpose: parsers write `layer.dataType == FLOAT`. */
typedef enum {
    FLOAT = 0, /* 32 bit */
    HALF = 1,  /* 16 bit float */
    INT8 = 2,
    INT32 = 3,
    INT64 = 4, /* since 7.1 */
    UINT8 = 5  /* since 8.0; also booleans */
} NvDsInferDataType;

/* One tensor of one batch item. Valid only while the function that got it runs. */
typedef struct {
    NvDsInferDataType dataType;
    union {
        NvDsInferDims inferDims;
        NvDsInferDims dims _DS_DEPRECATED_("use inferDims");
    };
    int bindingIndex; /* position among all inputs and outputs of the model */
    const char *layerName;
    void *buffer; /* numElements contiguous elements in host memory */
    int isInput;
} NvDsInferLayerInfo;

/* Size of the model's input, in pixels. */
typedef struct {
    unsigned int width;
    unsigned int height;
    unsigned int channels;
} NvDsInferNetworkInfo;

/* Reads d[0..2] as channels, height, width / height, width, channels. */
#define getDimsCHWFromDims(chw, dims) \
    do {                              \
        (chw).c = (dims).d[0];        \
        (chw).h = (dims).d[1];        \
        (chw).w = (dims).d[2];        \
    } while (0)

#define getDimsHWCFromDims(chw, dims) \
    do {                              \
        (chw).h = (dims).d[0];        \
        (chw).w = (dims).d[1];        \
        (chw).c = (dims).d[2];        \
    } while (0)

/* One detected object, in pixels of the model's input. 28 bytes since 9.0, 24 before. */
typedef struct {
    unsigned int classId;
    float left;
    float top;
    float width;
    float height;
    float detectionConfidence;
#if HEADRACE_BOX_BYTES == 28
    float rotation_angle; /* radians; leave it 0 for upright boxes */
#endif
} NvDsInferObjectDetectionInfo;

typedef NvDsInferObjectDetectionInfo NvDsInferParseObjectInfo; /* older name */

/* One detected object with a mask over its box: row-major floats made with `new float[]`. */
typedef struct {
    unsigned int classId;
    float left;
    float top;
    float width;
    float height;
    float detectionConfidence;
    float *mask;
    unsigned int mask_width;
    unsigned int mask_height;
    unsigned int mask_size; /* bytes */
} NvDsInferInstanceMaskInfo;

/* One attribute found by a classifier. The label is made with strdup/malloc, or null. */
typedef struct {
    unsigned int attributeIndex;
    unsigned int attributeValue;
    float attributeConfidence;
    char *attributeLabel;
} NvDsInferAttribute;

typedef enum {
    NVDSINFER_SUCCESS = 0,
    NVDSINFER_CONFIG_FAILED,
    NVDSINFER_CUSTOM_LIB_FAILED,
    NVDSINFER_INVALID_PARAMS,
    NVDSINFER_OUTPUT_PARSING_FAILED,
    NVDSINFER_CUDA_ERROR,
    NVDSINFER_TENSORRT_ERROR,
    NVDSINFER_RESOURCE_ERROR,
    NVDSINFER_TRITON_ERROR,
    NVDSINFER_TRTIS_ERROR = NVDSINFER_TRITON_ERROR, /* name before 6.0 */
#if HEADRACE_NVDSINFER_GENERATION >= 9
    NVDSINFER_MEM_ERROR, /* since 6.3 */
#endif
    NVDSINFER_UNKNOWN_ERROR
} NvDsInferStatus;

typedef enum {
    NVDSINFER_LOG_ERROR = 0,
    NVDSINFER_LOG_WARNING,
    NVDSINFER_LOG_INFO,
    NVDSINFER_LOG_DEBUG
} NvDsInferLogLevel;

/* Says to the program that loads the library how large its boxes are. Weak: one per library. */
#if HEADRACE_BOX_BYTES == 28
#define HEADRACE_BOX_MARKER headrace_abi_box_bytes_28
#else
#define HEADRACE_BOX_MARKER headrace_abi_box_bytes_24
#endif
#if defined(__ELF__) && !defined(HEADRACE_NO_ABI_MARKER)
extern __attribute__((weak, visibility("default"))) const unsigned int HEADRACE_BOX_MARKER;
__attribute__((used)) const unsigned int HEADRACE_BOX_MARKER = HEADRACE_BOX_BYTES;
#endif

#ifdef __cplusplus
} /* extern "C" */

/* Range of shapes of a bound tensor; never handed to a custom library. */
typedef enum {
    kSELECTOR_MIN = 0,
    kSELECTOR_OPT,
    kSELECTOR_MAX,
    kSELECTOR_SIZE
} NvDsInferProfileSelector;

typedef struct {
    int batchSize;
    NvDsInferDims dims;
} NvDsInferBatchDims;

struct NvDsInferBatchDimsLayerInfo : NvDsInferLayerInfo {
    NvDsInferBatchDims profileDims[kSELECTOR_SIZE];
};
#endif

#endif /* HEADRACE_NVDSINFER_H */
