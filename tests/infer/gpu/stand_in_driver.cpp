// NVIDIA's driver as far as headrace's scaler calls it, on the CPU: device memory is host memory, a launch
// runs the kernel's own source over its grid. Copies check that they stay inside what was allocated, and
// launches that kernel, queue and memory are of the GPU whose context is current. There may be several GPUs.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "draw_kernel.cu"
#include "hits_kernel.cu"
#include "jpeg_kernel.cu"
#include "patches_kernel.cu"
#include "preprocess_kernel.cu"
#include "tiles_kernel.cu"

using namespace headrace::decode;
using namespace headrace::preprocess;

namespace {

std::mutex lock;
struct Block {
    size_t size;
    int gpu;
};
struct Queue {
    int gpu;
};
struct Module {
    const char *name;
    int gpu;
};
std::map<uint64_t, Block> allocated;
int fail_allocations = 0, gpus = 1, lost = -1;
size_t launches[8], retained[8];
int chips[8] = {90, 90, 90, 90, 90, 90, 90, 90};
int contexts[8];  // the address of each is that of a GPU's context
thread_local int *current = nullptr;
const char *const scaling = "headrace_preprocess", *const finding = "headrace_hits";
const char *const taking = "headrace_patches", *const drawing = "headrace_draw", *const coding = "headrace_jpeg";
const char *const tiling = "headrace_tiles";

int gpu_of(const int *context) { return int(context - contexts); }
int here() { return current ? gpu_of(current) : -1; }

// `gpu` -1: any.
bool inside(uint64_t address, size_t size, int gpu = -1) {
    std::lock_guard<std::mutex> hold(lock);
    auto after = allocated.upper_bound(address);
    if (after == allocated.begin()) return false;
    const auto &[start, block] = *--after;
    return address + size <= start + block.size && (gpu < 0 || gpu == block.gpu);
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}
int cuDeviceGetCount(int *count) { return *count = gpus, 0; }
int cuDeviceGet(int *device, int number) { return *device = number, number < gpus ? 0 : 101; }
void headrace_test_chip(int gpu, int number) { chips[gpu] = number; }
int cuDeviceGetAttribute(int *value, int attribute, int gpu) {
    if (attribute != 75 && attribute != 76) return 1;  // its compute capability
    return *value = attribute == 75 ? chips[gpu] / 10 : chips[gpu] % 10, 0;
}
int cuModuleUnload(void *) { return 0; }
int cuDevicePrimaryCtxSetFlags_v2(int, unsigned flags) { return flags == 4 ? 0 : 1; }
int cuDevicePrimaryCtxRetain(void **to, int device) { return ++retained[device], *to = &contexts[device], 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuDevicePrimaryCtxGetState(int, unsigned *flags, int *active) { return *flags = 4, *active = 1, 0; }
int cuCtxSetCurrent(int *to) { return current = to, 0; }
int cuCtxGetCurrent(void **to) { return *to = current, 0; }
int cuCtxSynchronize() { return here() == lost ? 700 : 0; }
int cuGetErrorString(int status, const char **text) {
    static thread_local char said[64];
    std::snprintf(said, sizeof said, status == 2 ? "out of memory" : "error %d", status);
    return *text = said, 0;
}

void headrace_test_fail_allocations(int count) { fail_allocations = count; }
void headrace_test_gpus(int count) { gpus = count; }
void headrace_test_lose(int gpu) { lost = gpu; }
size_t headrace_test_retained(int gpu) { return retained[gpu]; }
size_t headrace_test_launches(int gpu) { return launches[gpu]; }
size_t headrace_test_allocated() {
    std::lock_guard<std::mutex> hold(lock);
    return allocated.size();
}

int cuMemAlloc_v2(void **to, size_t size) {
    std::lock_guard<std::mutex> hold(lock);
    if (fail_allocations && --fail_allocations == 0) return 2;
    *to = std::malloc(size);
    std::memset(*to, 0xa5, size);
    allocated[uint64_t(*to)] = {size, here()};
    return here() < 0 ? 201 : 0;
}
int cuMemFree_v2(void *pointer) {
    std::lock_guard<std::mutex> hold(lock);
    allocated.erase(uint64_t(pointer));
    return std::free(pointer), 0;
}
int cuMemHostAlloc(void **to, size_t size, unsigned) { return *to = std::malloc(size), 0; }
int cuMemFreeHost(void *pointer) { return std::free(pointer), 0; }
int cuStreamCreate(void **to, unsigned) { return *to = new Queue{here()}, 0; }
int cuStreamDestroy_v2(Queue *stream) { return delete stream, 0; }
int cuStreamSynchronize(void *) { return current ? 0 : 201; }
int cuEventCreate(void **to, unsigned) { return *to = new Queue{here()}, 0; }
int cuEventDestroy_v2(Queue *event) { return delete event, 0; }
// An event marks work of its own GPU; the default stream is that of the current one.
int cuEventRecord(const Queue *event, const Queue *stream) {
    return current && event->gpu == (stream ? stream->gpu : here()) ? 0 : 400;
}
int cuStreamWaitEvent(void *, void *, unsigned) { return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *) {
    if (!inside(to, size)) return 1;
    return std::memcpy(reinterpret_cast<void *>(to), from, size), 0;
}
int cuMemcpyPeerAsync(uint64_t to, const int *to_context, uint64_t from, const int *, size_t size, const Queue *queue) {
    if (!inside(to, size, gpu_of(to_context)) || queue->gpu != gpu_of(to_context)) return 1;
    return std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), size), 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *) {
    if (!inside(to, size, here()) || !inside(from, size, here())) return 1;
    return std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), size), 0;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *) {
    if (!inside(from, size)) return 1;
    return std::memcpy(to, reinterpret_cast<void *>(from), size), 0;
}

struct Copy2D {
    size_t from_x, from_y;
    int from_type;
    const void *from_host;
    uint64_t from_device;
    void *from_array;
    size_t from_pitch, to_x, to_y;
    int to_type;
    char *to_host;
    uint64_t to_device;
    void *to_array;
    size_t to_pitch, width, height;
};
int cuMemcpy2D_v2(const Copy2D *copy) {
    if (copy->from_type != 2 || copy->to_type != 1) return 1;
    for (size_t row = 0; row < copy->height; ++row)
        std::memcpy(copy->to_host + row * copy->to_pitch,
                    reinterpret_cast<const char *>(copy->from_device + row * copy->from_pitch),
                    copy->width);
    return 0;
}

int cuModuleLoadData(void **to, const char *ptx) {
    for (const char *name : {scaling, finding, taking, drawing, coding, tiling})
        if (std::strstr(ptx, (std::string(".entry ") + name).c_str())) return *to = new Module{name, here()}, 0;
    return 218;
}
int cuModuleGetFunction(void **to, Module *module, const char *name) {
    *to = module;
    return std::strcmp(name, module->name) ? 500 : 0;
}

int launch_finding(unsigned gx, unsigned gy, unsigned bx, void **arguments) {
    const auto &tables = *static_cast<const Tables *>(arguments[0]);
    const size_t room = size_t(tables.candidates) * gy;
    if (gx * bx < unsigned(tables.candidates) || !inside(uint64_t(tables.hits), room * sizeof(Hit), here()) ||
        !inside(uint64_t(tables.found), 4, here()) ||
        !inside(uint64_t(tables.thresholds), 4 * size_t(tables.known), here()))
        return 1;
    for (int item = 0; item < int(gy); ++item)  // backwards: the order of hits is nobody's promise
        for (int i = tables.candidates - 1; i >= 0; --i) look_at(tables, item, i);
    return 0;
}

int launch_taking(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, void **arguments) {
    const auto &patches = *static_cast<const headrace::track::Patches *>(arguments[0]);
    const size_t side = size_t(patches.side);
    if (gx * bx < side || gy * by < side || !inside(uint64_t(patches.rgb), 3 * side * side * gz, here()) ||
        !inside(uint64_t(patches.across), 4 * side * gz, here()) ||
        !inside(uint64_t(patches.down), 4 * side * gz, here()))
        return 1;
    for (int patch = int(gz); patch--;)
        for (int y = 0; y < patches.side; ++y)
            for (int x = 0; x < patches.side; ++x) take_sample(patches, patch, y, x);
    return 0;
}

int launch_drawing(unsigned gx, unsigned gy, unsigned bx, unsigned by, void **arguments) {
    const auto &sheet = *static_cast<const headrace::draw::Sheet *>(arguments[0]);
    const int columns = (sheet.width + 1) / 2, rows = (sheet.height + 1) / 2;
    const auto pitch = size_t(sheet.pitch);
    if (gx * bx < unsigned(columns) || gy * by < unsigned(rows) ||
        !inside(uint64_t(sheet.luma), pitch * size_t(sheet.height), here()) ||
        !inside(uint64_t(sheet.chroma), pitch * size_t(rows), here()))
        return 1;
    for (int i = 0; i < sheet.count; ++i) {
        const auto &c = sheet.commands[i];
        const size_t size = size_t(c.pitch) * size_t(c.bottom - c.top);
        if (!inside(uint64_t(&c), sizeof c, here()) ||
            (c.kind == headrace::draw::kText && (!inside(uint64_t(c.cover), size, here()) ||
                                                 !inside(uint64_t(c.inks), 256 * sizeof *c.inks, here()))))
            return 1;
    }
    for (int y = 0; y < rows; ++y)
        for (int x = 0; x < columns; ++x) draw_quad(sheet, x, y);
    return 0;
}

int launch_coding(unsigned gx, unsigned gy, unsigned bx, unsigned by, void **arguments) {
    const auto &samples = *static_cast<const headrace::jpeg::Samples *>(arguments[0]);
    const int columns = (samples.width + 1) / 2, rows = (samples.height + 1) / 2;
    if (gx * bx < unsigned(columns) || gy * by < unsigned(rows)) return 1;
    for (int i = 0; i < 3; ++i) {
        const auto high = size_t(i ? rows : samples.height), wide = size_t(i ? columns : samples.width);
        const auto pitch = size_t(samples.pitch[i]);
        if (!inside(uint64_t(samples.plane[i]), pitch * (high - 1) + wide, here())) return 1;
    }
    for (int y = 0; y < rows; ++y)
        for (int x = 0; x < columns; ++x) jpeg_quad(samples, x, y);
    return 0;
}

int launch_tiling(unsigned gx, unsigned gy, unsigned bx, unsigned by, void **arguments) {
    const auto &mosaic = *static_cast<const headrace::draw::Mosaic *>(arguments[0]);
    const int columns = mosaic.width / 2, rows = mosaic.height / 2;
    const auto pitch = size_t(mosaic.pitch);
    if (gx * bx < unsigned(columns) || gy * by < unsigned(rows) ||
        !inside(uint64_t(mosaic.luma), pitch * size_t(mosaic.height), here()) ||
        !inside(uint64_t(mosaic.chroma), pitch * size_t(rows), here()))
        return 1;
    for (int i = 0; i < mosaic.count; ++i) {
        const auto &tile = mosaic.tiles[i];
        if (!inside(uint64_t(&tile), sizeof tile, here())) return 1;
        for (int set = 0; set < 2; ++set)
            for (int way = 0; way < 2; ++way) {
                const auto &axis = way ? tile.y[set] : tile.x[set];
                const auto count = size_t(way ? tile.height : tile.width) >> set;
                if (!inside(uint64_t(axis.first), 4 * count, here()) ||
                    !inside(uint64_t(axis.weights), 2 * count * size_t(axis.taps), here()))
                    return 1;
            }
    }
    for (int y = 0; y < rows; ++y)
        for (int x = 0; x < columns; ++x) tile_quad(mosaic, x, y);
    return 0;
}

int cuLaunchKernel(const Module *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned, const Queue *queue, void **arguments, void **) {
    if (function->gpu != here() || queue->gpu != here()) return 400;
    ++launches[here()];
    if (function->name == finding) return launch_finding(gx, gy, bx, arguments);
    if (function->name == drawing) return launch_drawing(gx, gy, bx, by, arguments);
    if (function->name == tiling) return launch_tiling(gx, gy, bx, by, arguments);
    if (function->name == coding) return launch_coding(gx, gy, bx, by, arguments);
    if (function->name == taking) return launch_taking(gx, gy, gz, bx, by, arguments);
    const auto &settings = *static_cast<const Settings *>(arguments[0]);
    const auto *items = *static_cast<const Item *const *>(arguments[1]);
    const size_t channels = settings.color == kModelGray ? 1 : 3;
    const size_t size = size_t(settings.width) * size_t(settings.height) * channels * gz;
    if (bz != 1 || gx * bx < unsigned(settings.width) || gy * by < unsigned(settings.height) ||
        !inside(uint64_t(settings.out), size * (settings.half ? 2 : 4), here()) ||
        !inside(uint64_t(items), gz * sizeof(Item), here()))
        return 1;
    for (int i = 0; i < int(gz); ++i)
        for (int y = 0; y < settings.height; ++y)
            for (int x = 0; x < settings.width; ++x) make_pixel(settings, items[i], i, x, y);
    return 0;
}
}
