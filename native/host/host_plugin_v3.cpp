// Plugins of the third generation, as Python's wrapper class calls them.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "host_desc.h"
#include "host_plugin.h"
#include "host_world.h"

namespace nb = nanobind;

namespace {

class PluginV3 : public ForeignPlugin<noria_plugin_v3_calls> {
public:
    using ForeignPlugin::ForeignPlugin;

    nb::object made(void *object) const {
        if (!object) return nb::none();
        return hand_over(new PluginV3(object, calls_, image_, true));
    }
};

nb::tuple output_types(const PluginV3 &p, nb::handle types, int32_t outputs) {
    const auto in = ints_of(types);
    std::vector<int32_t> out(static_cast<size_t>(outputs));
    const int32_t status =
        ask(p, p.calls().output_types, out.data(), outputs, in.data(), size(in));
    nb::list found;
    for (int32_t type : out) found.append(type);
    return nb::make_tuple(status, found);
}

nb::tuple output_exprs(const PluginV3 &p, nb::handle inputs, nb::handle shape_inputs,
                       nb::handle builder, int32_t outputs) {
    LentExprs lent;
    const auto in = lent.lend(inputs), shapes = lent.lend(shape_inputs);
    std::vector<noria_exprs> out(static_cast<size_t>(outputs));
    const int32_t status = ask(p, p.calls().output_exprs, in.data(), size(in), shapes.data(),
                               size(shapes), out.data(), outputs, lent.lend_one(builder));
    nb::list found;
    for (const noria_exprs &exprs : out) found.append(LentExprs::taken(exprs));
    return nb::make_tuple(status, found);
}

bool supports_combination(const PluginV3 &p, int32_t pos, nb::handle descs, int32_t inputs) {
    const auto all = descs_of(descs);
    return ask(p, p.calls().supports_combination, pos, all.data(), inputs, size(all) - inputs);
}

int32_t configure(const PluginV3 &p, nb::handle inputs, nb::handle outputs) {
    const auto in = descs_of(inputs), out = descs_of(outputs);
    return ask(p, p.calls().configure, in.data(), size(in), out.data(), size(out));
}

size_t workspace(const PluginV3 &p, nb::handle inputs, nb::handle outputs) {
    const auto in = descs_of(inputs), out = descs_of(outputs);
    return ask(p, p.calls().workspace, in.data(), size(in), out.data(), size(out));
}

nb::tuple tactics(const PluginV3 &p) {
    const int32_t count = ask(p, p.calls().tactic_count);
    if (count < 0 || count > 1 << 16)
        throw std::invalid_argument(std::to_string(count) + " tactics");
    std::vector<int32_t> ids(static_cast<size_t>(count));
    const int32_t status = count ? ask(p, p.calls().tactics, ids.data(), count) : 0;
    nb::list found;
    for (int32_t id : ids) found.append(id);
    return nb::make_tuple(status, found);
}

int32_t on_shape_change(const PluginV3 &p, nb::handle inputs, nb::handle outputs) {
    const auto in = descs_of(inputs), out = descs_of(outputs);
    return ask(p, p.calls().on_shape_change, in.data(), size(in), out.data(), size(out));
}

int32_t enqueue(const PluginV3 &p, nb::handle in_desc, nb::handle out_desc, nb::handle inputs,
                nb::handle outputs, uintptr_t scratch, uintptr_t stream) {
    const auto di = descs_of(in_desc), dout = descs_of(out_desc);
    const auto in = addresses_of(inputs), out = addresses_of(outputs);
    return ask(p, p.calls().enqueue, di.data(), size(di), dout.data(), size(dout),
               static_cast<const void *const *>(in.data()), static_cast<void *const *>(out.data()),
               reinterpret_cast<void *>(scratch), reinterpret_cast<void *>(stream));
}

}  // namespace

nb::object new_plugin_v3(const noria_plugin &plugin, bool owned) {
    auto image = std::make_shared<Image>(reinterpret_cast<const void *>(plugin.v3.name), true);
    return hand_over(new PluginV3(plugin.self, plugin.v3, std::move(image), owned));
}

void bind_host_plugin_v3(nb::module_ &m) {
    using P = PluginV3;
    nb::class_<P>(m, "ForeignPluginV3", "A plugin of the third generation of a C++ library.")
        .def_prop_ro("library", &P::library)
        .def_prop_ro("image", &P::image)
        .def("class_name",
             [](const P &p) { return readable_class(p.calls().class_name(p.self())); })
        .def("name", [](const P &p) { return text_or_none(ask(p, p.calls().name)); })
        .def("version", [](const P &p) { return text_or_none(ask(p, p.calls().version)); })
        .def("get_namespace",
             [](const P &p) { return text_or_none(ask(p, p.calls().get_namespace)); })
        .def("destroy", &P::destroy)
        .def("clone", [](const P &p) { return p.made(ask(p, p.calls().clone)); })
        .def("attach", [](const P &p, nb::handle context) {
            return p.made(ask(p, p.calls().attach, noria_object::of(context)));
        })
        .def("has_build", [](const P &p) { return ask(p, p.calls().has_build) != 0; })
        .def("output_count", [](const P &p) { return ask(p, p.calls().output_count); })
        .def("output_types", &output_types)
        .def("output_exprs", &output_exprs)
        .def("supports_combination", &supports_combination)
        .def("configure", &configure)
        .def("workspace", &workspace)
        .def("tactics", &tactics)
        .def("timing_cache_id",
             [](const P &p) { return text_or_none(ask(p, p.calls().timing_cache_id)); })
        .def("format_limit", [](const P &p) { return ask(p, p.calls().format_limit); })
        .def("metadata", [](const P &p) { return text_or_none(ask(p, p.calls().metadata)); })
        .def("aliased_input", [](const P &p, int32_t output) {
            return ask(p, p.calls().aliased_input, output);
        })
        .def("set_tactic",
             [](const P &p, int32_t tactic) { return ask(p, p.calls().set_tactic, tactic); })
        .def("on_shape_change", &on_shape_change)
        .def("enqueue", &enqueue)
        .def("fields_to_serialize", [](const P &p) {
            return fields_to_python(ask(p, p.calls().fields_to_serialize));
        });
}
