// Pools, lists and copies of the library alone, for a run under AddressSanitizer.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gstnvdsmeta.h"
#include "nvbufsurface.h"
#include "nvds_utils.h"
#include "nvdsinfer_dbscan.h"

#define CHECK(condition)                                               \
    do {                                                               \
        if (!(condition)) {                                            \
            std::printf("line %d: %s\n", __LINE__, #condition);        \
            return 1;                                                  \
        }                                                              \
    } while (0)

static int copies, releases;

static gpointer copy_text(gpointer data, gpointer) {
    copies++;
    return strdup(static_cast<char *>(static_cast<NvDsUserMeta *>(data)->user_meta_data));
}
static void release_text(gpointer data, gpointer) {
    releases++;
    free(static_cast<NvDsUserMeta *>(data)->user_meta_data);
}

static NvDsUserMeta *new_note(NvDsBatchMeta *batch) {
    NvDsUserMeta *note = nvds_acquire_user_meta_from_pool(batch);
    note->user_meta_data = strdup("note");
    note->base_meta.copy_func = copy_text;
    note->base_meta.release_func = release_text;
    return note;
}

static guint length(GList *list) {
    guint count = 0;
    for (; list != nullptr; list = list->next) count++;
    return count;
}

int main() {
    NvDsBatchMeta *batch = nvds_create_batch_meta(2);
    for (int f = 0; f < 2; f++) {
        NvDsFrameMeta *frame = nvds_acquire_frame_meta_from_pool(batch);
        frame->frame_num = f;
        nvds_add_frame_meta_to_batch(batch, frame);
        NvDsObjectMeta *parent = nullptr;
        for (int i = 0; i < 50; i++) {
            NvDsObjectMeta *object = nvds_acquire_obj_meta_from_pool(batch);
            object->class_id = i;
            nvds_add_obj_meta_to_frame(frame, object, parent);
            NvDsClassifierMeta *meta = nvds_acquire_classifier_meta_from_pool(batch);
            nvds_add_label_info_meta_to_classifier(meta,
                                                   nvds_acquire_label_info_meta_from_pool(batch));
            nvds_add_classifier_meta_to_object(object, meta);
            nvds_add_user_meta_to_obj(object, new_note(batch));
            if (i == 0) parent = object;
        }
        nvds_add_display_meta_to_frame(frame, nvds_acquire_display_meta_from_pool(batch));
        nvds_add_user_meta_to_frame(frame, new_note(batch));
    }
    nvds_add_user_meta_to_batch(batch, new_note(batch));
    nvds_acquire_obj_meta_from_pool(batch);  // never added: goes with the batch
    CHECK(batch->num_frames_in_batch == 2);
    NvDsFrameMeta *second = nvds_get_nth_frame_meta(batch->frame_meta_list, 1);
    CHECK(second->frame_num == 1);  // frames are in the order in which they came
    auto *newest = static_cast<NvDsObjectMeta *>(second->obj_meta_list->data);
    CHECK(newest->class_id == 49);  // objects the other way
    CHECK(newest->parent->class_id == 0);
    auto *copy = static_cast<NvDsBatchMeta *>(nvds_batch_meta_copy_func(batch, nullptr));
    CHECK(copies == 103);
    auto *copied = nvds_get_nth_frame_meta(copy->frame_meta_list, 1);
    auto *first = static_cast<NvDsObjectMeta *>(copied->obj_meta_list->data);
    CHECK(copied->num_obj_meta == 50);
    CHECK(first->class_id == 0);           // a copied list is the other way round
    CHECK(length(first->obj_user_meta_list) == 1);
    CHECK(first->base_meta.batch_meta == copy);
    auto *last = static_cast<NvDsObjectMeta *>(copied->obj_meta_list->next->data);
    CHECK(last->parent == nullptr);        // its parent was copied after it
    nvds_remove_obj_meta_from_frame(second, newest->parent);
    CHECK(newest->parent == nullptr);
    CHECK(second->num_obj_meta == 49);
    nvds_clear_obj_meta_list(second, second->obj_meta_list);
    CHECK(second->num_obj_meta == 0 && second->obj_meta_list == nullptr);
    CHECK(releases == 50);
    nvds_destroy_batch_meta(batch);
    CHECK(releases == 103);
    nvds_batch_meta_release_func(copy, nullptr);
    CHECK(releases == 206);

    NvBufSurface *a = nullptr, *b = nullptr;
    NvBufSurfaceCreateParams params{};
    params.width = 33;
    params.height = 17;
    params.colorFormat = NVBUF_COLOR_FORMAT_NV12;
    CHECK(NvBufSurfaceCreate(&a, 2, &params) == 0);
    CHECK(NvBufSurfaceCreate(&b, 2, &params) == 0);
    CHECK(a->surfaceList[0].planeParams.num_planes == 2);
    CHECK(NvBufSurfaceMemSet(a, 1, 0, 200) == 0);
    CHECK(NvBufSurfaceCopy(a, b) == 0);
    CHECK(NvBufSurfaceMap(b, 1, -1, NVBUF_MAP_READ) == 0);
    CHECK(NvBufSurfaceMap(b, 2, -1, NVBUF_MAP_READ) != 0);  // there are two images
    auto *pixels = static_cast<unsigned char *>(b->surfaceList[1].mappedAddr.addr[0]);
    CHECK(pixels[16 * b->surfaceList[1].planeParams.pitch[0] + 32] == 200);
    CHECK(NvBufSurfaceUnMap(b, 1, -1) == 0);
    CHECK(b->surfaceList[1].mappedAddr.addr[0] == nullptr);
    NvBufSurfaceDestroy(a);
    NvBufSurfaceDestroy(b);

    NvDsInferDBScanHandle handle = NvDsInferDBScanCreate();
    NvDsInferDBScanClusteringParams rules{0.5F, 2, 1, 60.0F, 0.5F};
    NvDsInferObjectDetectionInfo boxes[3]{};
    for (int i = 0; i < 3; i++) {
        boxes[i].left = i < 2 ? static_cast<float>(i) : 500.0F;
        boxes[i].width = boxes[i].height = 40;
        boxes[i].detectionConfidence = 0.5F;
    }
    size_t count = 3;
    NvDsInferDBScanClusterHybrid(handle, &rules, boxes, &count);
    CHECK(count == 2 && boxes[1].left == 1);  // the box that stands alone is left out
    NvDsInferDBScanCluster(handle, &rules, boxes, &count);
    CHECK(count == 1 && boxes[0].left == 0.5F && boxes[0].width == 40);
    NvDsInferDBScanDestroy(handle);
    char *host = nvds_get_hostname_with_ip();
    CHECK(host != nullptr && host[0] != 0);
    std::free(host);  // GLib allocates by malloc
    std::printf("right\n");
    return 0;
}
