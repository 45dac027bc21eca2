// Functions of libraries that are not installed: what happens when a user's library calls one.
//
// A stand-in is a small ELF image, made by headrace.custom.stand_ins, that exports what a user's
// library asks of, say, libnvinfer.so.8. Each of its functions jumps through a record to code of
// this file: inside a call from here (Scope) it is refused with an exception that names it;
// outside, while the library is loaded or unloaded, it is answered with 0, or by one of the
// functions of stand_ins/cuda.cpp, infer.cpp, blas.cpp and dnn.cpp, because static initialisers
// cannot fail without ending the process. Source: custom-library spec 5.4, 5.5.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace headrace::stand_ins {

// Field offsets are known to headrace.custom.stand_in_image.
struct Record {
    void *target;
    const char *function;
    const char *library;
    void *unused;
};

// Thrown through code of the user.
struct MissingFunction : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Thrown to the caller of user code: `what()` names function and library.
struct MissingFunctionError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// While one exists, calls into stand-ins from this thread are refused. Code that may not throw
// (noexcept) ends in std::terminate: that leads to `jump` instead, with the same text.
class Scope {
public:
    Scope();
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

    std::jmp_buf jump;
    std::string refused;  // set before `jump` is taken

private:
    Scope *outer_;
};

// Throws MissingFunction inside a scope; else takes a note.
void refuse_or_note(const char *function, const char *library);

// The same for functions with an answer of their own: takes no note.
void refuse_in_scope(const char *function);

// While one exists, the first call of this thread that no stand-in could do is kept: of a function
// that computes (cublas…, cudnn…, cudaMem…) and is not there, or of one that does less.
class Watch {
public:
    Watch();
    ~Watch();
    Watch(const Watch &) = delete;
    Watch &operator=(const Watch &) = delete;
    const std::string &not_done() const { return first_; }

private:
    friend void not_done(const std::string &call);
    Watch *outer_;
    std::string first_;
};

// Tells the innermost Watch of this thread, and the report of a crash.
void not_done(const std::string &call);

// What a record of a function that a stand-in begins to export jumps to: a harmless
// implementation, or what refuses; 0 where there are no stand-ins.
uintptr_t target_of(const std::string &function, const std::string &library);

// (function, library) of calls that were answered with 0 since the last time.
std::vector<std::pair<std::string, std::string>> take_notes();

// Another source of functions, asked first: (function, library) to code, or null.
using Provider = void *(*)(const std::string &function, const std::string &library);
void provide(Provider provider);

// A harmless implementation, or null.
void *cuda_stand_in(const std::string &function);
void *infer_stand_in(const std::string &function);
void *blas_stand_in(const std::string &function);
void *dnn_stand_in(const std::string &function);

}  // namespace headrace::stand_ins
