// Builders, networks and engines: headrace has them, so each call of theirs is a question to it.
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>

#include "emulated/expressions.h"
#include "emulated/messages.h"
#include "emulated/plugins.h"
#include "headrace/host_abi.h"

namespace headrace::emulated {

// An object of headrace as libraries here hold it, and what it gave them: they keep pointers.
struct Handle : headrace_object {
    explicit Handle(int64_t of) : headrace_object{kHost, of} {}
    std::set<std::string> texts;
    std::deque<std::string> data;
    std::string bytes;  // they do not change
    std::vector<headrace_field> rows;
    headrace_fields fields{};
    void *peer = nullptr;
};

constexpr uint32_t kRegistry = 0xFFFFFFFF;  // the number of the registry

// Sends a question, answers requests until its reply is there, and gives that.
using Send = std::function<std::string(const Body &)>;

// While one exists, this thread asks.
class Asking {
public:
    Asking(Plugins &plugins, Send send);
    ~Asking();
    Asking(const Asking &) = delete;
    Asking &operator=(const Asking &) = delete;

private:
    Asking *outer_;
};

// As the functions of headrace_host; zero where nobody asks. They throw nothing.
int32_t ask_call(headrace_object *object, const char *method, const headrace_value *arguments,
                 int32_t count, headrace_value *result) noexcept;
int32_t ask_get(headrace_object *object, const char *name, headrace_value *result) noexcept;
int32_t ask_set(headrace_object *object, const char *name, const headrace_value *value) noexcept;
void ask_release(headrace_object *object) noexcept;
void ask_tell(int32_t severity, const char *text) noexcept;
bool asks();

// The object of a number; null for 0.
headrace_object *handle(uint32_t number);
// The number of an object that a library gave back. Throws RefusedError for one that is none.
uint32_t number_of(const headrace_object *object);

// Calls a logger, a recorder or a calibrator that a library gave, and writes what it answers.
void call_back(Plugins &plugins, Reader &from, Body &to);

}  // namespace headrace::emulated
