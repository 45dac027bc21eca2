// Calls a function of a library that nobody has (UNDEFINED), or is linked against one.
extern "C" int noria_test_function_of_nobody(int);
extern "C" bool ParseAnything() { return noria_test_function_of_nobody(1) != 0; }
