/* Messages of an application's own, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDSCUSTOMUSERMETA_H
#define HEADRACE_NVDSCUSTOMUSERMETA_H

#include "headrace/glib.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NVDS_USER_CUSTOM_META (nvds_get_user_meta_type((gchar *)"NVIDIA.USER.CUSTOM_META"))

typedef struct _NVDS_CUSTOM_PAYLOAD NVDS_CUSTOM_PAYLOAD;

struct _NVDS_CUSTOM_PAYLOAD {
    uint32_t payloadType;
    uint32_t payloadSize;
    uint8_t* payload;
};

#ifdef __cplusplus
}
#endif

#endif
