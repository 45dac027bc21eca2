/* Writes into the images of a batch behind the converter, scales a part of them with
 * NvBufSurfTransform, and reads behind the next converter what has become of it. */
#include <gst/gst.h>
#include <stdio.h>
#include <string.h>

#include "gstnvdsmeta.h"
#include "nvbufsurface.h"
#include "nvbufsurftransform.h"

#define SIDE 32
#define GST_ELEMENT_BUS(element) gst_element_get_bus(element)

static const guint8 kRed[] = {255, 0, 0, 255};

/* The middle of a part of an image, scaled to a small image of a format. */
static void look(NvBufSurface *surface, NvBufSurfaceColorFormat format, const char *label) {
    NvBufSurfaceCreateParams wish = {0};
    NvBufSurface *small = NULL;
    NvBufSurfTransformRect part = {0, 0, SIDE, SIDE};
    NvBufSurfTransformParams params = {0};
    wish.width = wish.height = SIDE / 4;
    wish.colorFormat = format;
    params.transform_flag = NVBUFSURF_TRANSFORM_CROP_SRC | NVBUFSURF_TRANSFORM_FILTER;
    params.transform_filter = NvBufSurfTransformInter_Default;
    params.src_rect = &part;
    if (NvBufSurfaceCreate(&small, 1, &wish) != 0 ||
        NvBufSurfTransform(surface, small, &params) != NvBufSurfTransformError_Success ||
        NvBufSurfaceMap(small, 0, -1, NVBUF_MAP_READ) != 0) {
        printf("%s failed\n", label);
        return;
    }
    const guint8 *middle = (guint8 *)small->surfaceList[0].mappedAddr.addr[0] +
                           4 * small->surfaceList[0].planeParams.pitch[0] +
                           4 * small->surfaceList[0].planeParams.bytesPerPix[0];
    printf("%s %d %d %d planes=%u\n", label, middle[0], middle[1], middle[2],
           small->surfaceList[0].planeParams.num_planes);
    NvBufSurfaceUnMap(small, 0, -1);
    NvBufSurfaceDestroy(small);
}

static GstPadProbeReturn paint(GstPad *pad, GstPadProbeInfo *info, gpointer unused) {
    GstMapInfo map;
    (void)pad, (void)unused;
    if (!gst_buffer_map(GST_PAD_PROBE_INFO_BUFFER(info), &map, GST_MAP_READ)) {
        printf("no map\n");
        return GST_PAD_PROBE_OK;
    }
    NvBufSurface *surface = (NvBufSurface *)map.data;
    NvBufSurfaceParams *image = surface->surfaceList;
    printf("map size=%zu batch=%u filled=%u memory=%d %ux%u format=%d pitch=%u data=%u\n", map.size,
           surface->batchSize, surface->numFilled, surface->memType, image->width, image->height,
           image->colorFormat, image->pitch, image->dataSize);
    if (NvBufSurfaceMap(surface, 0, 0, NVBUF_MAP_READ_WRITE) != 0) printf("not mapped\n");
    NvBufSurfaceSyncForCpu(surface, 0, 0);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            memcpy((guint8 *)image->mappedAddr.addr[0] + y * image->planeParams.pitch[0] + 4 * x,
                   kRed, 4);
    NvBufSurfaceSyncForDevice(surface, 0, 0);
    NvBufSurfaceUnMap(surface, 0, 0);
    look(surface, NVBUF_COLOR_FORMAT_BGR, "bgr");
    look(surface, NVBUF_COLOR_FORMAT_NV12, "nv12");
    gst_buffer_unmap(GST_PAD_PROBE_INFO_BUFFER(info), &map);
    return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn planar(GstPad *pad, GstPadProbeInfo *info, gpointer unused) {
    GstMapInfo map;
    (void)pad, (void)unused;
    gst_buffer_map(GST_PAD_PROBE_INFO_BUFFER(info), &map, GST_MAP_READ);
    NvBufSurface *surface = (NvBufSurface *)map.data;
    NvBufSurfacePlaneParams *planes = &surface->surfaceList[0].planeParams;
    printf("mux format=%d planes=%u chroma=%ux%u pitch=%u batch=%u filled=%u\n",
           surface->surfaceList[0].colorFormat, planes->num_planes, planes->width[1],
           planes->height[1], planes->pitch[1], surface->batchSize, surface->numFilled);
    gst_buffer_unmap(GST_PAD_PROBE_INFO_BUFFER(info), &map);
    return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn read_back(GstPad *pad, GstPadProbeInfo *info, gpointer unused) {
    GstMapInfo map;
    (void)pad, (void)unused;
    gst_buffer_map(GST_PAD_PROBE_INFO_BUFFER(info), &map, GST_MAP_READ);
    printf("end %d %d %d\n", map.data[3 * 8], map.data[3 * 8 + 1], map.data[3 * 8 + 2]);
    gst_buffer_unmap(GST_PAD_PROBE_INFO_BUFFER(info), &map);
    return GST_PAD_PROBE_OK;
}

static void watch(GstElement *pipeline, const char *name, GstPadProbeCallback probe) {
    GstElement *element = gst_bin_get_by_name(GST_BIN(pipeline), name);
    GstPad *pad = gst_element_get_static_pad(element, "src");
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, probe, NULL, NULL);
    gst_object_unref(pad);
    gst_object_unref(element);
}

int main(int argc, char **argv) {
    gst_init(&argc, &argv);
    gchar *text = g_strdup_printf(
        "filesrc location=%s ! h264parse ! nvv4l2decoder ! identity eos-after=4 ! mux.sink_0 "
        "nvstreammux name=mux batch-size=2 batched-push-timeout=0 width=320 height=192 ! "
        "nvvideoconvert ! video/x-raw(memory:NVMM),format=RGBA ! identity name=rgba ! "
        "nvvideoconvert ! video/x-raw,format=RGB ! identity name=end ! fakesink",
        argv[1]);
    GstElement *pipeline = gst_parse_launch(text, NULL);
    watch(pipeline, "mux", planar);
    watch(pipeline, "rgba", paint);
    watch(pipeline, "end", read_back);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstMessage *message = gst_bus_timed_pop_filtered(GST_ELEMENT_BUS(pipeline), 60 * GST_SECOND,
                                                     GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    printf("%s\n", message == NULL ? "timeout" : GST_MESSAGE_TYPE_NAME(message));
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
    g_free(text);
    return 0;
}
