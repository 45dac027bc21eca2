// Clustering of boxes for applications that parse raw outputs, as nvinfer does it.
#include <vector>

#include "cluster/cluster.h"
#include "library.h"
#include "nvdsinfer_dbscan.h"

struct NvDsInferDBScan {};

namespace {

using headrace::cluster::ClassParams;
using headrace::cluster::Input;
using headrace::cluster::Object;
using headrace::cluster::Rows;

// The objects of one class as the rows that clustering takes.
struct Table {
    std::vector<float> boxes, scores;
    std::vector<std::int32_t> classes;
    Rows rows;

    Table(const NvDsInferObjectDetectionInfo *objects, size_t count) : classes(count, 0) {
        for (size_t i = 0; i < count; i++) {
            const NvDsInferObjectDetectionInfo &one = objects[i];
            boxes.insert(boxes.end(), {one.left, one.top, one.width, one.height});
            scores.push_back(one.detectionConfidence);
            rows.push_back(static_cast<std::int32_t>(i));
        }
    }
    Input input() const { return {boxes.data(), scores.data(), classes.data(), rows.size()}; }
};

ClassParams rules(const NvDsInferDBScanClusteringParams &params) {
    ClassParams all{};
    all.eps = params.eps;
    all.min_boxes = static_cast<std::int32_t>(params.minBoxes);
    all.min_score = params.minScore;
    return all;
}

bool is_right(const NvDsInferDBScanClusteringParams *params,
              const NvDsInferObjectDetectionInfo *objects, const size_t *count) {
    return params != nullptr && count != nullptr && (objects != nullptr || *count == 0);
}

}  // namespace

HEADRACE_PUBLIC NvDsInferDBScanHandle NvDsInferDBScanCreate(void) { return new NvDsInferDBScan; }
HEADRACE_PUBLIC void NvDsInferDBScanDestroy(NvDsInferDBScanHandle handle) { delete handle; }

// Puts merged boxes in the place of those that form clusters, and counts them.
HEADRACE_PUBLIC void NvDsInferDBScanCluster(NvDsInferDBScanHandle,
                                            NvDsInferDBScanClusteringParams *params,
                                            NvDsInferObjectDetectionInfo *objects, size_t *count) {
    if (!is_right(params, objects, count)) return;
    const Table table(objects, *count);
    headrace::cluster::Patience patience;
    std::vector<Object> merged;
    headrace::cluster::dbscan_merge(table.input(), table.rows, rules(*params), merged, nullptr,
                                    patience);
    const std::vector<NvDsInferObjectDetectionInfo> before(objects, objects + *count);
    *count = merged.size();
    for (size_t i = 0; i < merged.size(); i++) {
        const Object &one = merged[i];
        objects[i] = before[static_cast<size_t>(one.row)];
        objects[i].left = one.box[0];
        objects[i].top = one.box[1];
        objects[i].width = one.box[2];
        objects[i].height = one.box[3];
        objects[i].detectionConfidence = one.score;
    }
}

// Keeps the boxes that belong to clusters, as they are.
HEADRACE_PUBLIC void NvDsInferDBScanClusterHybrid(NvDsInferDBScanHandle,
                                                  NvDsInferDBScanClusteringParams *params,
                                                  NvDsInferObjectDetectionInfo *objects,
                                                  size_t *count) {
    if (!is_right(params, objects, count)) return;
    const Table table(objects, *count);
    headrace::cluster::Patience patience;
    const Rows kept = headrace::cluster::dbscan_members(table.input(), table.rows, rules(*params),
                                                        nullptr, patience);
    for (size_t i = 0; i < kept.size(); i++) objects[i] = objects[static_cast<size_t>(kept[i])];
    *count = kept.size();
}
