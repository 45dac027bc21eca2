#include "foreign/objects.h"

#include <mutex>
#include <stdexcept>
#include <unordered_map>

#include "foreign/faces.h"

namespace headrace::foreign {
namespace {

std::mutex lock;
std::unordered_map<const void *, headrace_object *> behind;  // null: it was deleted
std::unordered_map<const headrace_object *, std::pair<void *, int>> shown_of;

}  // namespace

void remember(void *shown, headrace_object *object, int line) {
    std::lock_guard<std::mutex> hold(lock);
    behind[shown] = object;
    shown_of[object] = {shown, line};
}

void *shown_for(const headrace_object *object, int line) {
    std::lock_guard<std::mutex> hold(lock);
    const auto known = shown_of.find(object);
    return known != shown_of.end() && known->second.second == line ? known->second.first : nullptr;
}

headrace_object *object_behind(const void *shown) {
    if (!shown) throw std::invalid_argument("it was given null for an object");
    std::lock_guard<std::mutex> hold(lock);
    const auto known = behind.find(shown);
    if (known == behind.end())
        throw std::invalid_argument("it was given an object that is not of this host");
    if (!known->second) throw std::invalid_argument("it was given an object that was deleted");
    return known->second;
}

void release(void *shown) noexcept {
    headrace_object *object = nullptr;
    {
        std::lock_guard<std::mutex> hold(lock);
        const auto known = behind.find(shown);
        if (known == behind.end() || !known->second) return;
        object = known->second;
        known->second = nullptr;
        shown_of.erase(object);
    }
    headrace_host_api_1()->release(object);
}

void *show(int line, const char *of_class, headrace_object *object) {
    void *shown = line ? faces_of(line).show(of_class, object) : nullptr;
    if (!shown) throw std::invalid_argument(std::string(of_class) + " is not known to it");
    return shown;
}

}  // namespace headrace::foreign
