/* Adaptors of message brokers, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDS_MSGAPI_H
#define HEADRACE_NVDS_MSGAPI_H

#include "headrace/glib.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    NVDS_MSGAPI_OK = 0,
    NVDS_MSGAPI_ERR = 1,
    NVDS_MSGAPI_UNKNOWN_TOPIC = 2
} NvDsMsgApiErrorType;

typedef enum {
    NVDS_MSGAPI_EVT_SUCCESS = 0,
    NVDS_MSGAPI_EVT_DISCONNECT = 1,
    NVDS_MSGAPI_EVT_SERVICE_DOWN = 2
} NvDsMsgApiEventType;

typedef void* NvDsMsgApiHandle;
typedef void (*nvds_msgapi_connect_cb_t)(NvDsMsgApiHandle h_ptr, NvDsMsgApiEventType event);
typedef void (*nvds_msgapi_send_cb_t)(void* user_ptr, NvDsMsgApiErrorType flag);
typedef void (*nvds_msgapi_subscribe_request_cb_t)(NvDsMsgApiErrorType flag, void* message, int length, char* topic, void* user_ptr);

NvDsMsgApiHandle nvds_msgapi_connect(char * connection_str,nvds_msgapi_connect_cb_t connect_cb,char * config_path);
NvDsMsgApiErrorType nvds_msgapi_connection_signature(char * broker_str,char * cfg,char * output_str,int max_len);
NvDsMsgApiErrorType nvds_msgapi_disconnect(NvDsMsgApiHandle h_ptr);
void nvds_msgapi_do_work(NvDsMsgApiHandle h_ptr);
char* nvds_msgapi_get_protocol_name(void);
char* nvds_msgapi_getversion(void);
NvDsMsgApiErrorType nvds_msgapi_send(NvDsMsgApiHandle h_ptr,char * topic,const uint8_t * payload,size_t nbuf);
NvDsMsgApiErrorType nvds_msgapi_send_async(NvDsMsgApiHandle h_ptr,char * topic,const uint8_t * payload,size_t nbuf,nvds_msgapi_send_cb_t send_callback,void * user_ptr);
NvDsMsgApiErrorType nvds_msgapi_subscribe(NvDsMsgApiHandle h_ptr,char ** topics,int num_topics,nvds_msgapi_subscribe_request_cb_t cb,void * user_ctx);

#ifdef __cplusplus
}
#endif

#endif
