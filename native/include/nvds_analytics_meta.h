// Results of nvdsanalytics, in the layout of 9.1. Part of headrace, Apache-2.0.
#ifndef HEADRACE_NVDS_ANALYTICS_META_H
#define HEADRACE_NVDS_ANALYTICS_META_H

#include <string>
#include <unordered_map>
#include <vector>

#include "headrace/glib.h"

#define NVDS_USER_FRAME_META_NVDSANALYTICS \
    (nvds_get_user_meta_type((gchar *)"NVIDIA.DSANALYTICSFRAME.USER_META"))
#define NVDS_USER_OBJ_META_NVDSANALYTICS \
    (nvds_get_user_meta_type((gchar *)"NVIDIA.DSANALYTICSOBJ.USER_META"))

typedef struct {
    std::vector<std::string> roiStatus;
    std::vector<std::string> ocStatus;
    std::vector<std::string> lcStatus;
    std::string dirStatus;
    guint unique_id;
    std::string objStatus;
} NvDsAnalyticsObjInfo;

typedef struct {
    std::unordered_map<std::string, bool> ocStatus;
    std::unordered_map<std::string, uint32_t> objInROIcnt;
    std::unordered_map<std::string, uint64_t> objLCCurrCnt;
    std::unordered_map<std::string, uint64_t> objLCCumCnt;
    guint unique_id;
    std::unordered_map<int, uint32_t> objCnt;
} NvDsAnalyticsFrameMeta;

#endif
