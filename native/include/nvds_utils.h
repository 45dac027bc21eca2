/* Helpers of applications, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDS_UTILS_H
#define HEADRACE_NVDS_UTILS_H

#include "headrace/glib.h"
#include "nvds_msgapi.h"

#ifdef __cplusplus
extern "C" {
#endif

char* nvds_get_hostname_with_ip(void);

#ifdef __cplusplus
}
#endif

#endif
