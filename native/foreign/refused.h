// What a function of the host's side does that nothing overrides: it says so, and gives zero.
#pragma once

namespace headrace::foreign {

// Tells the host that a library called a function that is not served. Throws nothing.
void refused(const char *of_class, const char *function) noexcept;

// Remembers a call whose answer is null, for the report of a death by it. Throws nothing.
void null_answer(const char *of_class, const char *function) noexcept;

template <typename T>
struct Zero {
    static T of() { return T{}; }
};
template <>
struct Zero<void> {
    static void of() {}
};

}  // namespace headrace::foreign
