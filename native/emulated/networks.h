// Functions of a library that make networks: engine creators and model parsers.
#pragma once

#include <memory>
#include <string>

#include "emulated/messages.h"
#include "host/init_params.h"
#include "nvdsinfer_custom_impl.h"

namespace headrace::emulated {

class Networks {
public:
    // Does what the message names, and writes its results. Throws what the library throws, and
    // std::invalid_argument for an engine that is none.
    void call(void *library, const std::string &method, Reader &from, Body &to);

private:
    hosting::InitParams &read(Reader &from);
    void create(void *library, Reader &from, Body &to);

    std::unique_ptr<hosting::InitParams> params_;  // libraries may keep it until the next call
    std::unique_ptr<IModelParser> parser_;
};

}  // namespace headrace::emulated
