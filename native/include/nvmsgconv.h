/* The library that makes payloads of messages, in the layout of 9.1. Part of headrace, Apache-2.0.
 */
#ifndef HEADRACE_NVMSGCONV_H
#define HEADRACE_NVMSGCONV_H

#include "headrace/glib.h"
#include "nvdsmeta_schema.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct NvDsMsg2pCtx {
    NvDsPayloadType payloadType;
    gpointer privData;
} NvDsMsg2pCtx;

typedef struct {
    void *objMeta;
    void *frameMeta;
    gchar *mediaType;
    void *datamap;
} NvDsMsg2pMetaInfo;

NvDsMsg2pCtx *nvds_msg2p_ctx_create(const gchar *file, NvDsPayloadType type);
void nvds_msg2p_ctx_destroy(NvDsMsg2pCtx *ctx);
NvDsPayload *nvds_msg2p_generate(NvDsMsg2pCtx *ctx, NvDsEvent *events, guint size);
NvDsPayload **nvds_msg2p_generate_multiple(NvDsMsg2pCtx *ctx, NvDsEvent *events, guint size,
                                           guint *payloadCount);
NvDsPayload *nvds_msg2p_generate_new(NvDsMsg2pCtx *ctx, void *metadataInfo);
NvDsPayload **nvds_msg2p_generate_multiple_new(NvDsMsg2pCtx *ctx, void *metadataInfo,
                                               guint *payloadCount);
void nvds_msg2p_release(NvDsMsg2pCtx *ctx, NvDsPayload *payload);

#ifdef __cplusplus
}
#endif

#endif
