#include "foreign/known.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <stdexcept>

#include "foreign/host.h"

namespace headrace::foreign {
namespace {

std::mutex lock;
std::vector<Registered> all;
std::map<const void *, Origin> origins;  // by where a library begins in memory
char last[64] = "TensorRT";              // read where a process dies: no allocation

void note(Origin &from, int line, int32_t release) {
    from.line = line;
    from.release = std::max(from.release, release);
    std::snprintf(last, sizeof last, "%s", release_text(from.line, from.release).c_str());
}

const void *base_of(const void *address) {
    Dl_info image{};
    return address && dladdr(address, &image) ? image.dli_fbase : nullptr;
}

// Of an object the table of its virtual functions is surely in its library; it may be on the heap.
const void *table_of(const void *object) { return *static_cast<const void *const *>(object); }

// Libraries of TensorRT do not take their creators back when they are unloaded: they stay.
void keep_loaded(const void *code) {
    Dl_info image{};
    if (dladdr(code, &image) && image.dli_fname)
        dlopen(image.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

headrace_object *registry() { return as_object(call(nullptr, "get_plugin_registry", {})); }

}  // namespace

int &expected_line() {
    thread_local int line = 0;
    return line;
}

bool take(Registered one, const headrace_creator_calls &calls, const char *name_space) {
    const void *const table = table_of(one.creator);
    one.base = base_of(table);
    if (!one.base) throw std::invalid_argument("registerCreator: the creator is of no library");
    keep_loaded(table);
    {
        std::lock_guard<std::mutex> hold(lock);
        note(origins[one.base], one.line, one.release);
    }
    headrace_object *const host = registry();
    if (!host) return false;
    const headrace_value done = call(host, "register_creator",
                                     {pointer(HEADRACE_PLUGINS_CREATOR, one.creator, &calls),
                                      text(name_space ? name_space : "")});
    if (done.kind != HEADRACE_BOOL) return false;
    one.first = done.number != 0;
    std::lock_guard<std::mutex> hold(lock);
    const auto same = [&one](const Registered &other) { return other.creator == one.creator; };
    if (std::none_of(all.begin(), all.end(), same)) all.push_back(one);
    return one.first;
}

bool give_back(const void *creator) noexcept {
    {
        std::lock_guard<std::mutex> hold(lock);
        const auto gone = std::remove_if(all.begin(), all.end(), [creator](const Registered &one) {
            return one.creator == creator;
        });
        if (gone == all.end()) return false;
        all.erase(gone, all.end());
    }
    headrace_object *const host = registry();
    if (!host) return false;
    const headrace_value done =
        call(host, "deregister_creator",
             {number(static_cast<int64_t>(reinterpret_cast<uintptr_t>(creator)))});
    return done.kind == HEADRACE_BOOL && done.number;
}

std::vector<Registered> registered(int line, const void *caller) {
    const void *const base = base_of(caller);
    std::lock_guard<std::mutex> hold(lock);
    std::vector<Registered> out;
    for (const Registered &one : all)
        if (one.line == line && (one.first || one.base == base)) out.push_back(one);
    std::stable_partition(out.begin(), out.end(),
                          [base](const Registered &one) { return one.base == base; });
    return out;
}

void require_line(int line, int32_t release, const char *what) {
    const int major = release >= 100000 ? release / 10000 : release / 1000;
    const bool fits = line == 7   ? major >= 5 && major <= 7
                      : line == 8 ? major == 8 || major == 9
                                  : major == line;
    if (release == 0 || fits) return;
    throw std::invalid_argument("the library asks for " + release_text(line, 0) + ", and " + what +
                                " names " + release_text(line, release) +
                                ": the places of their functions differ");
}

void note_release(const void *object, int32_t release) noexcept {
    const void *const base = base_of(table_of(object));
    if (!base || !release) return;
    try {
        std::lock_guard<std::mutex> hold(lock);
        Origin &from = origins[base];
        note(from, from.line, release);
    } catch (...) {  // it is only shown
    }
}

void note_caller(const void *code, int line, int32_t release) noexcept {
    const void *const base = base_of(code);
    if (!base) return;
    try {
        std::lock_guard<std::mutex> hold(lock);
        note(origins[base], line, release);
    } catch (...) {  // it is only shown
    }
}

const char *last_release() noexcept { return last; }

Origin origin(const void *address) noexcept {
    const void *const base = base_of(address);
    std::lock_guard<std::mutex> hold(lock);
    const auto known = base ? origins.find(base) : origins.end();
    return known == origins.end() ? Origin{} : known->second;
}

std::string release_text(int line, int32_t release) {
    if (release == 100000) return "TensorRT 10 or newer";
    if (release <= 0) {
        const char *const range = line == 7    ? "5.1 to 7.2"
                                  : line == 8  ? "8.0 to 9.3"
                                  : line == 10 ? "10"
                                               : "11";
        return std::string("TensorRT ") + range;
    }
    const bool wide = release >= 100000;
    const int major = wide ? release / 10000 : release / 1000;
    const int minor = wide ? release / 100 % 100 : release / 100 % 10;
    return "TensorRT " + std::to_string(major) + "." + std::to_string(minor) + "." +
           std::to_string(release % 100);
}

}  // namespace headrace::foreign
