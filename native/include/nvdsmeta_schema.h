/* Event messages, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDSMETA_SCHEMA_H
#define HEADRACE_NVDSMETA_SCHEMA_H

#include "nvdsmeta.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MAX_SOURCE_ID_LEN 128
#define MAX_NUM_OBJECTS 600
#define MAX_ENTRIES 100

typedef enum {
    NVDS_EVENT_ENTRY = 0,
    NVDS_EVENT_EXIT = 1,
    NVDS_EVENT_MOVING = 2,
    NVDS_EVENT_STOPPED = 3,
    NVDS_EVENT_EMPTY = 4,
    NVDS_EVENT_PARKED = 5,
    NVDS_EVENT_RESET = 6,
    NVDS_EVENT_RESERVED = 256,
    NVDS_EVENT_CUSTOM = 257,
    NVDS_EVENT_FORCE32 = 2147483647
} NvDsEventType;

typedef enum {
    NVDS_OBJECT_TYPE_VEHICLE = 0,
    NVDS_OBJECT_TYPE_PERSON = 1,
    NVDS_OBJECT_TYPE_FACE = 2,
    NVDS_OBJECT_TYPE_BAG = 3,
    NVDS_OBJECT_TYPE_BICYCLE = 4,
    NVDS_OBJECT_TYPE_ROADSIGN = 5,
    NVDS_OBJECT_TYPE_VEHICLE_EXT = 6,
    NVDS_OBJECT_TYPE_PERSON_EXT = 7,
    NVDS_OBJECT_TYPE_FACE_EXT = 8,
    NVDS_OBJECT_TYPE_3D = 9,
    NVDS_OBJECT_TYPE_DUMMY = 10,
    NVDS_OBJECT_TYPE_PRODUCT = 11,
    NVDS_OBJECT_TYPE_PRODUCT_EXT = 12,
    NVDS_OBJECT_TYPE_RESERVED = 256,
    NVDS_OBJECT_TYPE_CUSTOM = 257,
    NVDS_OBJECT_TYPE_UNKNOWN = 258,
    NVDS_OBEJCT_TYPE_FORCE32 = 2147483647
} NvDsObjectType;

typedef enum {
    NVDS_PAYLOAD_DEEPSTREAM = 0,
    NVDS_PAYLOAD_DEEPSTREAM_MINIMAL = 1,
    NVDS_PAYLOAD_DEEPSTREAM_PROTOBUF = 2,
    NVDS_PAYLOAD_RESERVED = 256,
    NVDS_PAYLOAD_CUSTOM = 257,
    NVDS_PAYLOAD_FORCE32 = 2147483647
} NvDsPayloadType;

typedef struct _NvDsRect NvDsRect;
typedef struct _NvDsGeoLocation NvDsGeoLocation;
typedef struct _NvDsCoordinate NvDsCoordinate;
typedef struct _NvDsObjectSignature NvDsObjectSignature;
typedef struct _NvDsPersonObject NvDsPersonObject;
typedef struct _NvDsPersonObjectExt NvDsPersonObjectExt;
typedef struct _NvDsFaceObject NvDsFaceObject;
typedef struct _NvDsFaceObjectExt NvDsFaceObjectExt;
typedef struct _NvDsFaceObjectWithExt NvDsFaceObjectWithExt;
typedef struct _NvDsVehicleObject NvDsVehicleObject;
typedef struct _NvDsVehicleObjectExt NvDsVehicleObjectExt;
typedef struct _NvDsProductObject NvDsProductObject;
typedef struct _NvDsProductObjectExt NvDsProductObjectExt;
typedef struct _NvDsJoint NvDsJoint;
typedef struct _NvDsJoints NvDsJoints;
typedef struct _NvDsEmbedding NvDsEmbedding;
typedef struct _NvDsConvexHull NvDsConvexHull;
typedef struct _NvDsBbox3dObject NvDsBbox3dObject;
typedef struct _NvDsBbox3dObjectList NvDsBbox3dObjectList;
typedef struct _NvDs3DTracking NvDs3DTracking;
typedef struct _NvDsLLMObject NvDsLLMObject;
typedef struct _NvDsConversationObject NvDsConversationObject;
typedef struct _NvDsInteractionObject NvDsInteractionObject;
typedef struct _NvDsCongestionObject NvDsCongestionObject;
typedef struct _NvDsTypeMetricsObject NvDsTypeMetricsObject;
typedef struct _NvDsSegmentationObject NvDsSegmentationObject;
typedef struct _SourceTimePair SourceTimePair;
typedef struct _NvDsEventMsgMeta NvDsEventMsgMeta;
typedef struct _NvDsEvent NvDsEvent;
typedef struct _NvDsPayload NvDsPayload;
typedef struct _NvDsCustomMsgInfo NvDsCustomMsgInfo;

struct _NvDsRect {
    float top;
    float left;
    float width;
    float height;
};

struct _NvDsGeoLocation {
    gdouble lat;
    gdouble lon;
    gdouble alt;
};

struct _NvDsCoordinate {
    gdouble x;
    gdouble y;
    gdouble z;
};

struct _NvDsObjectSignature {
    gdouble* signature;
    guint size;
};

struct _NvDsPersonObject {
    gchar* gender;
    gchar* hair;
    gchar* cap;
    gchar* apparel;
    guint age;
};

struct _NvDsPersonObjectExt {
    gchar* gender;
    gchar* hair;
    gchar* cap;
    gchar* apparel;
    guint age;
    GList* mask;
};

struct _NvDsFaceObject {
    gchar* gender;
    gchar* hair;
    gchar* cap;
    gchar* glasses;
    gchar* facialhair;
    gchar* name;
    gchar* eyecolor;
    guint age;
};

struct _NvDsFaceObjectExt {
    gchar* gender;
    gchar* hair;
    gchar* cap;
    gchar* glasses;
    gchar* facialhair;
    gchar* name;
    gchar* eyecolor;
    guint age;
    GList* mask;
};

struct _NvDsFaceObjectWithExt {
    gchar* gender;
    gchar* hair;
    gchar* cap;
    gchar* glasses;
    gchar* facialhair;
    gchar* name;
    gchar* eyecolor;
    guint age;
    GList* mask;
};

struct _NvDsVehicleObject {
    gchar* type;
    gchar* make;
    gchar* model;
    gchar* color;
    gchar* region;
    gchar* license;
};

struct _NvDsVehicleObjectExt {
    gchar* type;
    gchar* make;
    gchar* model;
    gchar* color;
    gchar* region;
    gchar* license;
    GList* mask;
};

struct _NvDsProductObject {
    gchar* brand;
    gchar* type;
    gchar* shape;
};

struct _NvDsProductObjectExt {
    gchar* brand;
    gchar* type;
    gchar* shape;
    GList* mask;
};

struct _NvDsJoint {
    float x;
    float y;
    float z;
    float confidence;
};

struct _NvDsJoints {
    NvDsJoint* joints;
    int num_joints;
    int pose_type;
};

struct _NvDsEmbedding {
    float* embedding_vector;
    guint embedding_length;
};

struct _NvDsConvexHull {
    gint* points;
    guint numFilled;
};

struct _NvDsBbox3dObject {
    float boxes_3d[12];
    float scores_3d;
    gchar* labels_3d;
    gchar* embedding_filter;
    float cls_scores;
    guint instance_ids;
    NvDsEmbedding* instance_feats;
    gchar* ocr_label;
};

struct _NvDs3DTracking {
    gfloat ptWorldFeet[2];
    gfloat ptImgFeet[2];
    NvDsConvexHull convexHull;
    NvDsBbox3dObject bbox3d;
};

struct _NvDsLLMObject {
    GHashTable* info;
    NvDsConversationObject* conversations;
    guint num_conversations;
    NvDsEmbedding* embeddings;
    guint num_embeddings;
};

struct _NvDsConversationObject {
    gchar* id;
    gchar* query;
    gchar* response;
};

struct _NvDsInteractionObject {
    gchar* id;
    gchar** objectIds;
    guint num_objectIds;
    NvDsCoordinate* coordinates;
    guint num_coordinates;
    gchar* description;
    GHashTable* info;
    gint64 timestamp;
};

struct _NvDsCongestionObject {
    gchar* id;
    gchar** objectIds;
    guint num_objectIds;
    float amount;
    GHashTable* info;
    gint64 timestamp;
};

struct _NvDsTypeMetricsObject {
    gchar* id;
    gchar* type;
    gint32 count;
    NvDsCoordinate* coordinates;
    guint num_coordinates;
    gchar** objectIds;
    guint num_objectIds;
    GHashTable* info;
};

struct _NvDsSegmentationObject {
    gint32* mask;
    guint mask_size;
    GHashTable* info;
};

struct _SourceTimePair {
    gchar source_id[128];
    guint64 timestamp;
};

struct _NvDsBbox3dObjectList {
    NvDsBbox3dObject objects[600];
    guint num_objects;
    guint64 timestamp;
    gint frame_num;
    guint camera_id;
    gchar* sensorStr;
    SourceTimePair entries[100];
    int count;
};

struct _NvDsEventMsgMeta {
    NvDsEventType type;
    NvDsObjectType objType;
    NvDsRect bbox;
    NvDsGeoLocation location;
    NvDsCoordinate coordinate;
    NvDsObjectSignature objSignature;
    gint objClassId;
    gint sensorId;
    gint moduleId;
    gint placeId;
    gint componentId;
    gint frameId;
    gdouble confidence;
    guint64 trackingId;
    gchar* ts;
    gchar* objectId;
    gchar* sensorStr;
    SourceTimePair entries[100];
    int count;
    NvDsBbox3dObject* bbox3d;
    NvDsLLMObject* llm;
    gint num_interactions;
    NvDsInteractionObject* interactions;
    gint num_congestions;
    NvDsCongestionObject* congestions;
    gint num_fov;
    NvDsTypeMetricsObject* fov;
    NvDsSegmentationObject* segmentation;
    gchar* otherAttrs;
    gchar* videoPath;
    gpointer extMsg;
    guint extMsgSize;
    NvDsJoints pose;
    NvDsEmbedding embedding;
    bool has3DTracking;
    NvDs3DTracking singleView3DTracking;
    gfloat visibility;
};

struct _NvDsEvent {
    NvDsEventType eventType;
    NvDsEventMsgMeta* metadata;
};

struct _NvDsPayload {
    gpointer payload;
    guint payloadSize;
    guint componentId;
};

struct _NvDsCustomMsgInfo {
    void* message;
    guint size;
};

#ifdef __cplusplus
}
#endif

#endif
