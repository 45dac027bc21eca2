// What a library does when its process ends: see guard/crash.cpp.
#pragma once

namespace headrace::guard {

// While it lives, memory that a function gave is released: that function's `field`, a literal.
class Releasing {
public:
    explicit Releasing(const char *field);
    ~Releasing();
    Releasing(const Releasing &) = delete;
    Releasing &operator=(const Releasing &) = delete;
};

}  // namespace headrace::guard
