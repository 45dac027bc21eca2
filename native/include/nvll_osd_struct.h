/* Figures of the on-screen display, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVLL_OSD_STRUCT_H
#define HEADRACE_NVLL_OSD_STRUCT_H

#include "headrace/glib.h"
#include "headrace/generation.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    MODE_CPU = 0,
    MODE_GPU = 1,
    MODE_NONE = 2
} NvOSD_Mode;

typedef enum {
    START_HEAD = 0,
    END_HEAD = 1,
    BOTH_HEAD = 2
} NvOSD_Arrow_Head_Direction;

typedef struct _NvBbox_Coords NvBbox_Coords;
typedef struct _NvOSD_ColorParams NvOSD_ColorParams;
typedef struct _NvOSD_FontParams NvOSD_FontParams;
typedef struct _NvOSD_TextParams NvOSD_TextParams;
typedef struct _NvOSD_Color_info NvOSD_Color_info;
typedef struct _NvOSD_RectParams NvOSD_RectParams;
typedef struct _NvOSD_MaskParams NvOSD_MaskParams;
typedef struct _NvOSD_LineParams NvOSD_LineParams;
typedef struct _NvOSD_ArrowParams NvOSD_ArrowParams;
typedef struct _NvOSD_CircleParams NvOSD_CircleParams;

struct _NvBbox_Coords {
    float left;
    float top;
    float width;
    float height;
};

struct _NvOSD_ColorParams {
    double red;
    double green;
    double blue;
    double alpha;
};

struct _NvOSD_FontParams {
    char* font_name;
    unsigned int font_size;
    NvOSD_ColorParams font_color;
};

struct _NvOSD_TextParams {
    char* display_text;
    unsigned int x_offset;
    unsigned int y_offset;
    NvOSD_FontParams font_params;
    int set_bg_clr;
    NvOSD_ColorParams text_bg_clr;
};

struct _NvOSD_Color_info {
    int id;
    NvOSD_ColorParams color;
};

struct _NvOSD_RectParams {
    float left;
    float top;
    float width;
    float height;
    unsigned int border_width;
    NvOSD_ColorParams border_color;
    unsigned int has_bg_color;
    unsigned int reserved;
    NvOSD_ColorParams bg_color;
    int has_color_info;
    int color_id;
    float rotation_angle;
};

struct _NvOSD_MaskParams {
    float* data;
    unsigned int size;
    float threshold;
    unsigned int width;
    unsigned int height;
};

struct _NvOSD_LineParams {
    unsigned int x1;
    unsigned int y1;
    unsigned int x2;
    unsigned int y2;
    unsigned int line_width;
    NvOSD_ColorParams line_color;
};

struct _NvOSD_ArrowParams {
    unsigned int x1;
    unsigned int y1;
    unsigned int x2;
    unsigned int y2;
    unsigned int arrow_width;
    NvOSD_Arrow_Head_Direction arrow_head;
    NvOSD_ColorParams arrow_color;
    unsigned int reserved;
};

struct _NvOSD_CircleParams {
    unsigned int xc;
    unsigned int yc;
    unsigned int radius;
    NvOSD_ColorParams circle_color;
    unsigned int has_bg_color;
    NvOSD_ColorParams bg_color;
    unsigned int circle_width;
    unsigned int reserved;
};

#ifdef __cplusplus
}
#endif

#endif
