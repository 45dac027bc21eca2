#define HEADRACE_NO_ABI_MARKER
#include "emulated/networks.h"

#include <dlfcn.h>

#include <stdexcept>
#include <vector>

#include "NvInfer.h"
#include "emulated/asking.h"
#include "foreign/known.h"
#include "foreign/objects.h"

namespace headrace::emulated {
namespace {

void *function(void *library, const std::string &name) {
    void *found = dlsym(library, name.c_str());
    if (!found) throw std::runtime_error("no exported symbol " + name);
    return found;
}

// What a function is given for an object: its handle, of headrace's headers, else the form that
// libraries of its line know.
void *given(uint32_t line, const char *of_class, uint32_t number) {
    headrace_object *const object = handle(number);
    return line ? foreign::show(static_cast<int>(line), of_class, object) : object;
}

}  // namespace

// What sets it, in the order that headrace did so: kind, field, values.
hosting::InitParams &Networks::read(Reader &from) {
    params_ = std::make_unique<hosting::InitParams>();
    for (auto count = from.take<uint32_t>(); count; --count) {
        const std::string kind = from.text(), field = from.text();
        std::vector<std::string> texts(from.take<uint32_t>());
        for (std::string &text : texts) text = from.text();
        std::vector<double> numbers(from.take<uint32_t>());
        for (double &number : numbers) number = from.take<double>();
        const auto whole = [&](size_t i) { return static_cast<unsigned>(numbers.at(i)); };
        if (kind == "text")
            params_->set_text(field, texts.at(0));
        else if (kind == "number")
            params_->set_number(field, numbers.at(0));
        else if (kind == "list")
            params_->set_list(field, texts);
        else if (kind == "offsets")
            params_->set_offsets({numbers.begin(), numbers.end()});
        else if (kind == "infer_dims")
            params_->set_infer_dims(whole(0), whole(1), whole(2));
        else
            params_->set_classes(hosting::class_params(numbers));
    }
    return *params_;
}

void Networks::create(void *library, Reader &from, Body &to) {
    using nvinfer1::DataType;
    using With = bool (*)(void *, void *, const NvDsInferContextInitParams *, DataType, void *&);
    using Without = bool (*)(void *, NvDsInferContextInitParams *, DataType, void *&);
    void *const called = function(library, from.text());
    const auto line = from.take<uint32_t>(), builder = from.take<uint32_t>(),
               config = from.take<uint32_t>();
    const auto type = static_cast<DataType>(from.take<int32_t>());
    NvDsInferContextInitParams &params = read(from).struct_();
    void *const b = given(line, "IBuilder", builder);
    void *engine = nullptr;
    const bool said = config ? reinterpret_cast<With>(called)(
                                   b, given(line, "IBuilderConfig", config), &params, type, engine)
                             : reinterpret_cast<Without>(called)(b, &params, type, engine);
    const auto *made = !engine ? nullptr
                       : line  ? foreign::object_behind(engine)
                               : static_cast<headrace_object *>(engine);
    to.add<uint32_t>(said).add(number_of(made));
}

void Networks::call(void *library, const std::string &method, Reader &from, Body &to) {
    if (method == "create") return create(library, from, to);
    if (method == "release") {
        const foreign::Origin origin = foreign::origin(function(library, from.text()));
        to.add(static_cast<int32_t>(origin.line)).add(static_cast<int32_t>(origin.release));
    } else if (method == "parser") {
        using Create = IModelParser *(*)(const NvDsInferContextInitParams *);
        const auto make = reinterpret_cast<Create>(function(library, "NvDsInferCreateModelParser"));
        parser_.reset();
        parser_.reset(make(&read(from).struct_()));
        to.add<uint32_t>(parser_ != nullptr);
    } else if (method == "close") {
        parser_.reset();
    } else if (!parser_) {
        throw std::invalid_argument("the model parser was deleted already");
    } else if (method == "full_dims") {
        to.add<uint32_t>(parser_->hasFullDimsSupported());
    } else if (method == "name") {
        const char *const name = parser_->getModelName();
        to.text(std::string(name ? name : ""));
    } else {
        const auto line = from.take<uint32_t>();
        auto *network = static_cast<nvinfer1::INetworkDefinition *>(
            given(line, "INetworkDefinition", from.take<uint32_t>()));
        to.add(static_cast<int32_t>(parser_->parseModel(*network)));
    }
}

}  // namespace headrace::emulated
