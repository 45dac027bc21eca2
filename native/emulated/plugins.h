// Plugins of creators that libraries registered in the emulated program: their methods by name.
#pragma once

#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulated/memory.h"
#include "emulated/messages.h"
#include "headrace/host_abi.h"

namespace headrace::emulated {

// What a plugin may not do, or gave; its text is for the user.
struct RefusedError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Plugins {
public:
    explicit Plugins(Tensors &tensors) : tensors_(tensors) {}

    // Runs the method that the message names, and writes its results. Throws what the plugin
    // throws, and RefusedError.
    void call(const std::string &method, Reader &from, Body &to);

    struct Plugin {
        void *self;
        int32_t generation;
        headrace_plugin_v2_calls v2;
        headrace_plugin_v3_calls v3;
    };

    // The number of one that a library passed: it stays the library's.
    uint32_t number_of(const Plugin &plugin);
    const Plugin &of(uint32_t number) const { return plugins_.at(size_t{number} - 1); }

private:
    void make(const std::string &method, Reader &from, Body &to);
    // Writes the number of a plugin of the same class, 0 for null.
    void made(Body &to, const Plugin &like, void *self);
    void enqueue(const std::string &method, const Plugin &plugin, Reader &from, Body &to);

    Tensors &tensors_;
    std::deque<Plugin> plugins_;     // number - 1; without `self` once destroyed
    std::deque<std::string> texts_;  // names and namespaces: libraries keep pointers to them
};

}  // namespace headrace::emulated
