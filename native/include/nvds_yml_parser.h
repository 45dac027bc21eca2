/* Properties of elements from YAML files, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDS_YML_PARSER_H
#define HEADRACE_NVDS_YML_PARSER_H

#include "headrace/gst.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    NVDS_GIE_PLUGIN_INFER = 0,
    NVDS_GIE_PLUGIN_INFER_SERVER = 1
} NvDsGieType;

typedef enum {
    NVDS_YAML_PARSER_SUCCESS = 0,
    NVDS_YAML_PARSER_DISABLED = 1,
    NVDS_YAML_PARSER_ERROR = 2
} NvDsYamlParserStatus;

typedef struct _NvDsYamlCodecStatus NvDsYamlCodecStatus;

struct _NvDsYamlCodecStatus {
    guint codec_type;
    gboolean enable;
};

gboolean check_enable_status(gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_3d_sink(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_alsasrc(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_codec_status(gchar * cfg_file_path,const char * group,NvDsYamlCodecStatus * codec_status);
NvDsYamlParserStatus nvds_parse_egl_sink(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_fake_sink(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_file_sink(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_file_source(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_gie(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_gie_type(NvDsGieType * gie_type,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_msgbroker(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_msgconv(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_multifilesrc(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_multiurisrcbin(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_nvarguscamerasrc(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_nvdsanalytics(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_nvv4l2h264enc(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_nvv4l2h265enc(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_nvxfer(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_nvxfer_position(gchar * cfg_file_path,const char * group,guint * position);
NvDsYamlParserStatus nvds_parse_osd(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_rtsp_source(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_source_list(GList ** src_list,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_streammux(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_tiler(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_tracker(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_uridecodebin(GstElement * element,gchar * cfg_file_path,const char * group);
NvDsYamlParserStatus nvds_parse_v4l2src(GstElement * element,gchar * cfg_file_path,const char * group);

#ifdef __cplusplus
}
#endif

#endif
