/* Properties that elements of the DeepStream kind share, and checks of memory.
 *
 * Part of headrace, Apache-2.0. */
#ifndef HEADRACE_GST_NVCOMMON_H
#define HEADRACE_GST_NVCOMMON_H

#include "headrace/gst.h"

#ifdef __cplusplus
extern "C" {
#endif

GType gst_nvbuf_memory_get_type(void);
GType gst_compute_hw_get_type(void);
GType gst_video_interpolation_method_get_type(void);
int gst_nvbuf_memory_get_value(const char *mem_type_string);

#ifdef __cplusplus
}
#endif

#define GST_TYPE_NVBUF_MEMORY_TYPE (gst_nvbuf_memory_get_type())
#define GST_TYPE_COMPUTE_HW (gst_compute_hw_get_type())
#define GST_TYPE_INTERPOLATION_METHOD (gst_video_interpolation_method_get_type())

/* All memory is main memory: every surface can be read. */
#define CHECK_DEFAULT_MEM(first, second) 1
#define GET_DEFAULT_MEM_TYPE(mem_type)  \
    do {                                \
        (mem_type) = NVBUF_MEM_DEFAULT; \
    } while (0)
#define CHECK_NVDS_MEMORY_AND_GPUID(object, surface) ((void)(object), (void)(surface), 0)

#define HEADRACE_INSTALL(class_, id, spec) g_object_class_install_property((class_), (id), (spec))
#define HEADRACE_READY \
    ((GParamFlags)(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY))
#define PROP_NVDS_GPU_ID_INSTALL(class_)                                                      \
    HEADRACE_INSTALL(class_, PROP_GPU_DEVICE_ID,                                              \
                     g_param_spec_uint("gpu-id", "Set GPU Device ID", "Set GPU Device ID", 0, \
                                       G_MAXUINT, 0, HEADRACE_READY))
#define PROP_NVBUF_MEMORY_TYPE_INSTALL(class_)                                                  \
    HEADRACE_INSTALL(class_, PROP_NVBUF_MEMORY_TYPE,                                            \
                     g_param_spec_enum("nvbuf-memory-type", "Kind of memory", "Kind of memory", \
                                       GST_TYPE_NVBUF_MEMORY_TYPE, 0, HEADRACE_READY))
#define PROP_COMPUTE_HW_INSTALL(class_)                                                        \
    HEADRACE_INSTALL(class_, PROP_COMPUTE_HW,                                                  \
                     g_param_spec_enum("compute-hw", "Device of scaling", "Device of scaling", \
                                       GST_TYPE_COMPUTE_HW, 0, HEADRACE_READY))
#define PROP_INTERPOLATION_METHOD_INSTALL(class_)                                                  \
    HEADRACE_INSTALL(class_, PROP_INTERPOLATION_METHOD,                                            \
                     g_param_spec_enum("interpolation-method", "Way of scaling", "Way of scaling", \
                                       GST_TYPE_INTERPOLATION_METHOD, 1, HEADRACE_READY))

#endif
