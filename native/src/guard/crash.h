// What a library does when its process ends: see guard/crash.cpp.
#pragma once

// While it lives, memory that a function gave is released: that function's `field`, a literal.
class GuardReleasing {
public:
    explicit GuardReleasing(const char *field);
    ~GuardReleasing();
    GuardReleasing(const GuardReleasing &) = delete;
    GuardReleasing &operator=(const GuardReleasing &) = delete;
};
