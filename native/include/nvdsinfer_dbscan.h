/* Clustering of boxes, in place, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDSINFER_DBSCAN_H
#define HEADRACE_NVDSINFER_DBSCAN_H

#include "headrace/glib.h"
#include "nvdsinfer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _NvDsInferDBScanClusteringParams NvDsInferDBScanClusteringParams;
typedef struct NvDsInferDBScan* NvDsInferDBScanHandle;

struct _NvDsInferDBScanClusteringParams {
    float eps;
    uint32_t minBoxes;
    int enableATHRFilter;
    float thresholdATHR;
    float minScore;
};

NvDsInferDBScanHandle NvDsInferDBScanCreate(void);
void NvDsInferDBScanDestroy(NvDsInferDBScanHandle handle);
void NvDsInferDBScanCluster(NvDsInferDBScanHandle handle,NvDsInferDBScanClusteringParams * params,NvDsInferObjectDetectionInfo * objects,size_t * numObjects);
void NvDsInferDBScanClusterHybrid(NvDsInferDBScanHandle handle,NvDsInferDBScanClusteringParams * params,NvDsInferObjectDetectionInfo * objects,size_t * numObjects);

#ifdef __cplusplus
}
#endif

#endif
