/* Message brokers over adaptors, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVMSGBROKER_H
#define HEADRACE_NVMSGBROKER_H

#include "headrace/glib.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NV_MSGBROKER_VERSION "2.0"

typedef enum {
    NV_MSGBROKER_API_OK = 0,
    NV_MSGBROKER_API_ERR = 1,
    NV_MSGBROKER_API_RECONNECTING = 2,
    NV_MSGBROKER_API_NOT_SUPPORTED = 3
} NvMsgBrokerErrorType;

typedef struct _NvMsgBrokerClientMsg NvMsgBrokerClientMsg;
typedef void* NvMsgBrokerClientHandle;
typedef void (*nv_msgbroker_connect_cb_t)(NvMsgBrokerClientHandle h_ptr, NvMsgBrokerErrorType status);
typedef void (*nv_msgbroker_send_cb_t)(void* user_ptr, NvMsgBrokerErrorType status);
typedef void (*nv_msgbroker_subscribe_cb_t)(NvMsgBrokerErrorType status, void* msg, int msglen, char* topic, void* user_ptr);

struct _NvMsgBrokerClientMsg {
    char* topic;
    void* payload;
    size_t payload_len;
};

NvMsgBrokerClientHandle nv_msgbroker_connect(char * broker_conn_str,char * broker_proto_lib,nv_msgbroker_connect_cb_t connect_cb,char * cfg);
NvMsgBrokerErrorType nv_msgbroker_disconnect(NvMsgBrokerClientHandle h_ptr);
NvMsgBrokerErrorType nv_msgbroker_send_async(NvMsgBrokerClientHandle h_ptr,NvMsgBrokerClientMsg message,nv_msgbroker_send_cb_t cb,void * user_ctx);
NvMsgBrokerErrorType nv_msgbroker_subscribe(NvMsgBrokerClientHandle h_ptr,char ** topics,int num_topics,nv_msgbroker_subscribe_cb_t cb,void * user_ctx);
char* nv_msgbroker_version(void);

#ifdef __cplusplus
}
#endif

#endif
