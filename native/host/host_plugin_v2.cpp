// Plugins of the V2 line, as Python's wrapper classes call them.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "host_desc.h"
#include "host_plugin.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

class PluginV2 : public ForeignPlugin<noria_plugin_v2_calls> {
public:
    PluginV2(const noria_plugin &plugin, std::shared_ptr<Image> image, bool owned,
             std::shared_ptr<void> keeper)
        : ForeignPlugin(plugin.self, plugin.v2, std::move(image), owned, std::move(keeper)),
          generation(plugin.generation) {}

    const int32_t generation;

    nb::object clone() const {
        void *object = self();
        noria_plugin made{};
        made.generation = generation;
        made.self = run_foreign([&] { return calls_.clone(object); });
        made.v2 = calls_;
        if (!made.self) return nb::none();
        return hand_over(new PluginV2(made, image_, true, keeper_));
    }
};

nb::bytes serialize(const PluginV2 &p) {
    const size_t wanted = ask(p, p.calls().serialization_size);
    if (wanted > (size_t{1} << 31))
        throw std::invalid_argument("a serialization size of " + std::to_string(wanted) + " bytes");
    std::string blob(wanted, '\0');
    ask(p, p.calls().serialize, static_cast<void *>(blob.data()));
    return nb::bytes(blob.data(), blob.size());
}

nb::tuple output_dims(const PluginV2 &p, int32_t index, nb::handle shapes) {
    const auto in = all_dims_of(shapes);
    noria_dims out{};
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

bool supports_combination(const PluginV2 &p, int32_t pos, nb::handle descs, int32_t inputs) {
    const auto all = descs_of(descs);
    return ask(p, p.calls().supports_combination, pos, all.data(), inputs, size(all) - inputs);
}

void configure(const PluginV2 &p, nb::handle inputs, nb::handle outputs) {
    const auto in = descs_of(inputs), out = descs_of(outputs);
    ask(p, p.calls().configure, in.data(), size(in), out.data(), size(out));
}

nb::list output_exprs(const PluginV2 &p, int32_t index, nb::handle inputs, nb::handle builder) {
    LentExprs lent;
    const auto in = lent.lend(inputs);
    noria_exprs out{};
    ask(p, p.calls().output_exprs, index, in.data(), size(in), lent.lend_one(builder), &out);
    return LentExprs::taken(out);
}

size_t dynamic_workspace(const PluginV2 &p, nb::handle inputs, nb::handle outputs) {
    const auto in = descs_of(inputs), out = descs_of(outputs);
    return ask(p, p.calls().dynamic_workspace, in.data(), size(in), out.data(), size(out));
}

int32_t dynamic_enqueue(const PluginV2 &p, nb::handle in_desc, nb::handle out_desc,
                        nb::handle inputs, nb::handle outputs, uintptr_t workspace,
                        uintptr_t stream) {
    const auto di = descs_of(in_desc), dout = descs_of(out_desc);
    const auto in = addresses_of(inputs), out = addresses_of(outputs);
    return ask(p, p.calls().dynamic_enqueue, di.data(), size(di), dout.data(), size(dout),
               static_cast<const void *const *>(in.data()), static_cast<void *const *>(out.data()),
               reinterpret_cast<void *>(workspace), reinterpret_cast<void *>(stream));
}

}  // namespace

nb::object new_plugin_v2(const noria_plugin &plugin, bool owned, std::shared_ptr<void> keeper) {
    auto image = std::make_shared<Image>(reinterpret_cast<const void *>(plugin.v2.type), true);
    return hand_over(new PluginV2(plugin, std::move(image), owned, std::move(keeper)));
}

void bind_host_plugin_v2(nb::module_ &m) {
    nb::class_<PluginV2>(m, "ForeignPluginV2", "A plugin of the V2 line of a C++ library.")
        .def_ro("generation", &PluginV2::generation)
        .def_prop_ro("library", &PluginV2::library)
        .def_prop_ro("image", &PluginV2::image)
        .def("class_name", [](const PluginV2 &p) {
            return readable_class(p.calls().class_name(p.self()));
        })
        .def("type", [](const PluginV2 &p) { return text_or_none(ask(p, p.calls().type)); })
        .def("version", [](const PluginV2 &p) { return text_or_none(ask(p, p.calls().version)); })
        .def("get_namespace",
             [](const PluginV2 &p) { return text_or_none(ask(p, p.calls().get_namespace)); })
        .def("set_namespace", [](const PluginV2 &p, const std::string &text) {
            ask(p, p.calls().set_namespace, text.c_str());
        })
        .def("output_count", [](const PluginV2 &p) { return ask(p, p.calls().output_count); })
        .def("initialize", [](const PluginV2 &p) { return ask(p, p.calls().initialize); })
        .def("terminate", [](const PluginV2 &p) { ask(p, p.calls().terminate); })
        .def("destroy", &PluginV2::destroy)
        .def("clone", &PluginV2::clone)
        .def("serialization_size",
             [](const PluginV2 &p) { return ask(p, p.calls().serialization_size); })
        .def("serialize", &serialize)
        .def("output_dims", &output_dims)
        .def("supports_format", [](const PluginV2 &p, int32_t type, int32_t format) {
            return ask(p, p.calls().supports_format, type, format) != 0;
        })
        .def("configure_with_format", &configure_with_format)
        .def("workspace",
             [](const PluginV2 &p, int32_t batch) { return ask(p, p.calls().workspace, batch); })
        .def("enqueue", &enqueue)
        .def("output_type", &output_type)
        .def("output_broadcast", &output_broadcast)
        .def("input_broadcast", [](const PluginV2 &p, int32_t index) {
            return ask(p, p.calls().input_broadcast, index) != 0;
        })
        .def("configure_ext", &configure_ext)
        .def("attach", [](const PluginV2 &p) {
            void *none = nullptr;
            ask(p, p.calls().attach, none, none, none);
        })
        .def("detach", [](const PluginV2 &p) { ask(p, p.calls().detach); })
        .def("supports_combination", &supports_combination)
        .def("configure", &configure)
        .def("output_exprs", &output_exprs)
        .def("dynamic_workspace", &dynamic_workspace)
        .def("dynamic_enqueue", &dynamic_enqueue);
}
