// Functions of all kinds, told apart by their names alone. With BROKEN it cannot be loaded.
#define FUNCTION(name) \
    extern "C" bool name() { return true; }
FUNCTION(NvDsInferParseCustomYolo)
FUNCTION(NvDsInferParseCustomYoloTiny)
FUNCTION(NvDsInferParseCustomYolo_cuda)
FUNCTION(NvDsInferParseCustomYoloMask)
FUNCTION(NvDsInferParseCustomYoloClassifier)
FUNCTION(NvDsInferParseCustomYoloSemSeg)
FUNCTION(NvDsInferYoloCudaEngineGet)
FUNCTION(NvDsInferParseAbcBoxes)

#ifdef BROKEN
extern "C" int headrace_test_function_of_nobody(int);
extern "C" bool ParseAnything() { return headrace_test_function_of_nobody(1) != 0; }
#endif
