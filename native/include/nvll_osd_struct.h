/* Types of drawing, as the fields of metadata need them. */
#ifndef HEADRACE_NVLL_OSD_STRUCT_H
#define HEADRACE_NVLL_OSD_STRUCT_H

typedef struct _NvOSD_ColorParams {
    double red, green, blue, alpha;
} NvOSD_ColorParams;

typedef struct _NvOSD_FontParams {
    char *font_name;
    unsigned int font_size;
    NvOSD_ColorParams font_color;
} NvOSD_FontParams;

typedef struct _NvOSD_TextParams {
    char *display_text;
    unsigned int x_offset, y_offset;
    NvOSD_FontParams font_params;
    int set_bg_clr;
    NvOSD_ColorParams text_bg_clr;
} NvOSD_TextParams;

typedef struct _NvOSD_RectParams {
    float left, top, width, height;
    unsigned int border_width;
    NvOSD_ColorParams border_color;
    unsigned int has_bg_color, reserved;
    NvOSD_ColorParams bg_color;
    int has_color_info, color_id;
} NvOSD_RectParams;

typedef struct _NvOSD_MaskParams {
    float *data;
    unsigned int size;
    float threshold;
    unsigned int width, height;
} NvOSD_MaskParams;

typedef struct _NvOSD_LineParams {
    unsigned int x1, y1, x2, y2, line_width;
    NvOSD_ColorParams line_color;
} NvOSD_LineParams;

typedef struct _NvOSD_CircleParams {
    unsigned int xc, yc, radius;
    NvOSD_ColorParams circle_color;
    unsigned int has_bg_color;
    NvOSD_ColorParams bg_color;
} NvOSD_CircleParams;

#endif
