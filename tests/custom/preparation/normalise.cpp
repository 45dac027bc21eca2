// A library of nvdspreprocess: what the standard one does with NCHW, and faults on demand.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "nvdspreprocess_interface.h"

struct CustomCtx {
    float scale = 1;
    std::string mode;
    int calls = 0;
    std::vector<NvDsRoiMeta> earlier;
};

extern "C" CustomCtx *initLib(CustomInitParams params) {
    auto *context = new CustomCtx;
    context->mode = params.user_configs["mode"];
    if (context->mode == "refuse") {
        delete context;
        return nullptr;
    }
    const std::string &scale = params.user_configs["pixel-normalization-factor"];
    if (!scale.empty()) context->scale = std::stof(scale);
    return context;
}

extern "C" void deInitLib(CustomCtx *context) { delete context; }

namespace {

void fill(const CustomCtx &context, const NvDsPreProcessBatch &batch,
          const CustomTensorParams &tensor, float *to) {
    const auto &shape = tensor.params.network_input_shape;
    const int height = shape[2], width = shape[3];
    const bool swapped = tensor.params.network_color_format == NvDsPreProcessFormat_BGR;
    for (const auto &unit : batch.units) {
        const auto *image = static_cast<const uint8_t *>(unit.converted_frame_ptr);
        for (int channel = 0; channel < 3; ++channel)
            for (int y = 0; y < height; ++y)
                for (int x = 0; x < width; ++x)
                    *to++ = context.scale *
                            image[y * batch.pitch + 4 * x + (swapped ? 2 - channel : channel)];
    }
}

// The metadata as numbers, one row a region.
void describe(const NvDsPreProcessBatch &batch, float *to, int columns) {
    for (const auto &unit : batch.units) {
        const NvDsFrameMeta &frame = *unit.frame_meta;
        const NvDsObjectMeta *object = unit.roi_meta.object_meta;
        const auto *luma = static_cast<const uint8_t *>(unit.input_surf_params->dataPtr);
        const auto &planes = unit.input_surf_params->planeParams;
        const float row[] = {float(frame.source_id),
                             float(frame.frame_num),
                             float(frame.num_obj_meta),
                             float(unit.batch_index),
                             unit.roi_meta.roi.left,
                             unit.roi_meta.roi.width,
                             object ? float(object->class_id) : -1,
                             object ? float(object->object_id) : -1,
                             object ? float(object->obj_label[0]) : -1,
                             float(unit.input_surf_params->width),
                             float(luma[0]),
                             float(luma[planes.offset[1]]),
                             float(batch.batch_meta->num_frames_in_batch)};
        for (int i = 0; i < columns; ++i) *to++ = i < int(sizeof row / sizeof *row) ? row[i] : 0;
    }
}

}  // namespace

extern "C" NvDsPreProcessStatus CustomTensorPreparation(CustomCtx *context,
                                                        NvDsPreProcessBatch *batch,
                                                        NvDsPreProcessCustomBuf *&buffer,
                                                        CustomTensorParams &tensor,
                                                        NvDsPreProcessAcquirer *acquirer) {
    const std::string &mode = context->mode;
    const int call = context->calls++;
    if (mode == "fail") return NVDSPREPROCESS_CUDA_ERROR;
    if (mode == "throw") throw std::runtime_error("dusty lens");
    if (mode == "crash" && call == 1) std::abort();
    if (mode == "hang")
        for (;;) {
        }
    if (mode == "no-buffer") return NVDSPREPROCESS_SUCCESS;
    if (mode == "wait" && call % 2 == 0) {
        for (const auto &unit : batch->units) context->earlier.push_back(unit.roi_meta);
        return NVDSPREPROCESS_TENSOR_NOT_READY;
    }
    buffer = acquirer->acquire();
    auto *to = static_cast<float *>(buffer->memory_ptr);
    if (mode == "describe")
        describe(*batch, to, tensor.params.network_input_shape[1]);
    else
        fill(*context, *batch, tensor, to);
    tensor.params.network_input_shape[0] = static_cast<int>(batch->units.size());
    if (mode == "wait") tensor.seq_params.roi_vector = context->earlier;
    if (mode == "too-many") tensor.params.network_input_shape[0] = 1 << 20;
    if (mode == "few-regions") tensor.seq_params.roi_vector.pop_back();
    return NVDSPREPROCESS_SUCCESS;
}
