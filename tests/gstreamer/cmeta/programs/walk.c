/* Walks batch, frames and objects; adds an object, a text and user metadata of its own.
 *
 * walk VIDEO.h264 CONFIG FRAMES: prints a line a frame in front of the probe of the display. */
#include <glib.h>
#include <gst/gst.h>
#include <stdio.h>
#include <string.h>

#include "gstnvdsmeta.h"
#include "nvds_version.h"

static int copies, releases;

static gpointer copy_note(gpointer data, gpointer user_data) {
    NvDsUserMeta *meta = (NvDsUserMeta *)data;
    copies++;
    return g_strdup((char *)meta->user_meta_data);
}

static void release_note(gpointer data, gpointer user_data) {
    NvDsUserMeta *meta = (NvDsUserMeta *)data;
    releases++;
    g_free(meta->user_meta_data);
    meta->user_meta_data = NULL;
}

static GstPadProbeReturn add(GstPad *pad, GstPadProbeInfo *info, gpointer user) {
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    NvDsBatchMeta *batch = gst_buffer_get_nvds_batch_meta(buffer);
    for (GList *l = batch->frame_meta_list; l != NULL; l = l->next) {
        NvDsFrameMeta *frame = (NvDsFrameMeta *)l->data;
        NvDsObjectMeta *object = nvds_acquire_obj_meta_from_pool(batch);
        object->class_id = 99;
        object->object_id = UNTRACKED_OBJECT_ID;
        object->confidence = 0.5;
        g_strlcpy(object->obj_label, "added", MAX_LABEL_SIZE);
        object->rect_params.left = 10;
        object->rect_params.top = 20;
        object->rect_params.width = object->rect_params.height = 30;
        nvds_add_obj_meta_to_frame(frame, object, NULL);
        NvDsUserMeta *note = nvds_acquire_user_meta_from_pool(batch);
        note->user_meta_data = g_strdup_printf("frame %d", frame->frame_num);
        note->base_meta.meta_type = nvds_get_user_meta_type((gchar *)"EXAMPLE.NOTE");
        note->base_meta.copy_func = copy_note;
        note->base_meta.release_func = release_note;
        nvds_add_user_meta_to_frame(frame, note);
        NvDsDisplayMeta *display = nvds_acquire_display_meta_from_pool(batch);
        display->num_labels = display->num_rects = 1;
        display->text_params[0].display_text = g_strdup("hello");
        display->text_params[0].x_offset = display->text_params[0].y_offset = 40;
        display->text_params[0].font_params.font_name = (char *)"Serif";
        display->text_params[0].font_params.font_size = 24;
        display->text_params[0].font_params.font_color = (NvOSD_ColorParams){1, 0, 0, 1};
        display->rect_params[0] = (NvOSD_RectParams){.left = 0, .top = 0, .width = 64, .height = 64};
        display->rect_params[0].has_bg_color = 1;
        display->rect_params[0].bg_color = (NvOSD_ColorParams){0, 1, 0, 1};
        nvds_add_display_meta_to_frame(frame, display);
    }
    return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn look(GstPad *pad, GstPadProbeInfo *info, gpointer user) {
    NvDsBatchMeta *batch = gst_buffer_get_nvds_batch_meta(GST_PAD_PROBE_INFO_BUFFER(info));
    for (GList *l = batch->frame_meta_list; l != NULL; l = l->next) {
        NvDsFrameMeta *frame = (NvDsFrameMeta *)l->data;
        int added = 0, drawn = 0;
        for (GList *o = frame->obj_meta_list; o != NULL; o = o->next)
            added += ((NvDsObjectMeta *)o->data)->class_id == 99;
        for (GList *d = frame->display_meta_list; d != NULL; d = d->next) drawn++;
        NvDsUserMeta *note = (NvDsUserMeta *)frame->frame_user_meta_list->data;
        printf("%d %dx%d objects=%u added=%d drawn=%d note=%s\n", frame->frame_num,
               frame->source_frame_width, frame->source_frame_height, frame->num_obj_meta, added,
               drawn, (char *)note->user_meta_data);
    }
    gpointer copy = nvds_batch_meta_copy_func(batch, NULL);
    nvds_batch_meta_release_func(copy, NULL);
    return GST_PAD_PROBE_OK;
}

int main(int count, char **words) {
    gst_init(&count, &words);
    if (count < 4) return 2;
    gchar *text = g_strdup_printf(
        "filesrc location=%s ! h264parse ! nvv4l2decoder ! identity eos-after=%s ! mux.sink_0 "
        "nvstreammux name=mux batch-size=1 width=640 height=384 ! nvinfer name=infer "
        "config-file-path=%s ! nvvideoconvert name=convert ! nvdsosd name=osd ! fakesink",
        words[1], words[3], words[2]);
    GError *error = NULL;
    GstElement *pipeline = gst_parse_launch(text, &error);
    if (error != NULL) {
        fprintf(stderr, "%s\n", error->message);
        return 1;
    }
    GstElement *convert = gst_bin_get_by_name(GST_BIN(pipeline), "convert");
    GstElement *osd = gst_bin_get_by_name(GST_BIN(pipeline), "osd");
    GstPad *first = gst_element_get_static_pad(convert, "sink");
    GstPad *second = gst_element_get_static_pad(osd, "src");
    gst_pad_add_probe(first, GST_PAD_PROBE_TYPE_BUFFER, add, NULL, NULL);
    gst_pad_add_probe(second, GST_PAD_PROBE_TYPE_BUFFER, look, NULL, NULL);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstBus *bus = gst_element_get_bus(pipeline);
    GstMessage *message = gst_bus_timed_pop_filtered(
        bus, 60 * GST_SECOND, (GstMessageType)(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
    int failed = message == NULL || GST_MESSAGE_TYPE(message) != GST_MESSAGE_EOS;
    if (message != NULL) gst_message_unref(message);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(first);
    gst_object_unref(second);
    gst_object_unref(convert);
    gst_object_unref(osd);
    gst_object_unref(bus);
    gst_object_unref(pipeline);
    g_free(text);
    printf("copies=%d releases=%d\n", copies, releases);
    return failed;
}
