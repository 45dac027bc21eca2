/* GStreamer's own types where its headers are on the include path, else the same in short. */
#ifndef HEADRACE_GST_H
#define HEADRACE_GST_H

#include "glib.h"

#ifdef HEADRACE_HAS_GLIB
#if __has_include(<gst/gst.h>)
#define HEADRACE_HAS_GST
#endif
#endif
#ifdef HEADRACE_HAS_GST
#include <gst/gst.h>
#else
typedef struct _GstBuffer GstBuffer;
typedef struct _GstElement GstElement;
typedef struct _GstEvent GstEvent;
typedef struct _GstMessage GstMessage;
typedef struct _GstObject GstObject;
typedef struct _GstPad GstPad;
typedef struct _GstQuery GstQuery;
typedef struct _GstSegment GstSegment;
typedef struct _GstStructure GstStructure;
typedef struct _GstMetaInfo GstMetaInfo;
typedef struct {
    gint flags;
    const GstMetaInfo *info;
} GstMeta;
#ifndef HEADRACE_HAS_GLIB
typedef gulong GType;
#endif
#endif

#endif
