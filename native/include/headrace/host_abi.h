/* The one door between a custom library and the program that loads it.
 *
 * The classes of NvInfer.h and its family are inline code over this table: no virtual table, no
 * struct of theirs crosses the border, so a library compiled for any generation meets one host.
 * `headrace_host_api_1` is a weak reference that the loading program defines; where nothing defines
 * it, every call fails as the original's would, by null and false.
 *
 * Part of headrace, Apache-2.0. Valid C and C++11.
 */
#ifndef HEADRACE_HOST_ABI_H
#define HEADRACE_HOST_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An object of the host. What sources call ITensor*, ILayer*, IBuilder* … is a pointer to one. */
typedef struct headrace_object headrace_object;

enum { HEADRACE_MAX_AXES = 8 };

typedef struct {
    int32_t count; /* -1: not known */
    int64_t axes[HEADRACE_MAX_AXES];
} headrace_dims;

/* A tensor as a plugin meets it; least, best and most are the shapes of a profile. */
typedef struct {
    headrace_dims dims;
    int32_t type;   /* -1: not chosen */
    int32_t format; /* -1: not chosen */
    float scale;
    headrace_dims least, best, most;
} headrace_desc;

typedef struct {
    int32_t count;
    headrace_object *axes[HEADRACE_MAX_AXES]; /* expressions */
} headrace_exprs;

/* Same layout as nvinfer1::PluginField and PluginFieldCollection in every generation. */
typedef struct {
    const char *name;
    const void *data;
    int32_t type;
    int32_t length; /* elements */
} headrace_field;

typedef struct {
    int32_t count;
    const headrace_field *fields;
} headrace_fields;

typedef enum {
    HEADRACE_NONE = 0,
    HEADRACE_BOOL,
    HEADRACE_INT,
    HEADRACE_REAL,
    HEADRACE_TEXT,  /* data: NUL-terminated; of a result: valid until the same object is asked again
                     */
    HEADRACE_BYTES, /* data, number: how many */
    HEADRACE_DIMS,  /* dims */
    HEADRACE_INTS,  /* data: int64_t, number: how many */
    HEADRACE_REALS, /* data: float, number: how many */
    HEADRACE_ENUM,  /* extra: name of the type; data: name of the member, or null and number */
    HEADRACE_WEIGHTS,         /* code: data type, data, number: how many */
    HEADRACE_OBJECT,          /* data: headrace_object */
    HEADRACE_OBJECTS,         /* data: headrace_object **, number: how many */
    HEADRACE_FIELDS,          /* data: headrace_fields */
    HEADRACE_PLUGIN,          /* data: headrace_plugin */
    HEADRACE_PLUGINS_CREATOR, /* data: C++ object, extra: headrace_creator_calls */
    HEADRACE_LOGGER,          /* data: C++ object, extra: headrace_logger_calls */
    HEADRACE_CALIBRATOR,      /* data: C++ object, extra: headrace_calibrator_calls */
    HEADRACE_FACTORY,         /* data: C++ object, extra: headrace_factory_calls */
    HEADRACE_ADDRESS,         /* data: memory of nobody here */
    HEADRACE_CALLBACK         /* data: C++ object, extra: headrace_callback_calls */
} headrace_kind;

typedef struct {
    int32_t kind;
    int32_t code;
    int64_t number;
    double real;
    const void *data;
    const void *extra;
    headrace_dims dims;
} headrace_value;

/* ---- C++ classes of the library, as the host calls them. `size` is that of the struct. */

/* Plugins of the V2 line; `self` is an IPluginV2*. Calls that a generation lacks are null. */
typedef struct {
    uint32_t size;
    const char *(*class_name)(void *self); /* as the compiler mangles it, or null */
    const char *(*type)(void *self);
    const char *(*version)(void *self);
    const char *(*get_namespace)(void *self);
    void (*set_namespace)(void *self, const char *text);
    int32_t (*output_count)(void *self);
    int32_t (*initialize)(void *self);
    void (*terminate)(void *self);
    void (*destroy)(void *self);
    void *(*clone)(void *self);
    size_t (*serialization_size)(void *self);
    void (*serialize)(void *self, void *buffer);
    /* V2, V2Ext, V2IOExt */
    void (*output_dims)(void *self, int32_t index, const headrace_dims *in, int32_t n,
                        headrace_dims *out);
    int32_t (*supports_format)(void *self, int32_t type, int32_t format);
    void (*configure_with_format)(void *self, const headrace_dims *in, int32_t n_in,
                                  const headrace_dims *out, int32_t n_out, int32_t type,
                                  int32_t format, int32_t max_batch);
    size_t (*workspace)(void *self, int32_t max_batch);
    int32_t (*enqueue)(void *self, int32_t batch, const void *const *in, void *const *out,
                       void *workspace, void *stream);
    /* V2Ext and after */
    int32_t (*output_type)(void *self, int32_t index, const int32_t *types, int32_t n);
    int32_t (*output_broadcast)(void *self, int32_t index, const uint8_t *broadcast, int32_t n);
    int32_t (*input_broadcast)(void *self, int32_t index);
    void (*configure_ext)(void *self, const headrace_desc *in, int32_t n_in,
                          const headrace_desc *out, int32_t n_out, const uint8_t *in_broadcast,
                          const uint8_t *out_broadcast, int32_t format, int32_t max_batch);
    void (*attach)(void *self, void *cudnn, void *cublas, void *allocator);
    void (*detach)(void *self);
    /* V2IOExt and V2DynamicExt */
    int32_t (*supports_combination)(void *self, int32_t pos, const headrace_desc *in_out,
                                    int32_t n_in, int32_t n_out);
    void (*configure)(void *self, const headrace_desc *in, int32_t n_in, const headrace_desc *out,
                      int32_t n_out);
    /* V2DynamicExt */
    void (*output_exprs)(void *self, int32_t index, const headrace_exprs *in, int32_t n,
                         headrace_object *builder, headrace_exprs *out);
    size_t (*dynamic_workspace)(void *self, const headrace_desc *in, int32_t n_in,
                                const headrace_desc *out, int32_t n_out);
    int32_t (*dynamic_enqueue)(void *self, const headrace_desc *in_desc, int32_t n_in,
                               const headrace_desc *out_desc, int32_t n_out, const void *const *in,
                               void *const *out, void *workspace, void *stream);
} headrace_plugin_v2_calls;

/* `self` is an IPluginV3*. */
typedef struct {
    uint32_t size;
    const char *(*class_name)(void *self); /* as the compiler mangles it, or null */
    const char *(*name)(void *self);
    const char *(*version)(void *self);
    const char *(*get_namespace)(void *self);
    void (*destroy)(void *self);
    void *(*clone)(void *self);
    int32_t (*has_build)(void *self);
    int32_t (*output_count)(void *self);
    int32_t (*output_types)(void *self, int32_t *out, int32_t n_out, const int32_t *in,
                            int32_t n_in);
    int32_t (*output_exprs)(void *self, const headrace_exprs *in, int32_t n_in,
                            const headrace_exprs *shape_in, int32_t n_shape, headrace_exprs *out,
                            int32_t n_out, headrace_object *builder);
    int32_t (*supports_combination)(void *self, int32_t pos, const headrace_desc *in_out,
                                    int32_t n_in, int32_t n_out);
    int32_t (*configure)(void *self, const headrace_desc *in, int32_t n_in,
                         const headrace_desc *out, int32_t n_out);
    size_t (*workspace)(void *self, const headrace_desc *in, int32_t n_in, const headrace_desc *out,
                        int32_t n_out);
    int32_t (*tactic_count)(void *self);
    int32_t (*tactics)(void *self, int32_t *ids, int32_t n);
    const char *(*timing_cache_id)(void *self);
    int32_t (*format_limit)(void *self);
    const char *(*metadata)(void *self);
    int32_t (*aliased_input)(void *self, int32_t output); /* -1: none; -2: not asked for */
    int32_t (*set_tactic)(void *self, int32_t tactic);
    int32_t (*on_shape_change)(void *self, const headrace_desc *in, int32_t n_in,
                               const headrace_desc *out, int32_t n_out);
    int32_t (*enqueue)(void *self, const headrace_desc *in_desc, int32_t n_in,
                       const headrace_desc *out_desc, int32_t n_out, const void *const *in,
                       void *const *out, void *workspace, void *stream);
    void *(*attach)(void *self, headrace_object *context);
    const headrace_fields *(*fields_to_serialize)(void *self);
} headrace_plugin_v3_calls;

enum {
    HEADRACE_PLUGIN_NONE = -1,
    HEADRACE_PLUGIN_OF_HOST = -2, /* `object` */
    HEADRACE_PLUGIN_V2 = 0,
    HEADRACE_PLUGIN_V2_EXT = 1,
    HEADRACE_PLUGIN_V2_IO_EXT = 2,
    HEADRACE_PLUGIN_V2_DYNAMIC_EXT = 3,
    HEADRACE_PLUGIN_V3 = 10
};

typedef struct {
    int32_t generation;
    void *self;
    headrace_object *object;
    headrace_plugin_v2_calls v2;
    headrace_plugin_v3_calls v3;
    int32_t owned; /* of one that a factory made: the host destroys it, as it does its clones */
} headrace_plugin;

/* `self` is an IPluginCreator* (generation V2) or IPluginCreatorV3One* (V3). */
typedef struct {
    uint32_t size;
    int32_t generation;
    const char *(*class_name)(void *self); /* as the compiler mangles it, or null */
    const char *(*name)(void *self);
    const char *(*version)(void *self);
    const char *(*get_namespace)(void *self);
    void (*set_namespace)(void *self, const char *text); /* null for V3 */
    const headrace_fields *(*field_names)(void *self);
    void (*create)(void *self, const char *name, const headrace_fields *fields, int32_t phase,
                   headrace_plugin *made);
    void (*deserialize)(void *self, const char *name, const void *data, size_t size,
                        headrace_plugin *made); /* null for V3 */
} headrace_creator_calls;

typedef struct {
    uint32_t size;
    void (*log)(void *self, int32_t severity, const char *text);
} headrace_logger_calls;

typedef struct {
    uint32_t size;
    int32_t algorithm; /* of CalibrationAlgoType */
    int32_t (*batch_size)(void *self);
    int32_t (*get_batch)(void *self, void **bindings, const char **names, int32_t n);
    const void *(*read_cache)(void *self, size_t *length);
    void (*write_cache)(void *self, const void *data, size_t length);
} headrace_calibrator_calls;

/* An error recorder, a progress monitor, a profiler … : `kind` is the name of its interface. */
typedef struct {
    uint32_t size;
    const char *kind;
    void (*call)(void *self, const char *method, const headrace_value *arguments, int32_t count,
                 headrace_value *result);
} headrace_callback_calls;

/* The factories of Caffe and UFF parsers, and those that load engines. What one lacks is null. */
typedef struct {
    uint32_t size;
    int32_t (*is_plugin)(void *self, const char *layer);
    void (*create)(void *self, const char *layer, const headrace_value *weights, int32_t n,
                   const char *text, headrace_plugin *made); /* Caffe */
    void (*create_with_fields)(void *self, const char *layer, const headrace_value *weights,
                               int32_t n, const headrace_fields *fields,
                               headrace_plugin *made); /* UFF */
    void (*deserialize)(void *self, const char *layer, const void *data, size_t size,
                        headrace_plugin *made); /* engines */
} headrace_factory_calls;

/* ---- what the host offers. A null object means its functions: create_infer_builder and so on.
 * The calls give 0 where something went wrong; the host has told why. */
typedef struct {
    uint32_t size;
    int32_t (*call)(headrace_object *object, const char *method, const headrace_value *arguments,
                    int32_t count, headrace_value *result);
    int32_t (*get)(headrace_object *object, const char *name, headrace_value *result);
    int32_t (*set)(headrace_object *object, const char *name, const headrace_value *value);
    void (*release)(headrace_object *object);
    void *(*peer)(headrace_object *object); /* kept for the library, see set_peer */
    void (*set_peer)(headrace_object *object, void *peer);
    void (*tell)(int32_t severity, const char *text);
} headrace_host;

__attribute__((weak)) const headrace_host *headrace_host_api_1(void);

#ifdef __cplusplus
}
#endif

#endif /* HEADRACE_HOST_ABI_H */
