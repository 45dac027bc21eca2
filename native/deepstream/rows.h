// Frames and objects as Python passes them, and the metadata that a user's library sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gstnvdsmeta.h"
#include "nvbufsurface.h"

namespace headrace::deepstream {

// Rows as NumPy makes them; 8-byte numbers stand first, so there are no gaps.
struct FrameRow {
    uint64_t pts_ns, image, image_size;  // address of NV12; 0: none
    uint32_t source_id, width, height, pitch, chroma_offset;
    int32_t number;
};
struct ObjectRow {
    uint64_t object_id;
    float left, top, width, height, confidence;
    int32_t class_id, component_id, frame;
    char label[128];
};
static_assert(sizeof(FrameRow) == 48 && sizeof(ObjectRow) == 168);

// The metadata of one call: they stay where they are, as the library keeps pointers.
struct Metadata {
    NvDsBatchMeta batch{};
    std::vector<NvDsFrameMeta> frames;
    std::vector<NvDsObjectMeta> objects;
    std::vector<GList> frame_nodes, object_nodes;
    std::vector<NvBufSurfaceParams> images, converted;

    Metadata(const FrameRow *frame_rows, size_t frame_count, const ObjectRow *object_rows,
             size_t object_count)
        : frames(frame_count),
          objects(object_count),
          frame_nodes(frame_count),
          object_nodes(object_count),
          images(frame_count) {
        batch.base_meta.batch_meta = &batch;
        batch.base_meta.meta_type = NVDS_BATCH_META;
        batch.max_frames_in_batch = batch.num_frames_in_batch = static_cast<guint>(frame_count);
        for (size_t i = 0; i < frame_count; ++i) add_frame(i, frame_rows[i]);
        link(frame_nodes, 0, frame_count, &batch.frame_meta_list);
        for (size_t i = 0; i < frame_count; ++i) link(frame_nodes, i, &frames[i]);
        for (size_t i = object_count; i-- > 0;) add_object(i, object_rows[i]);
    }

private:
    static void link(std::vector<GList> &nodes, size_t at, void *data) { nodes[at].data = data; }

    static void link(std::vector<GList> &nodes, size_t first, size_t count, GList **start) {
        for (size_t i = first; i + 1 < first + count; ++i) {
            nodes[i].next = &nodes[i + 1];
            nodes[i + 1].prev = &nodes[i];
        }
        *start = count == 0 ? nullptr : &nodes[first];
    }

    void add_frame(size_t at, const FrameRow &row) {
        NvDsFrameMeta &frame = frames[at];
        frame.base_meta.batch_meta = &batch;
        frame.base_meta.meta_type = NVDS_FRAME_META;
        frame.pad_index = frame.source_id = row.source_id;
        frame.batch_id = static_cast<guint>(at);
        frame.frame_num = row.number;
        frame.buf_pts = row.pts_ns;
        frame.num_surfaces_per_frame = 1;
        frame.source_frame_width = frame.pipeline_width = row.width;
        frame.source_frame_height = frame.pipeline_height = row.height;
        frame.bInferDone = TRUE;
        NvBufSurfaceParams &image = images[at];
        image.width = row.width;
        image.height = row.height;
        image.pitch = row.pitch;
        image.colorFormat = NVBUF_COLOR_FORMAT_NV12;
        image.dataSize = static_cast<uint32_t>(row.image_size);
        image.dataPtr = reinterpret_cast<void *>(row.image);
        auto &planes = image.planeParams;
        planes.num_planes = 2;
        for (uint32_t k = 0; k < 2; ++k) {
            planes.width[k] = (row.width + k) / (k + 1);
            planes.height[k] = (row.height + k) / (k + 1);
            planes.pitch[k] = row.pitch;
            planes.offset[k] = k * row.chroma_offset;
            planes.bytesPerPix[k] = k + 1;
            planes.psize[k] = row.pitch * planes.height[k];
            if (row.image != 0)
                image.mappedAddr.addr[k] = static_cast<uint8_t *>(image.dataPtr) + planes.offset[k];
        }
    }

    void add_object(size_t at, const ObjectRow &row) {
        NvDsObjectMeta &object = objects[at];
        NvDsFrameMeta &frame = frames[static_cast<size_t>(row.frame)];
        object.base_meta.batch_meta = &batch;
        object.base_meta.meta_type = NVDS_OBJ_META;
        object.unique_component_id = row.component_id;
        object.class_id = row.class_id;
        object.object_id = row.object_id;
        object.confidence = row.confidence;
        auto &rect = object.rect_params;
        auto &detected = object.detector_bbox_info.org_bbox_coords;
        rect.left = detected.left = row.left;
        rect.top = detected.top = row.top;
        rect.width = detected.width = row.width;
        rect.height = detected.height = row.height;
        std::memcpy(object.obj_label, row.label, sizeof object.obj_label - 1);
        GList &node = object_nodes[at];
        node.data = &object;
        node.next = frame.obj_meta_list;
        if (node.next != nullptr) node.next->prev = &node;
        frame.obj_meta_list = &node;
        ++frame.num_obj_meta;
    }
};

}  // namespace headrace::deepstream
