// A library in the place of NVIDIA's libnvrtc: each function jumps to the address in its slot,
// which src/headrace/_core/gpu/kept_kernels.py sets. Arguments stay where they are, whatever they
// are.
namespace {
// NVRTC_ERROR_INTERNAL_ERROR: the library behind has no such function.
int internal_error() { return 11; }
}  // namespace

#if defined(__x86_64__)
#define JUMP(name) "mov headrace_slot_" name "@GOTPCREL(%rip), %r11\n jmp *(%r11)\n"
#define TYPE "@function"
#elif defined(__aarch64__)
#define JUMP(name)                                                                         \
    "adrp x16, :got:headrace_slot_" name "\n ldr x16, [x16, :got_lo12:headrace_slot_" name \
    "]\n"                                                                                  \
    " ldr x16, [x16]\n br x16\n"
#define TYPE "%function"
#else
#error "no jump is written for this processor"
#endif

#define FUNCTIONS(X)               \
    X(nvrtcAddNameExpression)      \
    X(nvrtcCompileProgram)         \
    X(nvrtcCreateProgram)          \
    X(nvrtcDestroyProgram)         \
    X(nvrtcGetCUBIN)               \
    X(nvrtcGetCUBINSize)           \
    X(nvrtcGetErrorString)         \
    X(nvrtcGetLTOIR)               \
    X(nvrtcGetLTOIRSize)           \
    X(nvrtcGetLoweredName)         \
    X(nvrtcGetNVVM)                \
    X(nvrtcGetNVVMSize)            \
    X(nvrtcGetNumSupportedArchs)   \
    X(nvrtcGetOptiXIR)             \
    X(nvrtcGetOptiXIRSize)         \
    X(nvrtcGetPCHCreateStatus)     \
    X(nvrtcGetPCHHeapSize)         \
    X(nvrtcGetPCHHeapSizeRequired) \
    X(nvrtcGetPTX)                 \
    X(nvrtcGetPTXSize)             \
    X(nvrtcGetProgramLog)          \
    X(nvrtcGetProgramLogSize)      \
    X(nvrtcGetSupportedArchs)      \
    X(nvrtcGetTileIR)              \
    X(nvrtcGetTileIRSize)          \
    X(nvrtcInstallBundledHeaders)  \
    X(nvrtcRemoveBundledHeaders)   \
    X(nvrtcGetBundledHeadersInfo)  \
    X(nvrtcSetFlowCallback)        \
    X(nvrtcSetPCHHeapSize)         \
    X(nvrtcVersion)                \
    X(__nvrtcCPEx)

#define PASSED(name)                                                        \
    extern "C" {                                                            \
    void *headrace_slot_##name = reinterpret_cast<void *>(&internal_error); \
    }                                                                       \
    __asm__(".text\n.globl " #name "\n.type " #name ", " TYPE "\n" #name ":\n" JUMP(#name));
#define NAMED(name) #name " "

FUNCTIONS(PASSED)

extern "C" {
const char *headrace_passed = FUNCTIONS(NAMED);
}
