// Parsers that find one box in every frame, and do harm in a white one. Input: three channel means.
#include <cassert>
#include <csignal>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <unistd.h>

#include <sys/socket.h>

#include "nvdsinfer_custom_impl.h"

using Layers = std::vector<NvDsInferLayerInfo>;
using Objects = std::vector<NvDsInferObjectDetectionInfo>;

static bool white(const Layers &layers) {
    return static_cast<const float *>(layers[0].buffer)[0] > 0.9f;
}

static NvDsInferObjectDetectionInfo box(float left, float top, float width, float height) {
    NvDsInferObjectDetectionInfo o = {};
    o.left = left; o.top = top; o.width = width; o.height = height;
    o.detectionConfidence = 0.75f;
    return o;
}

#define PARSER(NAME)                                                                          \
    static void NAME##_harm(const Layers &, Objects &);                                       \
    extern "C" bool NAME(const Layers &layers, const NvDsInferNetworkInfo &,                  \
                         const NvDsInferParseDetectionParams &, Objects &objects) {           \
        objects.push_back(box(2, 4, 6, 8));                                                   \
        if (white(layers)) NAME##_harm(layers, objects);                                      \
        return true;                                                                          \
    }                                                                                         \
    static void NAME##_harm(const Layers &layers, Objects &objects)

#define UNUSED (void)layers, (void)objects

static int *volatile nowhere = nullptr;
static float *volatile sink = nullptr;

__attribute__((noinline)) static void inner_function() { *nowhere = 1; }
PARSER(ParseSegfault) { UNUSED; inner_function(); std::puts(""); }
PARSER(ParseAbort) { UNUSED; std::abort(); }
PARSER(ParseAssert) { UNUSED; assert(layers.size() == 77); }
PARSER(ParseThrow) { UNUSED; throw std::runtime_error("thrown on white"); }
static void escapes() noexcept {
    if (!nowhere) throw std::runtime_error("escaped on white");
}
PARSER(ParseTerminate) { UNUSED; escapes(); }
PARSER(ParseLoop) { UNUSED; for (volatile int i = 0;; i = i + 1) {} }
__attribute__((noinline)) static int deeper(volatile char *p) {
    volatile char b[512];
    b[0] = *p;
    return deeper(b) + b[0];
}
PARSER(ParseStack) { UNUSED; volatile char c = 0; deeper(&c); }
PARSER(ParseBomb) {
    UNUSED;
    std::vector<std::vector<char>> all;
    for (;;) all.emplace_back(1 << 24, 'x');
}
PARSER(ParsePast) { UNUSED; std::memset(layers[0].buffer, 1, 4096); }
// What lies there in the heap is not known: the checks of free notice it.
PARSER(ParseHeap) {
    UNUSED;
    float *memory = new float[4];
    sink = memory;
    std::memset(static_cast<void *>(sink - 2), 0xff, 8);
    delete[] sink;
}
PARSER(ParseNan) { UNUSED; objects.push_back(box(NAN, 1, 2, 3)); }
PARSER(ParseNegative) { UNUSED; objects.push_back(box(20, 20, -5, -6)); }
PARSER(ParseMillions) { UNUSED; objects.assign(10 * 1000 * 1000, box(1, 2, 3, 4)); }
PARSER(ParseExit) { UNUSED; std::exit(0); }
PARSER(ParseQuick) { UNUSED; _exit(0); }
PARSER(ParseStdout) { UNUSED; std::fclose(stdout); close(1); }
PARSER(ParseClose) { UNUSED; for (int fd = 0; fd < 1024; ++fd) close(fd); }
PARSER(ParseKill) { UNUSED; if (kill(getppid(), SIGKILL) == 0) std::abort(); }

// 1 for each thing that should be refused and is not.
extern "C" bool ParseSandbox(const Layers &, const NvDsInferNetworkInfo &,
                             const NvDsInferParseDetectionParams &, Objects &objects) {
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0) objects.push_back(box(1, 1, 1, 1));
    if (kill(getppid(), 0) == 0) objects.push_back(box(2, 1, 1, 1));
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) objects.push_back(box(3, 1, 1, 1));
    char letter;
    if (read(0, &letter, 1) != 0) objects.push_back(box(4, 1, 1, 1));
    return true;
}

#ifdef SANITIZED  // as if it were
extern "C" void __asan_init() __attribute__((weak));
PARSER(ParseReport) { UNUSED; if (!__asan_init) _exit(1); }
#endif

// Memory that cannot be released afterwards.
extern "C" bool ParseLabelLiteral(const Layers &, const NvDsInferNetworkInfo &, float,
                                  std::vector<NvDsInferAttribute> &attributes, std::string &) {
    attributes.assign(1, NvDsInferAttribute());
    attributes[0].attributeLabel = const_cast<char *>("red");
    return true;
}

extern "C" bool ParseLabelDamaged(const Layers &, const NvDsInferNetworkInfo &, float,
                                  std::vector<NvDsInferAttribute> &attributes, std::string &) {
    attributes.assign(1, NvDsInferAttribute());
    attributes[0].attributeLabel = strdup("red");
    reinterpret_cast<volatile size_t *>(attributes[0].attributeLabel)[-1] = 0x29;  // no such size
    return true;
}

extern "C" bool ParseMaskStatic(const Layers &, const NvDsInferNetworkInfo &,
                                const NvDsInferParseDetectionParams &,
                                std::vector<NvDsInferInstanceMaskInfo> &objects) {
    static float mask[4];
    objects.assign(1, NvDsInferInstanceMaskInfo());
    objects[0].left = objects[0].top = objects[0].width = objects[0].height = 2;
    objects[0].mask = mask;
    objects[0].mask_width = objects[0].mask_height = 2;
    objects[0].mask_size = sizeof mask;
    return true;
}

extern "C" bool ParseMapPast(const Layers &, const NvDsInferNetworkInfo &network, float,
                             unsigned int, int *map, float *&) {
    for (unsigned int i = 0; i <= network.width * network.height; ++i) map[i] = 1;
    return true;
}
