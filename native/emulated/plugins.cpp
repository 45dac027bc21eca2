#include "emulated/plugins.h"

#include <functional>
#include <map>
#include <stdexcept>
#include <tuple>
#include <type_traits>

#include "core/readable.h"
#include "emulated/creators.h"
#include "emulated/expressions.h"
#include "host/fields.h"

namespace headrace::emulated {
namespace {

using V2 = headrace_plugin_v2_calls;
using V3 = headrace_plugin_v3_calls;
using Plugin = Plugins::Plugin;

constexpr size_t kMostBytes = size_t{1} << 31;

template <typename T>
std::vector<T> many(Reader &from) {
    std::vector<T> out;
    for (auto count = from.take<uint32_t>(); count; --count) out.push_back(from.take<T>());
    return out;
}

template <typename T>
int32_t size(const std::vector<T> &items) {
    return static_cast<int32_t>(items.size());
}

void put(Body &to, const char *text) {
    to.add<uint32_t>(text != nullptr);
    if (text) to.text(text, std::strlen(text));
}
template <typename T>
std::enable_if_t<std::is_integral_v<T>> put(Body &to, T number) {
    to.add(static_cast<int64_t>(number));
}

template <typename Calls>
const Calls &calls_of(const Plugin &plugin) {
    if constexpr (std::is_same_v<Calls, V2>)
        return plugin.v2;
    else
        return plugin.v3;
}

template <typename Call>
Call there(Call call) {
    if (!call) throw RefusedError("plugins of this generation have no such method");
    return call;
}

using Method = std::function<void(const Plugin &, Reader &, Body &)>;
using Methods = std::map<std::string, Method>;

// Numbers in; nothing, a number or a text out.
template <typename Calls, typename R, typename... Numbers>
Method plain(R (*Calls::*member)(void *, Numbers...)) {
    return [member](const Plugin &plugin, Reader &from, Body &to) {
        const auto call = there(calls_of<Calls>(plugin).*member);
        const std::tuple<Numbers...> numbers{from.take<Numbers>()...};
        std::apply(
            [&](auto... each) {
                if constexpr (std::is_void_v<R>)
                    call(plugin.self, each...);
                else
                    put(to, call(plugin.self, each...));
            },
            numbers);
    };
}

// Descriptors of inputs and of outputs in.
template <typename Calls, typename R>
Method of_descs(R (*Calls::*member)(void *, const headrace_desc *, int32_t, const headrace_desc *,
                                    int32_t)) {
    return [member](const Plugin &plugin, Reader &from, Body &to) {
        const auto call = there(calls_of<Calls>(plugin).*member);
        const auto in = many<headrace_desc>(from), out = many<headrace_desc>(from);
        if constexpr (std::is_void_v<R>)
            call(plugin.self, in.data(), size(in), out.data(), size(out));
        else
            put(to, call(plugin.self, in.data(), size(in), out.data(), size(out)));
    };
}

template <typename Calls>
void add_common(Methods &to) {
    to["version"] = plain(&Calls::version);
    to["get_namespace"] = plain(&Calls::get_namespace);
    to["output_count"] = plain(&Calls::output_count);
    to["configure"] = of_descs(&Calls::configure);
    to["class_name"] = [](const Plugin &plugin, Reader &, Body &to) {
        to.text(core::readable(calls_of<Calls>(plugin).class_name(plugin.self)));
    };
    to["supports_combination"] = [](const Plugin &plugin, Reader &from, Body &to) {
        const auto call = there(calls_of<Calls>(plugin).supports_combination);
        const auto position = from.take<int32_t>(), inputs = from.take<int32_t>();
        const auto all = many<headrace_desc>(from);
        put(to, call(plugin.self, position, all.data(), inputs, size(all) - inputs));
    };
}

void serialize(const Plugin &plugin, Reader &from, Body &to) {
    const size_t wanted = there(plugin.v2.serialization_size)(plugin.self);
    if (wanted > kMostBytes)
        throw RefusedError("getSerializationSize returned " + std::to_string(wanted) + " bytes");
    const Guarded memory(wanted);  // what is written behind it ends the program, by name
    std::memset(memory.start(), from.take<int32_t>(), wanted);
    there(plugin.v2.serialize)(plugin.self, memory.start());
    to.bytes(memory.start(), wanted);
}

Methods methods_v2() {
    Methods to;
    add_common<V2>(to);
    to["type"] = plain(&V2::type);
    to["initialize"] = plain(&V2::initialize);
    to["terminate"] = plain(&V2::terminate);
    to["serialization_size"] = plain(&V2::serialization_size);
    to["serialize"] = &serialize;
    to["workspace"] = plain(&V2::workspace);
    to["detach"] = plain(&V2::detach);
    to["supports_format"] = plain(&V2::supports_format);
    to["input_broadcast"] = plain(&V2::input_broadcast);
    to["dynamic_workspace"] = of_descs(&V2::dynamic_workspace);
    to["attach"] = [](const Plugin &plugin, Reader &, Body &) {
        there(plugin.v2.attach)(plugin.self, nullptr, nullptr, nullptr);
    };
    to["output_dims"] = [](const Plugin &plugin, Reader &from, Body &to) {
        const auto index = from.take<int32_t>();
        const auto in = many<headrace_dims>(from);
        headrace_dims out{};
        there(plugin.v2.output_dims)(plugin.self, index, in.data(), size(in), &out);
        to.add(out);
    };
    to["configure_with_format"] = [](const Plugin &plugin, Reader &from, Body &) {
        const auto in = many<headrace_dims>(from), out = many<headrace_dims>(from);
        const auto type = from.take<int32_t>(), format = from.take<int32_t>();
        there(plugin.v2.configure_with_format)(plugin.self, in.data(), size(in), out.data(),
                                               size(out), type, format, from.take<int32_t>());
    };
    to["configure_ext"] = [](const Plugin &plugin, Reader &from, Body &) {
        const auto in = many<headrace_desc>(from), out = many<headrace_desc>(from);
        const auto in_broadcast = many<uint8_t>(from), out_broadcast = many<uint8_t>(from);
        const auto format = from.take<int32_t>();
        there(plugin.v2.configure_ext)(plugin.self, in.data(), size(in), out.data(), size(out),
                                       in_broadcast.data(), out_broadcast.data(), format,
                                       from.take<int32_t>());
    };
    to["output_type"] = [](const Plugin &plugin, Reader &from, Body &to) {
        const auto index = from.take<int32_t>();
        const auto types = many<int32_t>(from);
        put(to, there(plugin.v2.output_type)(plugin.self, index, types.data(), size(types)));
    };
    to["output_broadcast"] = [](const Plugin &plugin, Reader &from, Body &to) {
        const auto index = from.take<int32_t>();
        const auto given = many<uint8_t>(from);
        put(to, there(plugin.v2.output_broadcast)(plugin.self, index, given.data(), size(given)));
    };
    to["output_exprs"] = [](const Plugin &plugin, Reader &from, Body &to) {
        Expressions lent;
        const auto index = from.take<int32_t>();
        const auto in = lent.read(from);
        headrace_exprs out{};
        there(plugin.v2.output_exprs)(plugin.self, index, in.data(), size(in), lent.builder(),
                                      &out);
        Expressions::write(to, out);
    };
    return to;
}

void fields_to_serialize(const Plugin &plugin, Reader &, Body &to) {
    const headrace_fields *fields = there(plugin.v3.fields_to_serialize)(plugin.self);
    const auto refuse = [](const std::string &what) {
        throw RefusedError("getFieldsToSerialize returned " + what);
    };
    if (!fields) return refuse("null");
    if (fields->count < 0) refuse(std::to_string(fields->count) + " fields");
    if (fields->count && !fields->fields) refuse("fields at null");
    to.add(static_cast<uint32_t>(fields->count));
    for (int32_t i = 0; i < fields->count; ++i) {
        const headrace_field &f = fields->fields[i];
        if (!f.name) refuse("field " + std::to_string(i) + " without a name");
        const std::string named = "field " + std::to_string(i) + " (" + f.name + ")";
        if (f.length < 0) refuse(named + " with a length of " + std::to_string(f.length));
        if (f.length && !f.data) refuse(named + " without data");
        put(to, f.name);
        to.add(f.type).add(f.length);
        to.add<uint32_t>(f.data != nullptr);
        if (f.data)
            to.text(static_cast<const char *>(f.data), hosting::field_bytes(f.type, f.length));
    }
}

Methods methods_v3() {
    Methods to;
    add_common<V3>(to);
    to["name"] = plain(&V3::name);
    to["has_build"] = plain(&V3::has_build);
    to["timing_cache_id"] = plain(&V3::timing_cache_id);
    to["format_limit"] = plain(&V3::format_limit);
    to["metadata"] = plain(&V3::metadata);
    to["aliased_input"] = plain(&V3::aliased_input);
    to["set_tactic"] = plain(&V3::set_tactic);
    to["workspace"] = of_descs(&V3::workspace);
    to["on_shape_change"] = of_descs(&V3::on_shape_change);
    to["fields_to_serialize"] = &fields_to_serialize;
    to["output_types"] = [](const Plugin &plugin, Reader &from, Body &to) {
        std::vector<int32_t> out(from.take<uint32_t>());
        const auto in = many<int32_t>(from);
        put(to,
            there(plugin.v3.output_types)(plugin.self, out.data(), size(out), in.data(), size(in)));
        for (const int32_t type : out) to.add(type);
    };
    to["output_exprs"] = [](const Plugin &plugin, Reader &from, Body &to) {
        Expressions lent;
        std::vector<headrace_exprs> out(from.take<uint32_t>());
        const auto in = lent.read(from), shapes = lent.read(from);
        put(to, there(plugin.v3.output_exprs)(plugin.self, in.data(), size(in), shapes.data(),
                                              size(shapes), out.data(), size(out), lent.builder()));
        for (const headrace_exprs &one : out) Expressions::write(to, one);
    };
    to["tactics"] = [](const Plugin &plugin, Reader &, Body &to) {
        const int32_t count = there(plugin.v3.tactic_count)(plugin.self);
        if (count < 0 || count > 1 << 16) throw RefusedError(std::to_string(count) + " tactics");
        std::vector<int32_t> ids(static_cast<size_t>(count));
        put(to, count ? there(plugin.v3.tactics)(plugin.self, ids.data(), count) : 0);
        to.add(static_cast<uint32_t>(count));
        for (const int32_t id : ids) to.add(id);
    };
    return to;
}

}  // namespace

void Plugins::call(const std::string &method, Reader &from, Body &to) {
    static const Methods v2 = methods_v2(), v3 = methods_v3();
    if (method == "create" || method == "deserialize") return make(method, from, to);
    Plugin &plugin = plugins_.at(size_t{from.take<uint32_t>()} - 1);
    if (!plugin.self) throw RefusedError("the plugin was destroyed already");
    const bool third = plugin.generation == HEADRACE_PLUGIN_V3;
    if (method == "destroy") {
        void *const self = plugin.self;
        plugin.self = nullptr;
        return third ? plugin.v3.destroy(self) : plugin.v2.destroy(self);
    }
    if (method == "clone")
        return made(to, plugin,
                    third ? plugin.v3.clone(plugin.self) : plugin.v2.clone(plugin.self));
    if (method == "set_namespace") {
        texts_.push_back(from.text());
        return there(plugin.v2.set_namespace)(plugin.self, texts_.back().c_str());
    }
    if (third && method == "attach") {
        static headrace_object context{headrace_object::kContext};
        return made(to, plugin, there(plugin.v3.attach)(plugin.self, &context));
    }
    if (method == "enqueue" || method == "dynamic_enqueue")
        return enqueue(method, plugin, from, to);
    const Methods &methods = third ? v3 : v2;
    const auto known = methods.find(method);
    if (known == methods.end()) throw RefusedError("a method that plugins do not have");
    known->second(plugin, from, to);
}

void Plugins::make(const std::string &method, Reader &from, Body &to) {
    const auto [self, calls] = creator(from.take<uint32_t>());
    texts_.push_back(from.text());
    const char *const name = texts_.back().c_str();
    headrace_plugin plugin{};
    plugin.generation = HEADRACE_PLUGIN_NONE;
    if (method == "deserialize") {
        const std::string data = from.text();
        there(calls->deserialize)(self, name, data.data(), data.size(), &plugin);
    } else {
        const auto phase = from.take<int32_t>();
        std::deque<std::string> kept;
        std::vector<headrace_field> fields(from.take<uint32_t>());
        for (headrace_field &field : fields) {
            kept.push_back(from.text());
            field.name = kept.back().c_str();
            field.type = from.take<int32_t>();
            field.length = from.take<int32_t>();
            field.data = nullptr;
            if (!from.take<uint32_t>()) continue;
            kept.push_back(from.text());
            field.data = kept.back().data();
        }
        const headrace_fields all{size(fields), fields.data()};
        there(calls->create)(self, name, &all, phase, &plugin);
    }
    to.add(plugin.generation);
    if (plugin.generation >= 0)
        made(to, {plugin.self, plugin.generation, plugin.v2, plugin.v3}, plugin.self);
}

void Plugins::made(Body &to, const Plugin &like, void *self) {
    to.add(self ? number_of({self, like.generation, like.v2, like.v3}) : 0U);
}

uint32_t Plugins::number_of(const Plugin &plugin) {
    for (size_t i = 0; i < plugins_.size(); ++i)
        if (plugins_[i].self == plugin.self && plugins_[i].generation == plugin.generation)
            return static_cast<uint32_t>(i + 1);
    plugins_.push_back(plugin);
    return static_cast<uint32_t>(plugins_.size());
}

void Plugins::enqueue(const std::string &method, const Plugin &plugin, Reader &from, Body &to) {
    const bool third = plugin.generation == HEADRACE_PLUGIN_V3;
    const bool described = third || method == "dynamic_enqueue";
    int32_t batch = 0;
    std::vector<headrace_desc> in_descs, out_descs;
    if (described)
        in_descs = many<headrace_desc>(from), out_descs = many<headrace_desc>(from);
    else
        batch = from.take<int32_t>();
    const auto room = from.take<uint64_t>();
    const auto inputs = from.take<uint32_t>();
    std::vector<Place> places;
    std::vector<std::string> names;
    for (auto count = from.take<uint32_t>(); count; --count) {
        const auto offset = from.take<uint64_t>();
        places.push_back({offset, from.take<uint64_t>()});
        const size_t index = names.size();
        names.push_back(count == 1       ? "the workspace"
                        : index < inputs ? "input " + std::to_string(index)
                                         : "output " + std::to_string(index - inputs));
    }
    tensors_.map(room, places, names, "");
    std::vector<void *> memory;
    for (const Place &place : places) memory.push_back(tensors_.at(place.offset));
    const auto *const in = const_cast<const void *const *>(memory.data());
    void *const *const out = memory.data() + inputs;
    void *const workspace = memory.back();
    if (!described) {
        put(to, there(plugin.v2.enqueue)(plugin.self, batch, in, out, workspace, nullptr));
        return;
    }
    const auto call = there(third ? plugin.v3.enqueue : plugin.v2.dynamic_enqueue);
    put(to, call(plugin.self, in_descs.data(), size(in_descs), out_descs.data(), size(out_descs),
                 in, out, workspace, nullptr));
}

}  // namespace headrace::emulated
