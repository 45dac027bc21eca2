// NVRTC as far as its callers need it, and no compiler: an image is its kind and all that it was made of.
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {
struct Program {
    std::string text, images;
    std::vector<std::string> names;
    std::map<std::string, std::string> lowered;
    bool compiled = false;
};
int compilations = 0, alive = 0;

std::string image(const Program *program, const char *kind) { return kind + (":" + program->images); }

int size_of(const Program *program, const char *kind, size_t *out) {
    return program->compiled ? (*out = image(program, kind).size() + 1, 0) : 4;
}

int copy(const Program *program, const char *kind, char *out) {
    if (!program->compiled) return 4;
    const std::string data = image(program, kind);
    std::memcpy(out, data.c_str(), data.size() + 1);
    return 0;
}
}  // namespace

#define IMAGE(kind)                                                                             \
    int nvrtcGet##kind##Size(Program *program, size_t *out) { return size_of(program, #kind, out); } \
    int nvrtcGet##kind(Program *program, char *out) { return copy(program, #kind, out); }

extern "C" {
int headrace_test_compilations() { return compilations; }
int headrace_test_alive() { return alive; }
int nvrtcVersion(int *major, int *minor) { return *major = 13, *minor = 0, 0; }
int nvrtcCreateProgram(Program **out, const char *source, const char *name, int count, const char *const *headers,
                       const char *const *names) {
    *out = new Program;
    (*out)->text = std::string(source) + "|" + (name ? name : "");
    for (int i = 0; i < count; ++i) (*out)->text += std::string("|") + headers[i] + "|" + names[i];
    return ++alive, 0;
}
int nvrtcDestroyProgram(Program **program) { return delete *program, *program = nullptr, --alive, 0; }
int nvrtcAddNameExpression(Program *program, const char *name) { return program->names.push_back(name), 0; }
int nvrtcCompileProgram(Program *program, int count, const char *const *options) {
    ++compilations;
    if (program->text.find("error") != std::string::npos) return 6;
    program->images = program->text;
    for (int i = 0; i < count; ++i) program->images += std::string("|") + options[i];
    for (const auto &name : program->names) program->lowered[name] = "_Z" + name;
    return program->compiled = true, 0;
}
int nvrtcGetLoweredName(Program *program, const char *name, const char **out) {
    const auto found = program->lowered.find(name);
    return found == program->lowered.end() ? 10 : (*out = found->second.c_str(), 0);
}
IMAGE(PTX)
IMAGE(CUBIN)
IMAGE(ProgramLog)
IMAGE(LTOIR)
}
