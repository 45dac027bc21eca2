#include "custom/thrown.h"

#include <cxxabi.h>

#include <string>

#include "core/readable.h"
#include "stand_ins/stand_in.h"

namespace headrace::custom {
namespace {

std::string name_of_current_exception() {
    const std::type_info *type = abi::__cxa_current_exception_type();
    if (!type) return "a foreign exception";
    return core::readable(type->name());
}

}  // namespace

void translate_current_exception() {
    try {
        throw;
    } catch (const abi::__forced_unwind &) {
        throw;  // the thread is being cancelled; swallowing it ends the process
    } catch (const stand_ins::MissingFunction &call) {
        throw stand_ins::MissingFunctionError(call.what());
    } catch (const std::exception &error) {
        throw CustomCodeError(name_of_current_exception() + ": " + error.what());
    } catch (...) {
        throw CustomCodeError("an exception of type " + name_of_current_exception());
    }
}

}  // namespace headrace::custom
