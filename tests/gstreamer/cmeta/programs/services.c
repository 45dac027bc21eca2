/* Records the packets of a source around an event, and encodes the objects of frames. */
#include <gst/gst.h>
#include <stdio.h>
#include <string.h>

#include "gst-nvdssr.h"
#include "gst-nvquery.h"
#include "gstnvdsmeta.h"
#include "nvbufsurface.h"
#include "nvds_obj_encode.h"
#include "nvmsgbroker.h"

static NvDsSRContext *recordings;
static NvDsObjEncCtxHandle encoder;
static int frames;

static gpointer recorded(NvDsSRRecordingInfo *info, gpointer data) {
    printf("recorded %s session=%u %ux%u video=%d data=%s\n", info->filename, info->sessionId,
           info->width, info->height, info->containsVideo, (char *)data);
    fflush(stdout);
    return NULL;
}

static void encode(GstBuffer *buffer) {
    GstMapInfo map;
    NvDsBatchMeta *batch = gst_buffer_get_nvds_batch_meta(buffer);
    if (!gst_buffer_map(buffer, &map, GST_MAP_READ)) return;
    for (NvDsMetaList *l = batch->frame_meta_list; l != NULL; l = l->next) {
        NvDsFrameMeta *frame = l->data;
        for (NvDsMetaList *o = frame->obj_meta_list; o != NULL; o = o->next) {
            NvDsObjectMeta *object = o->data;
            NvDsObjEncUsrArgs args = {0};
            args.attachUsrMeta = true;
            args.saveImg = frame->frame_num == 0;
            args.quality = 80;
            snprintf(args.fileNameImg, FILE_NAME_SIZE, "object_%d.jpg", object->class_id);
            if (!nvds_obj_enc_process(encoder, &args, (NvBufSurface *)map.data, object, frame))
                printf("not encoded\n");
            nvds_obj_enc_finish(encoder);
            for (NvDsMetaList *u = object->obj_user_meta_list; u != NULL; u = u->next) {
                NvDsUserMeta *user = u->data;
                NvDsObjEncOutParams *out = user->user_meta_data;
                if (user->base_meta.meta_type == NVDS_CROP_IMAGE_META && frame->frame_num == 0)
                    printf("jpeg %02x%02x of %s\n", out->outBuffer[0], out->outBuffer[1],
                           out->outLen > 100 ? "many bytes" : "few bytes");
            }
        }
    }
    gst_buffer_unmap(buffer, &map);
}

static GstPadProbeReturn look(GstPad *pad, GstPadProbeInfo *info, gpointer unused) {
    static NvDsSRSessionId session;
    (void)unused;
    if (frames == 0) {
        guint size = 0;
        GstQuery *query = gst_nvquery_batch_size_new();
        gboolean answered = gst_pad_peer_query(pad, query);
        gst_nvquery_batch_size_parse(query, &size);
        printf("batch size %d %u\n", answered, size);
        gst_query_unref(query);
    }
    if (frames == 20) {
        NvDsSRStatus status = NvDsSRStart(recordings, &session, 1, 5, "mine");
        printf("start %d second %d\n", status, NvDsSRStart(recordings, &session, 1, 5, "mine"));
    }
    if (frames == 40) printf("stop %d\n", NvDsSRStop(recordings, session));
    if (frames % 20 == 0) encode(GST_PAD_PROBE_INFO_BUFFER(info));
    frames++;
    return GST_PAD_PROBE_OK;
}

int main(int argc, char **argv) {
    NvDsSRInitParams params = {0};
    gst_init(&argc, &argv);
    params.callback = recorded;
    params.containerType = NVDSSR_CONTAINER_MKV;
    params.dirpath = argv[3];
    params.fileNamePrefix = "event";
    params.cacheSize = 10;
    printf("create %d\n", NvDsSRCreate(&recordings, &params));
    encoder = nvds_obj_enc_create_context(0);
    printf("broker %p\n", nv_msgbroker_connect("host;1", "libmine.so", NULL, NULL));
    gchar *text = g_strdup_printf(
        "filesrc location=%s ! h264parse ! tee name=packets ! queue ! nvv4l2decoder ! mux.sink_0 "
        "nvstreammux name=mux batch-size=3 width=640 height=384 ! "
        "nvinfer config-file-path=%s ! identity name=end ! fakesink",
        argv[1], argv[2]);
    GstElement *pipeline = gst_parse_launch(text, NULL);
    GstElement *packets = gst_bin_get_by_name(GST_BIN(pipeline), "packets");
    GstElement *end = gst_bin_get_by_name(GST_BIN(pipeline), "end");
    gst_bin_add(GST_BIN(pipeline), recordings->recordbin);
    printf("link %d\n", gst_element_link(packets, recordings->recordbin));
    GstPad *pad = gst_element_get_static_pad(end, "sink");
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, look, NULL, NULL);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstMessage *message = gst_bus_timed_pop_filtered(gst_element_get_bus(pipeline), 60 * GST_SECOND,
                                                     GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    printf("%s\n", message == NULL ? "timeout" : GST_MESSAGE_TYPE_NAME(message));
    gst_element_set_state(pipeline, GST_STATE_NULL);
    printf("destroy %d\n", NvDsSRDestroy(recordings));
    nvds_obj_enc_destroy_context(encoder);
    gst_object_unref(pipeline);
    g_free(text);
    return 0;
}
