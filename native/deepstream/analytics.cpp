// Results of nvdsanalytics as C++ code reads them: containers of the standard
// library, filled by Python, which frees them.
#include "nvds_analytics_meta.h"

#include "library.h"

namespace {

// The maps of a frame and the lists of an object, in the order of their
// headers.
enum Field { kCrowd, kRegion, kCrossedNow, kCrossed, kClass };

NvDsAnalyticsFrameMeta *frame_of(void *meta) { return static_cast<NvDsAnalyticsFrameMeta *>(meta); }
NvDsAnalyticsObjInfo *object_of(void *meta) { return static_cast<NvDsAnalyticsObjInfo *>(meta); }

}  // namespace

HEADRACE_PUBLIC void *headrace_new_frame_analytics(guint unique_id) {
    auto *meta = new NvDsAnalyticsFrameMeta();
    meta->unique_id = unique_id;
    return meta;
}

// Notes a value under the name of a rule; under `number` for a class.
HEADRACE_PUBLIC void headrace_note_analytics(void *meta, int field, const char *name, int number,
                                             guint64 value) {
    NvDsAnalyticsFrameMeta *frame = frame_of(meta);
    switch (field) {
    case kCrowd: frame->ocStatus[name] = value != 0; break;
    case kRegion: frame->objInROIcnt[name] = static_cast<uint32_t>(value); break;
    case kCrossedNow: frame->objLCCurrCnt[name] = value; break;
    case kCrossed: frame->objLCCumCnt[name] = value; break;
    default: frame->objCnt[number] = static_cast<uint32_t>(value); break;
    }
}

HEADRACE_PUBLIC void headrace_free_frame_analytics(void *meta) { delete frame_of(meta); }

HEADRACE_PUBLIC void *headrace_new_object_analytics(guint unique_id, const char *direction,
                                                    const char *status) {
    auto *meta = new NvDsAnalyticsObjInfo();
    meta->unique_id = unique_id;
    meta->dirStatus = direction;
    meta->objStatus = status;
    return meta;
}

HEADRACE_PUBLIC void headrace_add_analytics(void *meta, int list, const char *name) {
    NvDsAnalyticsObjInfo *object = object_of(meta);
    std::vector<std::string> *const lists[] = {&object->roiStatus, &object->ocStatus,
                                               &object->lcStatus};
    lists[list]->emplace_back(name);
}

HEADRACE_PUBLIC void headrace_free_object_analytics(void *meta) { delete object_of(meta); }
