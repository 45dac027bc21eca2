/* Sources whose senders' times are kept, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDSGSTUTILS_H
#define HEADRACE_NVDSGSTUTILS_H

#include "headrace/gst.h"

#ifdef __cplusplus
extern "C" {
#endif

void configure_source_for_ntp_sync(GstElement * src_elem);

#ifdef __cplusplus
}
#endif

#endif
