// Calls a function of a library that nobody has (UNDEFINED), or is linked against one.
extern "C" int headrace_test_function_of_nobody(int);
extern "C" bool ParseAnything() { return headrace_test_function_of_nobody(1) != 0; }
