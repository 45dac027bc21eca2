// Messages and events of the multiplexer, the version, the log, and the machine's name.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdarg>
#include <string>

#include "gst-nvevent.h"
#include "gst-nvmessage.h"
#include "library.h"
#include "nvds_utils.h"
#include "nvds_version.h"
#include "nvdsgstutils.h"

using namespace headrace::deepstream;

namespace {

constexpr int kElementMessage = 1 << 15;
constexpr int kUint = 7 << 2;           // G_TYPE_UINT
constexpr int kString = 16 << 2;        // G_TYPE_STRING
constexpr int kFlags = 2 | 4 | 8 | 16;  // downstream, serialized, sticky, sticky more than once

const GstStructure *structure_of(GstMessage *message) {
    return HEADRACE_CALL(gstreamer, const GstStructure *(GstMessage *),
                         gst_message_get_structure)(message);
}

gboolean uint_of(const GstStructure *structure, const char *field, guint *value) {
    return structure == nullptr
               ? FALSE
               : HEADRACE_CALL(gstreamer, gboolean(const GstStructure *, const char *, guint *),
                               gst_structure_get_uint)(structure, field, value);
}

GstStructure *new_structure(const char *name, const char *field, guint value) {
    return HEADRACE_CALL(gstreamer, GstStructure * (const char *, const char *, ...),
                         gst_structure_new)(name, field, static_cast<gulong>(kUint), value,
                                            static_cast<char *>(nullptr));
}

GstEvent *new_event(int number, const char *name, guint source) {
    return HEADRACE_CALL(gstreamer, GstEvent * (int, GstStructure *), gst_event_new_custom)(
        (number << 8) | kFlags, new_structure(name, "source-id", source));
}

const GstStructure *structure_of(GstEvent *event) {
    return HEADRACE_CALL(gstreamer, const GstStructure *(GstEvent *),
                         gst_event_get_structure)(event);
}

}  // namespace

HEADRACE_PUBLIC gboolean gst_nvmessage_is_stream_eos(GstMessage *message) {
    const GstStructure *structure = structure_of(message);
    return structure == nullptr
               ? FALSE
               : HEADRACE_CALL(gstreamer, gboolean(const GstStructure *, const char *),
                               gst_structure_has_name)(structure, "stream-eos");
}
HEADRACE_PUBLIC gboolean gst_nvmessage_parse_stream_eos(GstMessage *message, guint *stream) {
    return gst_nvmessage_is_stream_eos(message)
               ? uint_of(structure_of(message), "stream-id", stream)
               : FALSE;
}
HEADRACE_PUBLIC GstMessage *gst_nvmessage_new_stream_eos(GstObject *object, guint stream) {
    return HEADRACE_CALL(gstreamer, GstMessage * (int, GstObject *, GstStructure *),
                         gst_message_new_custom)(kElementMessage, object,
                                                 new_structure("stream-eos", "stream-id", stream));
}

#define HEADRACE_EVENT(number, label, name)                                          \
    HEADRACE_PUBLIC GstEvent *gst_nvevent_new_##label(guint source) {                \
        return new_event(number, name, source);                                      \
    }                                                                                \
    HEADRACE_PUBLIC void gst_nvevent_parse_##label(GstEvent *event, guint *source) { \
        uint_of(structure_of(event), "source-id", source);                           \
    }
HEADRACE_EVENT(400, pad_added, "nv-pad-added")
HEADRACE_EVENT(401, pad_deleted, "nv-pad-deleted")
HEADRACE_EVENT(402, stream_eos, "nv-stream-eos")
HEADRACE_EVENT(404, stream_reset, "nv-stream-reset")

HEADRACE_PUBLIC void nvds_version(unsigned int *major, unsigned int *minor) {
    if (major != nullptr) *major = NVDS_VERSION_MAJOR;
    if (minor != nullptr) *minor = NVDS_VERSION_MINOR;
}
HEADRACE_PUBLIC void nvds_version_print(void) { std::printf("DeepStreamSDK 9.1.0 (headrace)\n"); }
HEADRACE_PUBLIC void nvds_dependencies_version_print(void) {
    std::printf("no CUDA, no TensorRT: headrace runs the models\n");
}

HEADRACE_PUBLIC void nvds_log_open(void) {}
HEADRACE_PUBLIC void nvds_log_close(void) {}
HEADRACE_PUBLIC void nvds_log(const char *category, int, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::fprintf(stderr, "%s: ", category);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
}

// Returns the name and the first IPv4 address: `host (192.0.2.1)`; the caller frees it.
HEADRACE_PUBLIC char *nvds_get_hostname_with_ip(void) {
    char name[256] = "localhost";
    gethostname(name, sizeof name - 1);
    std::string text = name;
    ifaddrs *all = nullptr;
    if (getifaddrs(&all) == 0) {
        for (const ifaddrs *one = all; one != nullptr; one = one->ifa_next) {
            if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
            const auto *in = reinterpret_cast<const sockaddr_in *>(one->ifa_addr);
            if (ntohl(in->sin_addr.s_addr) == INADDR_LOOPBACK) continue;
            char address[INET_ADDRSTRLEN] = "";
            inet_ntop(AF_INET, &in->sin_addr, address, sizeof address);
            text += std::string(" (") + address + ")";
            break;
        }
        freeifaddrs(all);
    }
    return duplicate(text.c_str());
}

// Lets an rtspsrc note the sender's time on its buffers; other elements stay as they are.
HEADRACE_PUBLIC void configure_source_for_ntp_sync(GstElement *source) {
    if (source == nullptr) return;
    HEADRACE_CALL(gstreamer, void(void *, const char *, const char *), gst_util_set_object_arg)
    (source, "add-reference-timestamp-meta", "true");
}
