/* GLib's own types where its headers are on the include path, else the same in short. */
#ifndef HEADRACE_GLIB_H
#define HEADRACE_GLIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__has_include)
#if __has_include(<glib.h>)
#define HEADRACE_HAS_GLIB
#endif
#endif
#ifdef HEADRACE_HAS_GLIB
#include <glib.h>
#else
typedef int gint;
typedef unsigned int guint;
typedef float gfloat;
typedef double gdouble;
typedef char gchar;
typedef int gboolean;
typedef void *gpointer;
typedef const void *gconstpointer;
typedef uint8_t guint8;
typedef uint16_t guint16;
typedef int32_t gint32;
typedef uint32_t guint32;
typedef int64_t gint64;
typedef uint64_t guint64;
typedef unsigned long gulong;
typedef size_t gsize;
typedef struct _GHashTable GHashTable;
typedef struct _GList GList;
struct _GList {
    gpointer data;
    GList *next;
    GList *prev;
};
typedef struct _GThread GThread;
typedef gpointer GMutex;
typedef struct {
    gpointer p;
    guint i[2];
} GRecMutex;
#ifndef TRUE
#define TRUE 1
#define FALSE 0
#endif
#endif

#endif
