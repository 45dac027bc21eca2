/* Log of applications, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDS_LOGGER_H
#define HEADRACE_NVDS_LOGGER_H

#include "headrace/glib.h"
#include "syslog.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSLOG_CAT_APP "DSLOG:APP"

void nvds_log(const char * category,int priority,const char * data,...);
void nvds_log_close(void);
void nvds_log_open(void);

#ifdef __cplusplus
}
#endif

#endif
