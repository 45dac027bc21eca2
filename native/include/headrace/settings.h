// Settings of contexts and of saved engines.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_SETTINGS_H
#define HEADRACE_TRT_SETTINGS_H

#include "layer_enums.h"

namespace nvinfer1 {

enum class ExecutionContextAllocationStrategy : int32_t {
    kSTATIC = 0,
    kON_PROFILE_CHANGE = 1,
    kUSER_MANAGED = 2
};
enum class SerializationFlag : int32_t {
    kEXCLUDE_WEIGHTS = 0,
    kEXCLUDE_LEAN_RUNTIME = 1,
    kINCLUDE_REFIT = 2
};
using SerializationFlags = uint32_t;

}  // namespace nvinfer1

namespace headrace {
inline namespace HEADRACE_GENERATION {
HEADRACE_ENUM(ExecutionContextAllocationStrategy);
HEADRACE_ENUM(SerializationFlag);
}  // namespace HEADRACE_GENERATION
}  // namespace headrace

namespace nvinfer1 {

class IRuntimeConfig : public headrace::Object {
public:
    HEADRACE_CALL(
        void, setExecutionContextAllocationStrategy(ExecutionContextAllocationStrategy strategy),
        "set_execution_context_allocation_strategy", strategy)
    ExecutionContextAllocationStrategy getExecutionContextAllocationStrategy() const {
        return headrace::call<ExecutionContextAllocationStrategy>(
            this, "get_execution_context_allocation_strategy");
    }

private:
    IRuntimeConfig() = delete;
};

class ISerializationConfig : public headrace::Object {
public:
    bool setFlags(SerializationFlags flags) {
        bool done = true;
        for (int32_t i = 0; i <= static_cast<int32_t>(SerializationFlag::kINCLUDE_REFIT); ++i) {
            const SerializationFlag flag = static_cast<SerializationFlag>(i);
            done = ((flags >> i) & 1U ? setFlag(flag) : clearFlag(flag)) && done;
        }
        return done;
    }
    HEADRACE_GET(SerializationFlags, getFlags, "flags")
    HEADRACE_CALL(bool, setFlag(SerializationFlag flag), "set_flag", flag)
    HEADRACE_CALL(bool, clearFlag(SerializationFlag flag), "clear_flag", flag)
    HEADRACE_CALL(bool, getFlag(SerializationFlag flag) const, "get_flag", flag)

private:
    ISerializationConfig() = delete;
};

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_SETTINGS_H
