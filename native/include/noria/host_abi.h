/* The one door between a custom library and the program that loads it.
 *
 * The classes of NvInfer.h and its family are inline code over this table: no virtual table, no
 * struct of theirs crosses the border, so a library compiled for any generation meets one host.
 * `noria_host_api_1` is a weak reference that the loading program defines; where nothing defines it,
 * every call fails as the original's would, by null and false.
 *
 * Part of noria, Apache-2.0. Valid C and C++11.
 */
#ifndef NORIA_HOST_ABI_H
#define NORIA_HOST_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An object of the host. What sources call ITensor*, ILayer*, IBuilder* … is a pointer to one. */
typedef struct noria_object noria_object;

enum { NORIA_MAX_AXES = 8 };

typedef struct {
    int32_t count; /* -1: not known */
    int64_t axes[NORIA_MAX_AXES];
} noria_dims;

/* A tensor as a plugin meets it; least, best and most are the shapes of a profile. */
typedef struct {
    noria_dims dims;
    int32_t type;   /* -1: not chosen */
    int32_t format; /* -1: not chosen */
    float scale;
    noria_dims least, best, most;
} noria_desc;

typedef struct {
    int32_t count;
    noria_object *axes[NORIA_MAX_AXES]; /* expressions */
} noria_exprs;

/* Same layout as nvinfer1::PluginField and PluginFieldCollection in every generation. */
typedef struct {
    const char *name;
    const void *data;
    int32_t type;
    int32_t length; /* elements */
} noria_field;

typedef struct {
    int32_t count;
    const noria_field *fields;
} noria_fields;

typedef enum {
    NORIA_NONE = 0,
    NORIA_BOOL,
    NORIA_INT,
    NORIA_REAL,
    NORIA_TEXT,    /* data: NUL-terminated; of a result: valid until the same object is asked again */
    NORIA_BYTES,   /* data, number: how many */
    NORIA_DIMS,    /* dims */
    NORIA_INTS,    /* data: int64_t, number: how many */
    NORIA_REALS,   /* data: float, number: how many */
    NORIA_ENUM,    /* extra: name of the type; data: name of the member, or null and number */
    NORIA_WEIGHTS, /* code: data type, data, number: how many */
    NORIA_OBJECT,  /* data: noria_object */
    NORIA_OBJECTS, /* data: noria_object **, number: how many */
    NORIA_FIELDS,  /* data: noria_fields */
    NORIA_PLUGIN,  /* data: noria_plugin */
    NORIA_PLUGINS_CREATOR, /* data: C++ object, extra: noria_creator_calls */
    NORIA_LOGGER,          /* data: C++ object, extra: noria_logger_calls */
    NORIA_CALIBRATOR,      /* data: C++ object, extra: noria_calibrator_calls */
    NORIA_FACTORY,         /* data: C++ object, extra: noria_factory_calls */
    NORIA_ADDRESS          /* data: memory of nobody here */
} noria_kind;

typedef struct {
    int32_t kind;
    int32_t code;
    int64_t number;
    double real;
    const void *data;
    const void *extra;
    noria_dims dims;
} noria_value;

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
    void (*output_dims)(void *self, int32_t index, const noria_dims *in, int32_t n, noria_dims *out);
    int32_t (*supports_format)(void *self, int32_t type, int32_t format);
    void (*configure_with_format)(void *self, const noria_dims *in, int32_t n_in,
                                  const noria_dims *out, int32_t n_out, int32_t type,
                                  int32_t format, int32_t max_batch);
    size_t (*workspace)(void *self, int32_t max_batch);
    int32_t (*enqueue)(void *self, int32_t batch, const void *const *in, void *const *out,
                       void *workspace, void *stream);
    /* V2Ext and after */
    int32_t (*output_type)(void *self, int32_t index, const int32_t *types, int32_t n);
    int32_t (*output_broadcast)(void *self, int32_t index, const uint8_t *broadcast, int32_t n);
    int32_t (*input_broadcast)(void *self, int32_t index);
    void (*configure_ext)(void *self, const noria_desc *in, int32_t n_in, const noria_desc *out,
                          int32_t n_out, const uint8_t *in_broadcast, const uint8_t *out_broadcast,
                          int32_t format, int32_t max_batch);
    void (*attach)(void *self, void *cudnn, void *cublas, void *allocator);
    void (*detach)(void *self);
    /* V2IOExt and V2DynamicExt */
    int32_t (*supports_combination)(void *self, int32_t pos, const noria_desc *in_out, int32_t n_in,
                                    int32_t n_out);
    void (*configure)(void *self, const noria_desc *in, int32_t n_in, const noria_desc *out,
                      int32_t n_out);
    /* V2DynamicExt */
    void (*output_exprs)(void *self, int32_t index, const noria_exprs *in, int32_t n,
                         noria_object *builder, noria_exprs *out);
    size_t (*dynamic_workspace)(void *self, const noria_desc *in, int32_t n_in,
                                const noria_desc *out, int32_t n_out);
    int32_t (*dynamic_enqueue)(void *self, const noria_desc *in_desc, int32_t n_in,
                               const noria_desc *out_desc, int32_t n_out, const void *const *in,
                               void *const *out, void *workspace, void *stream);
} noria_plugin_v2_calls;

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
    int32_t (*output_types)(void *self, int32_t *out, int32_t n_out, const int32_t *in, int32_t n_in);
    int32_t (*output_exprs)(void *self, const noria_exprs *in, int32_t n_in,
                            const noria_exprs *shape_in, int32_t n_shape, noria_exprs *out,
                            int32_t n_out, noria_object *builder);
    int32_t (*supports_combination)(void *self, int32_t pos, const noria_desc *in_out, int32_t n_in,
                                    int32_t n_out);
    int32_t (*configure)(void *self, const noria_desc *in, int32_t n_in, const noria_desc *out,
                         int32_t n_out);
    size_t (*workspace)(void *self, const noria_desc *in, int32_t n_in, const noria_desc *out,
                        int32_t n_out);
    int32_t (*tactic_count)(void *self);
    int32_t (*tactics)(void *self, int32_t *ids, int32_t n);
    const char *(*timing_cache_id)(void *self);
    int32_t (*format_limit)(void *self);
    const char *(*metadata)(void *self);
    int32_t (*aliased_input)(void *self, int32_t output); /* -1: none; -2: not asked for */
    int32_t (*set_tactic)(void *self, int32_t tactic);
    int32_t (*on_shape_change)(void *self, const noria_desc *in, int32_t n_in, const noria_desc *out,
                               int32_t n_out);
    int32_t (*enqueue)(void *self, const noria_desc *in_desc, int32_t n_in,
                       const noria_desc *out_desc, int32_t n_out, const void *const *in,
                       void *const *out, void *workspace, void *stream);
    void *(*attach)(void *self, noria_object *context);
    const noria_fields *(*fields_to_serialize)(void *self);
} noria_plugin_v3_calls;

enum {
    NORIA_PLUGIN_NONE = -1,
    NORIA_PLUGIN_OF_HOST = -2, /* `object` */
    NORIA_PLUGIN_V2 = 0,
    NORIA_PLUGIN_V2_EXT = 1,
    NORIA_PLUGIN_V2_IO_EXT = 2,
    NORIA_PLUGIN_V2_DYNAMIC_EXT = 3,
    NORIA_PLUGIN_V3 = 10
};

typedef struct {
    int32_t generation;
    void *self;
    noria_object *object;
    noria_plugin_v2_calls v2;
    noria_plugin_v3_calls v3;
    int32_t owned; /* of one that a factory made: the host destroys it, as it does its clones */
} noria_plugin;

/* `self` is an IPluginCreator* (generation V2) or IPluginCreatorV3One* (V3). */
typedef struct {
    uint32_t size;
    int32_t generation;
    const char *(*class_name)(void *self); /* as the compiler mangles it, or null */
    const char *(*name)(void *self);
    const char *(*version)(void *self);
    const char *(*get_namespace)(void *self);
    void (*set_namespace)(void *self, const char *text); /* null for V3 */
    const noria_fields *(*field_names)(void *self);
    void (*create)(void *self, const char *name, const noria_fields *fields, int32_t phase,
                   noria_plugin *made);
    void (*deserialize)(void *self, const char *name, const void *data, size_t size,
                        noria_plugin *made); /* null for V3 */
} noria_creator_calls;

typedef struct {
    uint32_t size;
    void (*log)(void *self, int32_t severity, const char *text);
} noria_logger_calls;

typedef struct {
    uint32_t size;
    int32_t algorithm; /* of CalibrationAlgoType */
    int32_t (*batch_size)(void *self);
    int32_t (*get_batch)(void *self, void **bindings, const char **names, int32_t n);
    const void *(*read_cache)(void *self, size_t *length);
    void (*write_cache)(void *self, const void *data, size_t length);
} noria_calibrator_calls;

/* The factories of Caffe and UFF parsers, and those that load engines. What one lacks is null. */
typedef struct {
    uint32_t size;
    int32_t (*is_plugin)(void *self, const char *layer);
    void (*create)(void *self, const char *layer, const noria_value *weights, int32_t n,
                   const char *text, noria_plugin *made); /* Caffe */
    void (*create_with_fields)(void *self, const char *layer, const noria_value *weights, int32_t n,
                               const noria_fields *fields, noria_plugin *made); /* UFF */
    void (*deserialize)(void *self, const char *layer, const void *data, size_t size,
                        noria_plugin *made); /* engines */
} noria_factory_calls;

/* ---- what the host offers. A null object means its functions: create_infer_builder and so on.
 * The calls give 0 where something went wrong; the host has told why. */
typedef struct {
    uint32_t size;
    int32_t (*call)(noria_object *object, const char *method, const noria_value *arguments,
                    int32_t count, noria_value *result);
    int32_t (*get)(noria_object *object, const char *name, noria_value *result);
    int32_t (*set)(noria_object *object, const char *name, const noria_value *value);
    void (*release)(noria_object *object);
    void *(*peer)(noria_object *object); /* kept for the library, see set_peer */
    void (*set_peer)(noria_object *object, void *peer);
    void (*tell)(int32_t severity, const char *text);
} noria_host;

__attribute__((weak)) const noria_host *noria_host_api_1(void);

#ifdef __cplusplus
}
#endif

#endif /* NORIA_HOST_ABI_H */
