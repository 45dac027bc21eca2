// Libraries of nvdspreprocess: the user's function makes a tensor of scaled images.
//
// Python passes plain rows; the metadata that the library sees are made of them for one call.
// Fields: the manual of Gst-nvdspreprocess and the public header of its interface, 9.1.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "generation.h"
#include "library.h"
#include "nvdspreprocess_interface.h"
#include "rows.h"
#include "thrown.h"

using namespace headrace::deepstream;

namespace {

constexpr size_t kBuffers = 64;  // lent at once to a library that gives none back
constexpr size_t kKept = 64;     // calls whose metadata stay: sequences remember earlier regions
constexpr int kBadAnswer = -2;
constexpr int kMaxDims = 16;

// Rows as NumPy makes them; 8-byte numbers stand first, so there are no gaps.
struct SettingsRow {
    uint64_t buffer_size;
    const char *tensor_name, *config_path;
    const char *const *texts;  // keys and values by turns
    const int32_t *shape;
    int32_t dims, pairs;
    uint32_t unique_id;
    int32_t order, color, data_type;
};
struct RegionRow {
    double ratio_x, ratio_y, offset_left, offset_top;
    float left, top, width, height;
    int32_t frame, object;  // -1: no object
};
static_assert(sizeof(SettingsRow) == 64 && sizeof(RegionRow) == 56);

struct Lent final : NvDsPreProcessCustomBuf {
    std::unique_ptr<uint8_t[]> memory;
    bool free = true;
};

class Acquirer final : public NvDsPreProcessAcquirer {
public:
    explicit Acquirer(size_t size) : size_(size) {}

    NvDsPreProcessCustomBuf *acquire() override {
        for (auto &one : all_)
            if (one->free) return lend(*one);
        if (all_.size() == kBuffers) return nullptr;
        all_.push_back(std::make_unique<Lent>());
        all_.back()->memory = std::make_unique<uint8_t[]>(size_);
        return lend(*all_.back());
    }

    gboolean release(NvDsPreProcessCustomBuf *buffer) override {
        Lent *const own = find(buffer);
        if (own != nullptr) own->free = true;
        return own != nullptr;
    }

    Lent *find(const NvDsPreProcessCustomBuf *buffer) {
        for (auto &one : all_)
            if (one.get() == buffer) return one.get();
        return nullptr;
    }

private:
    static NvDsPreProcessCustomBuf *lend(Lent &one) {
        one.free = false;
        one.memory_ptr = one.memory.get();
        return &one;
    }

    size_t size_;
    std::vector<std::unique_ptr<Lent>> all_;
};

using Init = CustomCtx *(CustomInitParams);
using End = void(CustomCtx *);
using Prepare = NvDsPreProcessStatus(CustomCtx *, NvDsPreProcessBatch *, NvDsPreProcessCustomBuf *&,
                                     CustomTensorParams &, NvDsPreProcessAcquirer *);

struct Preparation {
    CustomCtx *context = nullptr;
    End *end = nullptr;
    Prepare *prepare = nullptr;
    CustomInitParams params;
    std::string config_path;
    Acquirer acquirer;
    std::deque<std::unique_ptr<Metadata>> kept;
    gulong calls = 0;

    explicit Preparation(const SettingsRow &row)
        : config_path(row.config_path), acquirer(row.buffer_size) {
        auto &tensor = params.tensor_params;
        tensor.network_input_order = static_cast<NvDsPreProcessNetworkInputOrder>(row.order);
        tensor.network_input_shape.assign(row.shape, row.shape + row.dims);
        tensor.network_color_format = static_cast<NvDsPreProcessFormat>(row.color);
        tensor.buffer_size = row.buffer_size;
        tensor.data_type = static_cast<NvDsDataType>(row.data_type);
        tensor.memory_type = NVBUF_MEM_CUDA_UNIFIED;
        tensor.tensor_name = row.tensor_name;
        params.unique_id = row.unique_id;
        for (int i = 0; i < row.pairs; ++i)
            params.user_configs[row.texts[2 * i]] = row.texts[2 * i + 1];
        params.config_file_path = config_path.data();
    }
};

// The images of a call: one each region, rows of `pitch` bytes.
struct Images {
    uint8_t *start;
    uint32_t width, height, pixel;
    uint32_t pitch() const { return width * pixel; }
};

NvBufSurfaceParams converted(const Images &images, size_t at) {
    NvBufSurfaceParams one{};
    one.width = images.width;
    one.height = images.height;
    one.pitch = images.pitch();
    one.colorFormat = images.pixel == 4 ? NVBUF_COLOR_FORMAT_RGBA : NVBUF_COLOR_FORMAT_GRAY8;
    one.dataSize = one.pitch * one.height;
    one.dataPtr = one.mappedAddr.addr[0] = images.start + at * one.dataSize;
    one.planeParams.num_planes = 1;
    one.planeParams.width[0] = one.width;
    one.planeParams.height[0] = one.height;
    one.planeParams.pitch[0] = one.pitch;
    one.planeParams.psize[0] = one.dataSize;
    one.planeParams.bytesPerPix[0] = images.pixel;
    return one;
}

NvDsRoiMeta region_of(const RegionRow &row, Metadata &meta, NvBufSurfaceParams *image) {
    NvDsRoiMeta region{};
    region.roi.left = row.left;
    region.roi.top = row.top;
    region.roi.width = row.width;
    region.roi.height = row.height;
    region.converted_buffer = image;
    region.frame_meta = &meta.frames[static_cast<size_t>(row.frame)];
    region.scale_ratio_x = row.ratio_x;
    region.scale_ratio_y = row.ratio_y;
    region.offset_left = row.offset_left;
    region.offset_top = row.offset_top;
    if (row.object >= 0) region.object_meta = &meta.objects[static_cast<size_t>(row.object)];
    return region;
}

// Finds the frame of a region in this call: the very one, or that of its source now; -1 without.
int32_t frame_in(const Preparation &all, const NvDsFrameMeta *frame) {
    const Metadata &now = *all.kept.back();
    for (const auto &call : all.kept) {
        for (const NvDsFrameMeta &known : call->frames) {
            if (&known != frame) continue;
            for (size_t i = now.frames.size(); i-- > 0;)
                if (now.frames[i].source_id == known.source_id) return static_cast<int32_t>(i);
        }
    }
    return -1;
}

RegionRow row_of(const NvDsRoiMeta &region, const Preparation &all) {
    RegionRow row{};
    const Metadata &now = *all.kept.back();
    row.ratio_x = region.scale_ratio_x;
    row.ratio_y = region.scale_ratio_y;
    row.offset_left = region.offset_left;
    row.offset_top = region.offset_top;
    row.left = region.roi.left;
    row.top = region.roi.top;
    row.width = region.roi.width;
    row.height = region.roi.height;
    row.frame = frame_in(all, region.frame_meta);
    row.object = -1;
    for (size_t i = 0; i < now.objects.size() && region.object_meta != nullptr; ++i)
        if (&now.objects[i] == region.object_meta) row.object = static_cast<int32_t>(i);
    for (size_t i = 0; i < now.frames.size(); ++i)
        if (&now.frames[i] == region.frame_meta) row.frame = static_cast<int32_t>(i);
    return row;
}

int bad_answer(const std::string &text) {
    last_error() = text;
    return kBadAnswer;
}

}  // namespace

HEADRACE_PUBLIC const char *headrace_preparation_error() { return last_error().c_str(); }

// Calls initLib; null where it cannot, see `headrace_preparation_error`.
HEADRACE_PUBLIC void *headrace_preparation_open(void *init, void *end, void *prepare,
                                                const SettingsRow *row) {
    if (!same_layout(init)) {
        last_error() = "it was compiled with headers of another release than 9.x";
        return nullptr;
    }
    auto all = std::make_unique<Preparation>(*row);
    all->end = reinterpret_cast<End *>(end);
    all->prepare = reinterpret_cast<Prepare *>(prepare);
    const int done = guarded([&] {
        all->context = reinterpret_cast<Init *>(init)(all->params);
        return all->context != nullptr;
    });
    if (done == 0) last_error() = "initLib returned null";
    return done == 1 ? all.release() : nullptr;
}

// Calls the user's function. Returns its status; -1 where it raised, -2 where its answer cannot be
// right, see `headrace_preparation_error`. With status 0 `tensor` holds the values, `shape` and
// `dims` its shape, `found` a region for each row of the tensor.
HEADRACE_PUBLIC int headrace_preparation_call(void *preparation, const FrameRow *frames,
                                              size_t frame_count, const ObjectRow *objects,
                                              size_t object_count, const RegionRow *regions,
                                              size_t region_count, uint8_t *scaled, uint32_t width,
                                              uint32_t height, uint32_t pixel, uint8_t *tensor,
                                              int32_t *shape, int32_t *dims, RegionRow *found,
                                              size_t room) {
    auto &all = *static_cast<Preparation *>(preparation);
    if (all.kept.size() == kKept) all.kept.pop_front();
    all.kept.push_back(std::make_unique<Metadata>(frames, frame_count, objects, object_count));
    Metadata &meta = *all.kept.back();
    const Images images{scaled, width, height, pixel};
    NvDsPreProcessBatch batch{};
    CustomTensorParams params;
    params.params = all.params.tensor_params;
    const auto &full = all.params.tensor_params;
    params.params.buffer_size =
        full.buffer_size * region_count / static_cast<size_t>(full.network_input_shape[0]);
    meta.converted.reserve(region_count);
    for (size_t i = 0; i < region_count; ++i) meta.converted.push_back(converted(images, i));
    for (size_t i = 0; i < region_count; ++i) {
        NvDsPreProcessUnit unit{};
        const auto at = static_cast<size_t>(regions[i].frame);
        unit.frame_meta = &meta.frames[at];
        unit.batch_index = static_cast<guint>(at);
        unit.frame_num = static_cast<gulong>(unit.frame_meta->frame_num);
        unit.input_surf_params = &meta.images[at];
        unit.converted_frame_ptr = meta.converted[i].dataPtr;
        unit.roi_meta = region_of(regions[i], meta, &meta.converted[i]);
        batch.units.push_back(unit);
        params.seq_params.roi_vector.push_back(unit.roi_meta);
    }
    batch.inbuf_batch_num = all.calls++;
    batch.scaling_pool_format = pixel == 4 ? NvDsPreProcessFormat_RGBA : NvDsPreProcessFormat_GRAY;
    batch.batch_meta = &meta.batch;
    batch.pitch = images.pitch();
    NvDsPreProcessCustomBuf *buffer = nullptr;
    const int status =
        guarded([&] { return all.prepare(all.context, &batch, buffer, params, &all.acquirer); });
    Lent *const own = all.acquirer.find(buffer);
    if (status != 0) {
        if (own != nullptr) own->free = true;
        return status;
    }
    if (own == nullptr) return bad_answer("it returned no buffer of its acquirer");
    const auto &made = params.params.network_input_shape;
    const auto &rois = params.seq_params.roi_vector;
    uint64_t values = 1, all_values = 1;
    for (const int size : full.network_input_shape) all_values *= static_cast<uint64_t>(size);
    if (made.empty() || made.size() > kMaxDims)
        return bad_answer("it returned a shape of " + std::to_string(made.size()) + " dimensions");
    for (const int size : made) {
        if (size <= 0 || (values *= static_cast<uint64_t>(size)) > all_values)
            return bad_answer("it returned a shape that is larger than its buffer");
    }
    if (rois.size() != static_cast<size_t>(made[0]) || rois.size() > room)
        return bad_answer("it returned " + std::to_string(rois.size()) + " regions for " +
                          std::to_string(made[0]) + " rows");
    for (size_t i = 0; i < rois.size(); ++i) found[i] = row_of(rois[i], all);
    std::copy(made.begin(), made.end(), shape);
    *dims = static_cast<int32_t>(made.size());
    std::memcpy(tensor, own->memory.get(), values * (full.buffer_size / all_values));
    own->free = true;
    return 0;
}

HEADRACE_PUBLIC void headrace_preparation_close(void *preparation) {
    const std::unique_ptr<Preparation> all(static_cast<Preparation *>(preparation));
    if (all->end != nullptr) {
        guarded([&] {
            all->end(all->context);
            return true;
        });
    }
}
