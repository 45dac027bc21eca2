// JPEG images of objects: not written from C. A program runs on without them and is told so once.
#include <cstdio>

#include "library.h"
#include "nvds_obj_encode.h"

namespace {

int context;

}  // namespace

HEADRACE_PUBLIC NvDsObjEncCtxHandle nvds_obj_enc_create_context(int) { return &context; }
HEADRACE_PUBLIC void nvds_obj_enc_destroy_context(NvDsObjEncCtxHandle) {}
HEADRACE_PUBLIC void nvds_obj_enc_finish(NvDsObjEncCtxHandle) {}
HEADRACE_PUBLIC bool nvds_obj_enc_process(NvDsObjEncCtxHandle, NvDsObjEncUsrArgs *, NvBufSurface *,
                                          NvDsObjectMeta *, NvDsFrameMeta *) {
    static bool is_told = false;
    if (!is_told)
        std::fprintf(stderr,
                     "headrace: nvds_obj_enc_process: images of objects are not encoded "
                     "for C applications; no metadata is added\n");
    is_told = true;
    return false;
}
