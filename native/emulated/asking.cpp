#include "emulated/asking.h"

#include <pthread.h>

#include <cstring>
#include <map>
#include <memory>

#include "host/fields.h"

namespace headrace::emulated {
namespace {

enum Question : uint32_t { kCallOf, kGet, kSet, kRelease, kTell };
constexpr size_t kMostText = size_t{1} << 31;

// A logger, recorder or calibrator of the library, with the calls that it came with.
struct Foreign {
    int32_t kind;
    void *self;
    headrace_logger_calls logger;
    headrace_calibrator_calls calibrator;
    headrace_callback_calls callback;
};

std::map<uint32_t, std::unique_ptr<Handle>> handles;
std::deque<Foreign> foreign;  // number - 1
Handle functions{0};

struct Asker {
    Plugins *plugins;
    Send send;
    pthread_t thread;
};
Asker asker;
Asking *current = nullptr;

template <typename Calls>
void copy(Calls &to, const void *calls) {
    uint32_t size = 0;  // of the library's own table: it may be older and shorter
    std::memcpy(&size, calls, sizeof size);
    std::memcpy(&to, calls, std::min<size_t>(size, sizeof to));
}

uint32_t foreign_number(const headrace_value &v) {
    Foreign one{v.kind, const_cast<void *>(v.data), {}, {}, {}};
    if (v.kind == HEADRACE_LOGGER) copy(one.logger, v.extra);
    if (v.kind == HEADRACE_CALIBRATOR) copy(one.calibrator, v.extra);
    if (v.kind == HEADRACE_CALLBACK) copy(one.callback, v.extra);
    foreign.push_back(one);
    return static_cast<uint32_t>(foreign.size());
}

void put_text(Body &to, const void *text, size_t size) {
    if (size >= kMostText) throw RefusedError("more than 2 GiB in one call");
    to.text(static_cast<const char *>(text), size);
}
void put_text(Body &to, const void *text) {
    put_text(to, text ? text : "", text ? std::strlen(static_cast<const char *>(text)) : 0);
}

template <typename T>
void put_list(Body &to, const headrace_value &v) {
    const auto count = static_cast<size_t>(v.number > 0 ? v.number : 0);
    put_text(to, v.data, count * sizeof(T));
}

void put_fields(Body &to, const headrace_fields *fields) {
    to.add(static_cast<uint32_t>(fields->count > 0 ? fields->count : 0));
    for (int32_t i = 0; i < fields->count; ++i) {
        const headrace_field &f = fields->fields[i];
        put_text(to, f.name);
        to.add(f.type).add(f.length).add<uint32_t>(f.data != nullptr);
        if (f.data) put_text(to, f.data, hosting::field_bytes(f.type, f.length));
    }
}

void put_plugin(Body &to, const headrace_plugin &plugin, Plugins &plugins) {
    to.add(plugin.generation);
    if (plugin.generation == HEADRACE_PLUGIN_OF_HOST)
        to.add(number_of(plugin.object));
    else if (plugin.generation >= 0)
        to.add(plugins.number_of({plugin.self, plugin.generation, plugin.v2, plugin.v3}));
}

// The other side: src/headrace/custom/emulated/values.py.
void put(Body &to, const headrace_value &v, Plugins &plugins) {
    to.add(static_cast<uint32_t>(v.kind));
    switch (v.kind) {
    case HEADRACE_BOOL:
    case HEADRACE_INT: to.add(v.number); break;
    case HEADRACE_REAL: to.add(v.real); break;
    case HEADRACE_TEXT: put_text(to, v.data); break;
    case HEADRACE_BYTES: put_list<char>(to, v); break;
    case HEADRACE_INTS: put_list<int64_t>(to, v); break;
    case HEADRACE_REALS: put_list<float>(to, v); break;
    case HEADRACE_DIMS:
        to.add(v.dims.count);
        for (int32_t i = 0; i < v.dims.count && i < HEADRACE_MAX_AXES; ++i) to.add(v.dims.axes[i]);
        break;
    case HEADRACE_ENUM:
        put_text(to, v.extra);
        to.add(v.number).add<uint32_t>(v.data != nullptr);
        put_text(to, v.data);
        break;
    case HEADRACE_WEIGHTS:
        to.add(v.code).add(reinterpret_cast<uint64_t>(v.data)).add(v.number);
        break;
    case HEADRACE_ADDRESS: to.add(reinterpret_cast<uint64_t>(v.data)); break;
    case HEADRACE_OBJECT: to.add(number_of(static_cast<const headrace_object *>(v.data))); break;
    case HEADRACE_OBJECTS:
        to.add(static_cast<uint32_t>(v.number));
        for (int64_t i = 0; i < v.number; ++i)
            to.add(number_of(static_cast<headrace_object *const *>(v.data)[i]));
        break;
    case HEADRACE_FIELDS: put_fields(to, static_cast<const headrace_fields *>(v.data)); break;
    case HEADRACE_PLUGIN:
        put_plugin(to, *static_cast<const headrace_plugin *>(v.data), plugins);
        break;
    case HEADRACE_LOGGER:
    case HEADRACE_CALIBRATOR:
    case HEADRACE_CALLBACK: {
        const uint32_t number = foreign_number(v);
        const Foreign &one = foreign.back();
        to.add(number).add(one.calibrator.algorithm);
        put_text(to, one.callback.kind);
        break;
    }
    default: break;  // nothing, and what is refused: creators, factories
    }
}

const char *kept(Handle &owner, const std::string &text) {
    return owner.texts.insert(text).first->c_str();
}

const void *kept_data(Handle &owner, const std::string &data) {
    owner.data.push_back(data);
    return owner.data.back().data();
}

void take_fields(Reader &from, Handle &owner) {
    owner.rows.clear();
    for (auto count = from.take<uint32_t>(); count; --count) {
        headrace_field f{};
        f.name = kept(owner, from.text());
        f.type = from.take<int32_t>();
        f.length = from.take<int32_t>();
        if (from.take<uint32_t>()) f.data = kept_data(owner, from.text());
        owner.rows.push_back(f);
    }
    owner.fields = {static_cast<int32_t>(owner.rows.size()), owner.rows.data()};
}

headrace_value take(Reader &from, Handle &owner, Plugins &plugins) {
    headrace_value v{};
    v.kind = from.take<int32_t>();
    switch (v.kind) {
    case HEADRACE_BOOL:
    case HEADRACE_INT: v.number = from.take<int64_t>(); break;
    case HEADRACE_REAL: v.real = from.take<double>(); break;
    case HEADRACE_TEXT: v.data = kept(owner, from.text()); break;
    case HEADRACE_BYTES:
        owner.bytes = from.text();
        v.data = owner.bytes.data(), v.number = static_cast<int64_t>(owner.bytes.size());
        break;
    case HEADRACE_DIMS: {
        v.dims.count = from.take<int32_t>();
        for (int32_t i = 0; i < v.dims.count && i < HEADRACE_MAX_AXES; ++i)
            v.dims.axes[i] = from.take<int64_t>();
        if (from.take<uint32_t>())  // the last one is the address of what follows
            v.dims.axes[v.dims.count - 1] =
                static_cast<int64_t>(reinterpret_cast<uintptr_t>(kept_data(owner, from.text())));
        break;
    }
    case HEADRACE_OBJECT: v.data = handle(from.take<uint32_t>()); break;
    case HEADRACE_FIELDS:
        take_fields(from, owner);
        v.data = &owner.fields;
        break;
    case HEADRACE_PLUGIN:  // of this library: it knows its address
        v.kind = HEADRACE_ADDRESS;
        v.data = plugins.of(from.take<uint32_t>()).self;
        break;
    case HEADRACE_LOGGER:
    case HEADRACE_CALIBRATOR:
    case HEADRACE_CALLBACK: v.data = foreign.at(size_t{from.take<uint32_t>()} - 1).self; break;
    default: v.kind = HEADRACE_NONE;
    }
    return v;
}

// Asks, and takes the result where the call succeeded.
template <typename Write>
int32_t asked(headrace_object *object, Question what, headrace_value *result,
              Write write) noexcept {
    if (result) *result = {};
    if (!asks()) return 0;
    try {
        Body question;
        question.add<uint32_t>(what).add(object ? number_of(object) : 0U);
        write(question);
        const std::string answer = asker.send(question);
        Reader from(answer);
        if (!from.take<uint32_t>()) return 0;
        Handle &owner = object ? *static_cast<Handle *>(object) : functions;
        const headrace_value given = take(from, owner, *asker.plugins);
        if (result) *result = given;
        return 1;
    } catch (const std::exception &error) {
        ask_tell(1, error.what());
        return 0;
    }
}

}  // namespace

bool asks() { return current && pthread_equal(pthread_self(), asker.thread); }

Asking::Asking(Plugins &plugins, Send send) : outer_(current) {
    asker = {&plugins, std::move(send), pthread_self()};
    current = this;
}

Asking::~Asking() { current = outer_; }

headrace_object *handle(uint32_t number) {
    if (!number) return nullptr;
    auto &one = handles[number];
    if (!one) one = std::make_unique<Handle>(number);
    return one.get();
}

uint32_t number_of(const headrace_object *object) {
    if (!object) return 0;
    if (object->kind != headrace_object::kHost)
        throw RefusedError("an object that is none of the builder's was given for one");
    return static_cast<uint32_t>(object->number);
}

int32_t ask_call(headrace_object *object, const char *method, const headrace_value *arguments,
                 int32_t count, headrace_value *result) noexcept {
    const bool bytes = object && std::strcmp(method, "__bytes__") == 0;
    if (bytes && !static_cast<Handle *>(object)->bytes.empty()) {
        const std::string &known = static_cast<Handle *>(object)->bytes;
        *result = {};
        result->kind = HEADRACE_BYTES;
        result->data = known.data(), result->number = static_cast<int64_t>(known.size());
        return 1;
    }
    return asked(object, kCallOf, result, [&](Body &to) {
        put_text(to, method);
        to.add(static_cast<uint32_t>(count));
        for (int32_t i = 0; i < count; ++i) put(to, arguments[i], *asker.plugins);
    });
}

int32_t ask_get(headrace_object *object, const char *name, headrace_value *result) noexcept {
    return asked(object, kGet, result, [&](Body &to) { put_text(to, name); });
}

int32_t ask_set(headrace_object *object, const char *name, const headrace_value *value) noexcept {
    return asked(object, kSet, nullptr, [&](Body &to) {
        put_text(to, name);
        put(to, *value, *asker.plugins);
    });
}

void ask_release(headrace_object *object) noexcept {
    if (!object || object->kind != headrace_object::kHost) return;
    asked(object, kRelease, nullptr, [](Body &) {});
}

void ask_tell(int32_t severity, const char *text) noexcept {
    asked(nullptr, kTell, nullptr, [&](Body &to) {
        to.add(severity);
        put_text(to, text);
    });
}

void call_back(Plugins &plugins, Reader &from, Body &to) {
    const Foreign one = foreign.at(size_t{from.take<uint32_t>()} - 1);
    const std::string method = from.text();
    Handle given{0};  // what the arguments point to
    std::vector<headrace_value> arguments;
    for (auto count = from.take<uint32_t>(); count; --count)
        arguments.push_back(take(from, given, plugins));
    headrace_value result{};
    const auto told = [&](int32_t kind, int64_t number, const void *data = nullptr) {
        result.kind = kind, result.number = number, result.data = data;
    };
    if (one.kind == HEADRACE_LOGGER) {
        one.logger.log(one.self, static_cast<int32_t>(arguments.at(0).number),
                       static_cast<const char *>(arguments.at(1).data));
    } else if (one.kind == HEADRACE_CALLBACK) {
        one.callback.call(one.self, method.c_str(), arguments.data(),
                          static_cast<int32_t>(arguments.size()), &result);
    } else if (method == "batch_size") {
        told(HEADRACE_INT, one.calibrator.batch_size(one.self));
    } else if (method == "read_cache") {
        size_t size = 0;
        const void *cache = one.calibrator.read_cache(one.self, &size);
        if (cache && size) told(HEADRACE_BYTES, static_cast<int64_t>(size), cache);
    } else {
        one.calibrator.write_cache(one.self, arguments.at(0).data,
                                   static_cast<size_t>(arguments.at(0).number));
    }
    put(to, result, plugins);
}

}  // namespace headrace::emulated
