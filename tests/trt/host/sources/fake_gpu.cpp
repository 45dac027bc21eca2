// A driver (libcuda.so.1) whose device is memory that nobody else can touch: it is accessible only
// while queued work is done, and that is when a stream is waited for. What a caller may not do fails
// as it does on a GPU.
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>

namespace {

enum {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    invalid_context = 201,
    invalid_handle = 400,
    illegal_address = 700
};
using Work = std::function<int()>;

struct Stream {
    std::deque<Work> queued;
};

std::mutex lock;
std::map<uintptr_t, size_t> allocated;
std::set<Stream *> streams;
int retained = 0;
int broken = success;
int refused = 0;
char context;
thread_local void *current = nullptr;

bool owned(const void *at, size_t size) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(at);
    auto after = allocated.upper_bound(address);
    if (after == allocated.begin()) return false;
    --after;
    return address + size <= after->first + after->second;
}

void open_all(int rights) {
    for (const auto &one : allocated)
        mprotect(reinterpret_cast<void *>(one.first), one.second, rights);
}

void drain(Stream &stream) {
    open_all(PROT_READ | PROT_WRITE);
    while (!stream.queued.empty() && !broken) {
        broken = stream.queued.front()();
        stream.queued.pop_front();
    }
    open_all(PROT_NONE);
}

int usable() { return current != &context ? invalid_context : broken; }

int queue(void *stream, Work work) {
    std::lock_guard<std::mutex> held(lock);
    if (int error = usable()) return error;
    if (!stream) return invalid_value;
    static_cast<Stream *>(stream)->queued.push_back(std::move(work));
    return success;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return success; }
int cuDeviceGetCount(int *count) { return *count = 1, success; }
int cuDeviceGet(int *device, int) { return *device = 0, success; }
int cuDevicePrimaryCtxRetain(void **made, int) {
    std::lock_guard<std::mutex> held(lock);
    ++retained;
    return *made = &context, success;
}
int cuCtxSetCurrent(void *given) { return current = given, success; }
int cuCtxGetCurrent(void **found) { return *found = current, success; }
int cuDevicePrimaryCtxGetState(int, unsigned *flags, int *active) {
    std::lock_guard<std::mutex> held(lock);
    *flags = 0;
    *active = retained > 0;
    return success;
}

int cuDevicePrimaryCtxRelease_v2(int) {
    std::lock_guard<std::mutex> held(lock);
    --retained;
    return success;
}

int cuCtxSynchronize() {
    std::lock_guard<std::mutex> held(lock);
    if (int error = usable()) return error;
    for (Stream *stream : streams) drain(*stream);
    return broken;
}

int cuGetErrorString(int status, const char **text) {
    *text = status == illegal_address ? "an illegal memory access was encountered"
            : status == out_of_memory ? "out of memory"
            : status == invalid_context ? "invalid device context"
                                        : "invalid argument";
    return success;
}

int cuMemAlloc_v2(void **made, size_t size) {
    std::lock_guard<std::mutex> held(lock);
    if (int error = usable()) return error;
    if (!size || size > (size_t(1) << 30)) return size ? out_of_memory : invalid_value;
    size = (size + 4095) & ~size_t(4095);
    *made = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*made == MAP_FAILED) return out_of_memory;
    allocated[reinterpret_cast<uintptr_t>(*made)] = size;
    return success;
}

int cuMemFree_v2(void *given) {
    std::lock_guard<std::mutex> held(lock);
    const auto at = allocated.find(reinterpret_cast<uintptr_t>(given));
    if (at == allocated.end()) return invalid_value;
    munmap(given, at->second);
    allocated.erase(at);
    return success;
}

int cuStreamCreate(void **made, unsigned) {
    std::lock_guard<std::mutex> held(lock);
    if (int error = usable()) return error;
    Stream *stream = new Stream;
    streams.insert(stream);
    *made = stream;
    return success;
}

int cuStreamDestroy_v2(void *given) {
    std::lock_guard<std::mutex> held(lock);
    streams.erase(static_cast<Stream *>(given));
    delete static_cast<Stream *>(given);
    return success;
}

// The copy that comes after `count` others is refused.
void cuRefuseCopy(int count) { refused = count + 1; }

int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t size, void *stream) {
    if (refused && --refused == 0) return out_of_memory;
    return queue(stream, [=] {
        return owned(to, size) ? std::memcpy(to, from, size), success : illegal_address;
    });
}

int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t size, void *stream) {
    if (refused && --refused == 0) return out_of_memory;
    return queue(stream, [=] {
        return owned(from, size) ? std::memcpy(to, from, size), success : illegal_address;
    });
}

int cuPointerGetAttribute(void *found, int attribute, uint64_t at) {
    std::lock_guard<std::mutex> held(lock);
    if (!owned(reinterpret_cast<void *>(at), 1)) return invalid_value;
    *static_cast<unsigned *>(found) = attribute == 2 ? 2 : 0;
    return success;
}

int cuMemcpyDtoH_v2(void *to, const void *from, size_t size) {
    std::lock_guard<std::mutex> held(lock);
    if (int error = usable()) return error;
    if (!owned(from, size)) return invalid_value;
    open_all(PROT_READ);
    std::memcpy(to, from, size);
    open_all(PROT_NONE);
    return success;
}

int cuMemcpyHtoD_v2(void *to, const void *from, size_t size) {
    std::lock_guard<std::mutex> held(lock);
    if (int error = usable()) return error;
    if (!owned(to, size)) return invalid_value;
    open_all(PROT_WRITE);
    std::memcpy(to, from, size);
    open_all(PROT_NONE);
    return success;
}

int cuMemsetD8Async(void *to, unsigned char value, size_t size, void *stream) {
    return queue(stream, [=] {
        return owned(to, size) ? std::memset(to, value, size), success : illegal_address;
    });
}

// The one kernel that there is.
int cuScale(const void *from, void *to, size_t count, float factor, void *stream) {
    return queue(stream, [=] {
        if (!owned(from, 4 * count) || !owned(to, 4 * count)) return int(illegal_address);
        const float *x = static_cast<const float *>(from);
        for (size_t i = 0; i < count; ++i) {
            if (x[i] == 666.0f) return int(illegal_address);
            for (volatile float endless = x[i]; endless == 667.0f;) {
            }
            static_cast<float *>(to)[i] = x[i] * factor;
        }
        return int(success);
    });
}

int cuStreamSynchronize(void *given) {
    std::lock_guard<std::mutex> held(lock);
    if (int error = usable()) return error;
    Stream *stream = static_cast<Stream *>(given);
    if (!streams.count(stream)) return invalid_handle;
    drain(*stream);
    return broken;
}

// Allocations, and streams, that were not freed.
int cuLive() { return int(allocated.size()) * 100 + int(streams.size()); }
}
