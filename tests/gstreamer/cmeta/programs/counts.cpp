// Reads the results of nvdsanalytics as an application in C++ does.
#include <cstdio>

#include "nvds_analytics_meta.h"

extern "C" int describe(void *frame_address, void *object_address, char *text, int room) {
    auto *frame = static_cast<NvDsAnalyticsFrameMeta *>(frame_address);
    auto *object = static_cast<NvDsAnalyticsObjInfo *>(object_address);
    return std::snprintf(
        text, static_cast<size_t>(room), "%u %d %u %lu %lu %u / %u %zu %s %s %s", frame->unique_id,
        static_cast<int>(frame->ocStatus.at("crowd")), frame->objInROIcnt.at("area"),
        static_cast<unsigned long>(frame->objLCCurrCnt.at("exit")),
        static_cast<unsigned long>(frame->objLCCumCnt.at("exit")), frame->objCnt.at(2),
        object->unique_id, object->roiStatus.size(), object->lcStatus.at(0).c_str(),
        object->dirStatus.c_str(), object->objStatus.c_str());
}
