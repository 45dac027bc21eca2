// The few parts of ONNX Runtime's C interface that operators from outside need. Declarations of our
// own: what is fixed are positions in tables, which the runtime only ever appends to.
// Source: ONNX Runtime's C API, version 16 and later (runtime 1.16); a runtime that does not give
// a table of that version is not used this way.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::ort {

inline constexpr std::uint32_t kVersion = 16;

struct ApiBase {
    const void *const *(*table)(std::uint32_t version);
    const char *(*version)();
};

// Positions in the table of functions. Opaque objects are void pointers; a status is null if all is
// well.
enum Function : std::size_t {
    kCreateStatus = 0,     // status (int code, text)
    kCreateDomain = 26,    // status (text name, domain *)
    kAddToDomain = 27,     // status (domain, operator)
    kAddDomain = 28,       // status (session options, domain)
    kTensorData = 51,      // status (value, void **)
    kAxisCount = 61,       // status (shape, size_t *)
    kAxes = 62,            // status (shape, int64_t *, size_t)
    kShapeOf = 65,         // status (value, shape *)
    kInputOf = 90,         // status (context, size_t, value *)
    kOutputOf = 91,        // status (context, size_t, const int64_t *, size_t, value *)
    kReleaseStatus = 93,   // void (status)
    kReleaseShape = 99,    // void (shape)
    kReleaseDomain = 101,  // void (domain)
};

// An operator from outside, as far as version 16 knows it. Element types are numbered as in ONNX up
// to bfloat16. The runtime calls the second forms where the first are null.
struct Operator {
    std::uint32_t version;
    void *(*create)(const Operator *, const void *api, const void *info);
    const char *(*name)(const Operator *);
    const char *(*provider)(const Operator *);
    int (*input_type)(const Operator *, std::size_t);
    std::size_t (*input_count)(const Operator *);
    int (*output_type)(const Operator *, std::size_t);
    std::size_t (*output_count)(const Operator *);
    void (*compute)(void *kernel, void *context);
    void (*destroy)(void *kernel);
    int (*input_kind)(const Operator *, std::size_t);
    int (*output_kind)(const Operator *, std::size_t);
    int (*input_memory)(const Operator *, std::size_t);
    int (*least_inputs)(const Operator *);
    int (*same_inputs)(const Operator *);
    int (*least_outputs)(const Operator *);
    int (*same_outputs)(const Operator *);
    void *(*create_or_fail)(const Operator *, const void *api, const void *info, void **kernel);
    void *(*compute_or_fail)(void *kernel, void *context);
};

}  // namespace headrace::ort
