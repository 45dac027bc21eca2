// Properties of elements from YAML files: sections of `key: value` lines.
#include "nvds_yml_parser.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "library.h"

using namespace headrace::deepstream;

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string stripped(const std::string &text) {
    const auto first = text.find_first_not_of(" \t\r");
    if (first == std::string::npos) return "";
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Takes a comment and quotes away: a comment starts behind white space.
std::string value_of(const std::string &text) {
    std::string value = stripped(text);
    if (value.size() > 1 && (value[0] == '"' || value[0] == '\'')) {
        const auto end = value.find(value[0], 1);
        if (end != std::string::npos) return value.substr(1, end - 1);
    }
    if (value[0] == '#') return "";
    const auto comment = value.find(" #");
    return comment == std::string::npos ? value : stripped(value.substr(0, comment));
}

// Reads a section; false where the file cannot be read or has none of that name.
bool read_section(const char *path, const char *section, Pairs &pairs) {
    std::ifstream file(path == nullptr ? "" : path);
    if (!file || section == nullptr) {
        std::fprintf(stderr, "headrace: %s cannot be read\n", path == nullptr ? "(null)" : path);
        return false;
    }
    bool inside = false, there = false;
    for (std::string line; std::getline(file, line);) {
        const std::string text = stripped(line);
        const auto colon = text.find(':');
        if (text.empty() || text[0] == '#' || colon == std::string::npos) continue;
        const std::string key = stripped(text.substr(0, colon));
        if (line[0] != ' ' && line[0] != '\t') {
            inside = key == section;
            there = there || inside;
        } else if (inside) {
            pairs.emplace_back(key, value_of(text.substr(colon + 1)));
        }
    }
    if (!there) std::fprintf(stderr, "headrace: %s has no section %s\n", path, section);
    return there;
}

std::string value(const Pairs &pairs, const char *key, const char *fallback) {
    for (const auto &[name, text] : pairs)
        if (name == key) return text;
    return fallback;
}

// Paths are meant from the folder of the file that names them.
std::string placed(const char *path, const std::string &key, const std::string &text) {
    const bool is_path = key.find("file") != std::string::npos || key == "location" ||
                         key.find("config") != std::string::npos;
    if (!is_path || text.empty() || text[0] == '/' || text.find(':') != std::string::npos)
        return text;
    const char *slash = std::strrchr(path, '/');
    if (slash == nullptr) return text;
    const std::string beside = std::string(path, slash + 1) + text;
    return std::ifstream(beside) ? beside : text;
}

NvDsYamlParserStatus set_properties(GstElement *element, const char *path, const char *section) {
    Pairs pairs;
    if (element == nullptr || !read_section(path, section, pairs)) return NVDS_YAML_PARSER_ERROR;
    if (value(pairs, "enable", "1") == "0") return NVDS_YAML_PARSER_DISABLED;
    void *type = *reinterpret_cast<void **>(element);  // of a GObject: its class comes first
    for (const auto &[key, text] : pairs) {
        if (key == "enable" || key == "plugin-type") continue;
        if (HEADRACE_CALL(gobject, void *(void *, const char *), g_object_class_find_property)(
                type, key.c_str()) == nullptr) {
            std::fprintf(stderr, "headrace: %s, section %s: the element has no property %s\n", path,
                         section, key.c_str());
            continue;
        }
        HEADRACE_CALL(gstreamer, void(void *, const char *, const char *), gst_util_set_object_arg)(
            element, key.c_str(), placed(path, key, text).c_str());
    }
    return NVDS_YAML_PARSER_SUCCESS;
}

}  // namespace

#define HEADRACE_SECTION(name)                                                               \
    HEADRACE_PUBLIC NvDsYamlParserStatus nvds_parse_##name(GstElement *element, gchar *path, \
                                                           const char *section) {            \
        return set_properties(element, path, section);                                       \
    }
HEADRACE_SECTION(3d_sink)
HEADRACE_SECTION(alsasrc)
HEADRACE_SECTION(egl_sink)
HEADRACE_SECTION(fake_sink)
HEADRACE_SECTION(file_sink)
HEADRACE_SECTION(file_source)
HEADRACE_SECTION(gie)
HEADRACE_SECTION(msgbroker)
HEADRACE_SECTION(msgconv)
HEADRACE_SECTION(multifilesrc)
HEADRACE_SECTION(multiurisrcbin)
HEADRACE_SECTION(nvarguscamerasrc)
HEADRACE_SECTION(nvdsanalytics)
HEADRACE_SECTION(nvv4l2h264enc)
HEADRACE_SECTION(nvv4l2h265enc)
HEADRACE_SECTION(nvxfer)
HEADRACE_SECTION(osd)
HEADRACE_SECTION(rtsp_source)
HEADRACE_SECTION(streammux)
HEADRACE_SECTION(tiler)
HEADRACE_SECTION(tracker)
HEADRACE_SECTION(uridecodebin)
HEADRACE_SECTION(v4l2src)

HEADRACE_PUBLIC gboolean check_enable_status(gchar *path, const char *section) {
    Pairs pairs;
    return read_section(path, section, pairs) && value(pairs, "enable", "0") != "0";
}

HEADRACE_PUBLIC NvDsYamlParserStatus nvds_parse_gie_type(NvDsGieType *type, gchar *path,
                                                         const char *section) {
    Pairs pairs;
    if (!read_section(path, section, pairs)) return NVDS_YAML_PARSER_ERROR;
    *type = value(pairs, "plugin-type", "0") == "1" ? NVDS_GIE_PLUGIN_INFER_SERVER
                                                    : NVDS_GIE_PLUGIN_INFER;
    return NVDS_YAML_PARSER_SUCCESS;
}

HEADRACE_PUBLIC NvDsYamlParserStatus nvds_parse_source_list(GList **list, gchar *path,
                                                            const char *section) {
    Pairs pairs;
    if (!read_section(path, section, pairs)) return NVDS_YAML_PARSER_ERROR;
    if (value(pairs, "enable", "1") == "0") return NVDS_YAML_PARSER_DISABLED;
    const std::string text = value(pairs, "list", "");
    for (size_t start = 0; start < text.size();) {
        const size_t end = std::min(text.find(';', start), text.size());
        const std::string uri = stripped(text.substr(start, end - start));
        if (!uri.empty()) *list = append(*list, duplicate(uri.c_str()));
        start = end + 1;
    }
    return *list == nullptr ? NVDS_YAML_PARSER_ERROR : NVDS_YAML_PARSER_SUCCESS;
}
