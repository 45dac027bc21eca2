// Plugins of both lines, as Python's wrapper classes call them.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "core/readable.h"
#include "host/desc.h"
#include "host/fields.h"
#include "host/foreign.h"
#include "host/world.h"

namespace nb = nanobind;

namespace headrace::hosting {
namespace {

// A plugin of a library. One that is `owned` is destroyed with the wrapper; what `keeper` holds
// stays until then.
template <typename Calls>
class ForeignPlugin {
public:
    ForeignPlugin(void *self, const Calls &calls, int32_t generation, std::shared_ptr<Image> image,
                  bool owned, std::shared_ptr<void> keeper = nullptr)
        : generation(generation),
          calls_(calls),
          image_(std::move(image)),
          keeper_(std::move(keeper)),
          self_(self),
          owned_(owned) {}
    ~ForeignPlugin() {
        if (!owned_ || !self_) return;
        try {
            destroy();
        } catch (...) {  // there is no caller that an error could reach
        }
    }
    ForeignPlugin(const ForeignPlugin &) = delete;
    ForeignPlugin &operator=(const ForeignPlugin &) = delete;

    const int32_t generation;

    void *self() const {
        if (!self_) throw std::invalid_argument("the plugin was destroyed already");
        return self_;
    }
    const Calls &calls() const { return calls_; }
    const std::string &library() const { return image_->path(); }
    uintptr_t image() const { return image_->base(); }
    bool is_of(uintptr_t code) const { return image_->holds(reinterpret_cast<const void *>(code)); }
    uintptr_t address() const { return reinterpret_cast<uintptr_t>(self()); }

    // A wrapper around what a method of this plugin made, such as its clone; of the plugin itself
    // the wrapper that is there.
    // `keeper` stays as long as it; without one what this plugin has.
    nb::object made(void *object, std::shared_ptr<void> keeper = nullptr) const {
        if (!object) return nb::none();
        if (object == self_) return nb::find(this);
        if (!keeper) keeper = keeper_;
        return hand_over(
            new ForeignPlugin(object, calls_, generation, image_, true, std::move(keeper)));
    }

    void destroy() {
        void *object = self();
        self_ = nullptr;
        run_foreign([&] { calls_.destroy(object); });
    }

private:
    const Calls calls_;
    const std::shared_ptr<Image> image_;
    const std::shared_ptr<void> keeper_;
    void *self_;
    const bool owned_;
};

using V2 = headrace_plugin_v2_calls;
using V3 = headrace_plugin_v3_calls;
using PluginV2 = ForeignPlugin<V2>;
using PluginV3 = ForeignPlugin<V3>;

// Calls `call(self, arguments…)` without the GIL.
template <typename Calls, typename R, typename... Parameters, typename... Arguments>
R ask(const ForeignPlugin<Calls> &plugin, R (*call)(void *, Parameters...),
      Arguments... arguments) {
    void *self = plugin.self();
    if (!call) throw std::invalid_argument("plugins of this generation have no such method");
    return run_foreign([&] { return call(self, arguments...); });
}

template <typename T>
int32_t size(const std::vector<T> &items) {
    return static_cast<int32_t>(items.size());
}

template <typename T>
nb::list list_of(const std::vector<T> &items) {
    nb::list out;
    for (const T &item : items) out.append(item);
    return out;
}

// ---- methods of the same form, under the names of the table's entries

template <typename Calls>
using Class = nb::class_<ForeignPlugin<Calls>>;

// Numbers in; a number, or a text that becomes str or None, out.
template <typename Calls, typename R, typename... Numbers>
void plain(Class<Calls> &to, const char *name, R (*Calls::*call)(void *, Numbers...)) {
    to.def(name, [call](const ForeignPlugin<Calls> &p, Numbers... numbers) {
        if constexpr (std::is_same_v<R, const char *>)
            return text_or_none(ask(p, p.calls().*call, numbers...));
        else
            return ask(p, p.calls().*call, numbers...);
    });
}

// Descriptors of inputs and of outputs in.
template <typename Calls, typename R>
void of_descs(Class<Calls> &to, const char *name,
              R (*Calls::*call)(void *, const headrace_desc *, int32_t, const headrace_desc *,
                                int32_t)) {
    to.def(name, [call](const ForeignPlugin<Calls> &p, nb::handle inputs, nb::handle outputs) {
        const auto in = descs_of(inputs), out = descs_of(outputs);
        return ask(p, p.calls().*call, in.data(), size(in), out.data(), size(out));
    });
}

using Enqueue = int32_t (*)(void *, const headrace_desc *, int32_t, const headrace_desc *, int32_t,
                            const void *const *, void *const *, void *, void *);

template <typename Calls>
void enqueue_of(Class<Calls> &to, const char *name, Enqueue Calls::*call) {
    to.def(name,
           [call](const ForeignPlugin<Calls> &p, nb::handle in_desc, nb::handle out_desc,
                  nb::handle inputs, nb::handle outputs, uintptr_t scratch, uintptr_t stream) {
               const auto di = descs_of(in_desc), dout = descs_of(out_desc);
               const auto in = addresses_of(inputs), out = addresses_of(outputs);
               return ask(p, p.calls().*call, di.data(), size(di), dout.data(), size(dout),
                          static_cast<const void *const *>(in.data()),
                          static_cast<void *const *>(out.data()), reinterpret_cast<void *>(scratch),
                          reinterpret_cast<void *>(stream));
           });
}

// The methods that both lines have.
template <typename Calls>
Class<Calls> bind_plugin(nb::module_ &m, const char *name, const char *doc) {
    using P = ForeignPlugin<Calls>;
    Class<Calls> bound(m, name, doc);
    bound.def_ro("generation", &P::generation)
        .def_prop_ro("library", &P::library)
        .def_prop_ro("image", &P::image)
        .def_prop_ro("address", &P::address)
        .def("is_of", &P::is_of)
        .def("class_name",
             [](const P &p) { return core::readable(p.calls().class_name(p.self())); })
        .def("destroy", &P::destroy)
        .def("clone", [](const P &p) { return p.made(ask(p, p.calls().clone)); })
        .def("supports_combination", [](const P &p, int32_t pos, nb::handle descs, int32_t inputs) {
            const auto all = descs_of(descs);
            return ask(p, p.calls().supports_combination, pos, all.data(), inputs,
                       size(all) - inputs) != 0;
        });
    plain(bound, "version", &Calls::version);
    plain(bound, "get_namespace", &Calls::get_namespace);
    plain(bound, "output_count", &Calls::output_count);
    of_descs(bound, "configure", &Calls::configure);
    return bound;
}

// ---- methods of the V2 line

// Memory for data of announced size: what is written behind it hits known bytes first, and further
// on pages that are only there once they are touched.
class Announced {
public:
    static constexpr size_t kBehind = 4096;
    static constexpr size_t kSpare = size_t{16} << 20;
    static constexpr unsigned char kPattern = 0xA5;

    explicit Announced(size_t size)
        : size_(size),
          whole_(size + kBehind + kSpare),
          memory_(mmap(nullptr, whole_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
        if (memory_ == MAP_FAILED) throw std::bad_alloc();
        std::memset(data() + size_, kPattern, kBehind);
    }
    ~Announced() { munmap(memory_, whole_); }
    Announced(const Announced &) = delete;
    Announced &operator=(const Announced &) = delete;

    char *data() const { return static_cast<char *>(memory_); }
    // How far behind its end was written, at least; 0 if nothing was.
    size_t written_behind() const {
        for (size_t i = kBehind; i > 0; --i)
            if (static_cast<unsigned char>(data()[size_ + i - 1]) != kPattern) return i;
        return 0;
    }

private:
    size_t size_, whole_;
    void *memory_;
};

// `fill`: what the memory is filled with before.
nb::bytes serialize(const PluginV2 &p, int32_t fill) {
    const size_t wanted = ask(p, p.calls().serialization_size);
    if (wanted > (size_t{1} << 31))
        throw std::invalid_argument("getSerializationSize returned " + std::to_string(wanted) +
                                    " bytes");
    const Announced blob(wanted);
    if (fill) std::memset(blob.data(), fill, wanted);
    ask(p, p.calls().serialize, static_cast<void *>(blob.data()));
    if (const size_t more = blob.written_behind())
        throw std::invalid_argument("serialize wrote " + std::to_string(wanted + more) +
                                    " bytes or more, and getSerializationSize returned " +
                                    std::to_string(wanted));
    return nb::bytes(blob.data(), wanted);
}

// Whether all pages of a range are there; only ranges that cannot be small are looked at.
bool is_readable(const void *data, size_t bytes) {
    constexpr size_t kPlain = size_t{1} << 16;
    if (bytes <= kPlain) return true;
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t start = reinterpret_cast<uintptr_t>(data) & ~(page - 1);
    const size_t length = reinterpret_cast<uintptr_t>(data) + bytes - start;
    std::vector<unsigned char> there(length / page + 1);
    return mincore(reinterpret_cast<void *>(start), length, there.data()) == 0;
}

nb::list fields_to_serialize(const PluginV3 &p) {
    const headrace_fields *fields = ask(p, p.calls().fields_to_serialize);
    const auto refuse = [](const std::string &what) {
        throw std::invalid_argument("getFieldsToSerialize returned " + what);
    };
    if (!fields) refuse("null");
    if (fields->count < 0) refuse(std::to_string(fields->count) + " fields");
    if (fields->count && !fields->fields) refuse("fields at null");
    for (int32_t i = 0; i < fields->count; ++i) {
        const headrace_field &f = fields->fields[i];
        const std::string which = "field " + std::to_string(i);
        if (!f.name) refuse(which + " without a name");
        const std::string named = which + " (" + f.name + ")";
        if (f.length < 0) refuse(named + " with a length of " + std::to_string(f.length));
        if (f.length && !f.data) refuse(named + " without data");
        if (!is_readable(f.data, field_bytes(f.type, f.length)))
            refuse(named + " with a length of " + std::to_string(f.length) +
                   ", more than its data has");
    }
    return fields_to_python(fields);
}

nb::tuple output_dims(const PluginV2 &p, int32_t index, nb::handle shapes) {
    const auto in = all_dims_of(shapes);
    headrace_dims out{};
    ask(p, p.calls().output_dims, index, in.data(), size(in), &out);
    return dims_to_python(out);
}

void configure_with_format(const PluginV2 &p, nb::handle inputs, nb::handle outputs, int32_t type,
                           int32_t format, int32_t max_batch) {
    const auto in = all_dims_of(inputs), out = all_dims_of(outputs);
    ask(p, p.calls().configure_with_format, in.data(), size(in), out.data(), size(out), type,
        format, max_batch);
}

void configure_ext(const PluginV2 &p, nb::handle inputs, nb::handle outputs,
                   nb::handle in_broadcast, nb::handle out_broadcast, int32_t format,
                   int32_t max_batch) {
    const auto in = descs_of(inputs), out = descs_of(outputs);
    const auto in_b = bools_of(in_broadcast), out_b = bools_of(out_broadcast);
    ask(p, p.calls().configure_ext, in.data(), size(in), out.data(), size(out), in_b.data(),
        out_b.data(), format, max_batch);
}

int32_t enqueue(const PluginV2 &p, int32_t batch, nb::handle inputs, nb::handle outputs,
                uintptr_t workspace, uintptr_t stream) {
    const auto in = addresses_of(inputs), out = addresses_of(outputs);
    return ask(p, p.calls().enqueue, batch, static_cast<const void *const *>(in.data()),
               static_cast<void *const *>(out.data()), reinterpret_cast<void *>(workspace),
               reinterpret_cast<void *>(stream));
}

int32_t output_type(const PluginV2 &p, int32_t index, nb::handle types) {
    const auto in = ints_of(types);
    return ask(p, p.calls().output_type, index, in.data(), size(in));
}

bool output_broadcast(const PluginV2 &p, int32_t index, nb::handle broadcast) {
    const auto in = bools_of(broadcast);
    return ask(p, p.calls().output_broadcast, index, in.data(), size(in));
}

nb::list output_exprs_v2(const PluginV2 &p, int32_t index, nb::handle inputs, nb::handle builder) {
    LentExprs lent;
    const auto in = lent.lend(inputs);
    headrace_exprs out{};
    ask(p, p.calls().output_exprs, index, in.data(), size(in), lent.lend_one(builder), &out);
    return LentExprs::taken(out);
}

// ---- methods of the third generation

nb::tuple output_types(const PluginV3 &p, nb::handle types, int32_t outputs) {
    const auto in = ints_of(types);
    std::vector<int32_t> out(static_cast<size_t>(outputs));
    const int32_t status = ask(p, p.calls().output_types, out.data(), outputs, in.data(), size(in));
    return nb::make_tuple(status, list_of(out));
}

nb::tuple output_exprs_v3(const PluginV3 &p, nb::handle inputs, nb::handle shape_inputs,
                          nb::handle builder, int32_t outputs) {
    LentExprs lent;
    const auto in = lent.lend(inputs), shapes = lent.lend(shape_inputs);
    std::vector<headrace_exprs> out(static_cast<size_t>(outputs));
    const int32_t status = ask(p, p.calls().output_exprs, in.data(), size(in), shapes.data(),
                               size(shapes), out.data(), outputs, lent.lend_one(builder));
    nb::list found;
    for (const headrace_exprs &exprs : out) found.append(LentExprs::taken(exprs));
    return nb::make_tuple(status, found);
}

nb::tuple tactics(const PluginV3 &p) {
    const int32_t count = ask(p, p.calls().tactic_count);
    if (count < 0 || count > 1 << 16)
        throw std::invalid_argument(std::to_string(count) + " tactics");
    std::vector<int32_t> ids(static_cast<size_t>(count));
    const int32_t status = count ? ask(p, p.calls().tactics, ids.data(), count) : 0;
    return nb::make_tuple(status, list_of(ids));
}

}  // namespace

nb::object new_plugin_v2(const headrace_plugin &plugin, bool owned, std::shared_ptr<void> keeper) {
    const auto *call = reinterpret_cast<const void *>(plugin.v2.type);
    auto image = std::make_shared<Image>(code_of(plugin.self, call), true);
    return hand_over(new PluginV2(plugin.self, plugin.v2, plugin.generation, std::move(image),
                                  owned, std::move(keeper)));
}

nb::object new_plugin_v3(const headrace_plugin &plugin, bool owned) {
    const auto *call = reinterpret_cast<const void *>(plugin.v3.name);
    auto image = std::make_shared<Image>(code_of(plugin.self, call), true);
    return hand_over(
        new PluginV3(plugin.self, plugin.v3, plugin.generation, std::move(image), owned));
}

void bind_plugins(nb::module_ &m) {
    auto v2 = bind_plugin<V2>(m, "ForeignPluginV2", "A plugin of the V2 line of a C++ library.");
    plain(v2, "type", &V2::type);
    plain(v2, "initialize", &V2::initialize);
    plain(v2, "terminate", &V2::terminate);
    plain(v2, "serialization_size", &V2::serialization_size);
    plain(v2, "workspace", &V2::workspace);
    plain(v2, "detach", &V2::detach);
    of_descs(v2, "dynamic_workspace", &V2::dynamic_workspace);
    enqueue_of(v2, "dynamic_enqueue", &V2::dynamic_enqueue);
    v2.def("set_namespace",
           [](const PluginV2 &p, const std::string &text) {
               ask(p, p.calls().set_namespace, kept(text));
           })
        .def("serialize", &serialize, nb::arg("fill") = 0)
        .def("output_dims", &output_dims)
        .def("supports_format",
             [](const PluginV2 &p, int32_t type, int32_t format) {
                 return ask(p, p.calls().supports_format, type, format) != 0;
             })
        .def("configure_with_format", &configure_with_format)
        .def("enqueue", &enqueue)
        .def("output_type", &output_type)
        .def("output_broadcast", &output_broadcast)
        .def("input_broadcast",
             [](const PluginV2 &p, int32_t index) {
                 return ask(p, p.calls().input_broadcast, index) != 0;
             })
        .def("configure_ext", &configure_ext)
        .def("attach",
             [](const PluginV2 &p) {
                 void *none = nullptr;
                 ask(p, p.calls().attach, none, none, none);
             })
        .def("output_exprs", &output_exprs_v2);

    auto v3 =
        bind_plugin<V3>(m, "ForeignPluginV3", "A plugin of the third generation of a C++ library.");
    plain(v3, "name", &V3::name);
    plain(v3, "timing_cache_id", &V3::timing_cache_id);
    plain(v3, "format_limit", &V3::format_limit);
    plain(v3, "metadata", &V3::metadata);
    plain(v3, "aliased_input", &V3::aliased_input);
    plain(v3, "set_tactic", &V3::set_tactic);
    of_descs(v3, "workspace", &V3::workspace);
    of_descs(v3, "on_shape_change", &V3::on_shape_change);
    enqueue_of(v3, "enqueue", &V3::enqueue);
    v3.def("has_build", [](const PluginV3 &p) { return (ask(p, p.calls().has_build) & 1) != 0; })
        .def("has_runtime",
             [](const PluginV3 &p) { return (ask(p, p.calls().has_build) & 2) == 0; })
        .def("attach",
             [](const PluginV3 &p, nb::handle context) {
                 // the plugin may keep its context for as long as it lives
                 const std::shared_ptr<headrace_object> handle(headrace_object::alone(context));
                 return p.made(ask(p, p.calls().attach, handle.get()), handle);
             })
        .def("output_types", &output_types)
        .def("output_exprs", &output_exprs_v3)
        .def("tactics", &tactics)
        .def("fields_to_serialize", &fields_to_serialize);
}

}  // namespace headrace::hosting
