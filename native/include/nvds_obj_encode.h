/* JPEG images of objects, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDS_OBJ_ENCODE_H
#define HEADRACE_NVDS_OBJ_ENCODE_H

#include "nvbufsurface.h"
#include "nvdsmeta.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FILE_NAME_SIZE 1024

typedef struct _NvDsObjEncUsrArgs NvDsObjEncUsrArgs;
typedef struct _NvDsObjEncOutParams NvDsObjEncOutParams;
typedef void* NvDsObjEncCtxHandle;

struct _NvDsObjEncUsrArgs {
    bool saveImg;
    bool attachUsrMeta;
    bool scaleImg;
    int scaledWidth;
    int scaledHeight;
    char fileNameImg[1024];
    int objNum;
    int quality;
    bool isFrame;
    bool calcEncodeTime;
};

struct _NvDsObjEncOutParams {
    uint8_t* outBuffer;
    uint64_t outLen;
};

NvDsObjEncCtxHandle nvds_obj_enc_create_context(int);
void nvds_obj_enc_destroy_context(NvDsObjEncCtxHandle);
void nvds_obj_enc_finish(NvDsObjEncCtxHandle);
bool nvds_obj_enc_process(NvDsObjEncCtxHandle,NvDsObjEncUsrArgs *,NvBufSurface *,NvDsObjectMeta *,NvDsFrameMeta *);

#ifdef __cplusplus
}
#endif

#endif
