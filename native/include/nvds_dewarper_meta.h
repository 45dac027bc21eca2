/* Surfaces of the dewarper, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDS_DEWARPER_META_H
#define HEADRACE_NVDS_DEWARPER_META_H

#include "headrace/glib.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MAX_DEWARPED_VIEWS 4

typedef enum {
    NVDS_META_SURFACE_NONE = 0,
    NVDS_META_SURFACE_FISH_PUSHBROOM = 1,
    NVDS_META_SURFACE_FISH_VERTCYL = 2,
    NVDS_META_SURFACE_PERSPECTIVE_PERSPECTIVE = 3,
    NVDS_META_SURFACE_FISH_PERSPECTIVE = 4,
    NVDS_META_SURFACE_FISH_FISH = 5,
    NVDS_META_SURFACE_FISH_CYL = 6,
    NVDS_META_SURFACE_FISH_EQUIRECT = 7,
    NVDS_META_SURFACE_FISH_PANINI = 8,
    NVDS_META_SURFACE_PERSPECTIVE_EQUIRECT = 9,
    NVDS_META_SURFACE_PERSPECTIVE_PANINI = 10,
    NVDS_META_SURFACE_EQUIRECT_CYLINDER = 11,
    NVDS_META_SURFACE_EQUIRECT_EQUIRECT = 12,
    NVDS_META_SURFACE_EQUIRECT_FISHEYE = 13,
    NVDS_META_SURFACE_EQUIRECT_PANINI = 14,
    NVDS_META_SURFACE_EQUIRECT_PERSPECTIVE = 15,
    NVDS_META_SURFACE_EQUIRECT_PUSHBROOM = 16,
    NVDS_META_SURFACE_EQUIRECT_STEREOGRAPHIC = 17,
    NVDS_META_SURFACE_EQUIRECT_VERTCYLINDER = 18
} NvDsSurfaceType;

typedef struct _NvDewarperSurfaceMeta NvDewarperSurfaceMeta;

struct _NvDewarperSurfaceMeta {
    guint type[4];
    guint index[4];
    guint source_id;
    guint num_filled_surfaces;
};

#ifdef __cplusplus
}
#endif

#endif
