// A prebuilt library with the habits of public ones: a plugin registered and CUDA memory taken by
// static initialisers; and parsers that call what is not there. -DNAME is a CUDA function.
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "nvdsinfer.h"

struct NvDsInferParseDetectionParams;

#ifndef NAME
#define NAME cudaFirst
#endif

namespace nvinfer1 {
class IPluginV2 {
public:
    virtual ~IPluginV2();
    virtual int getNbOutputs() const;
    int plain() const;
};
}  // namespace nvinfer1

extern "C" {
int cudaMalloc(void **, unsigned long);
int cudaFree(void *);
int NAME(int);
void *getPluginRegistry() noexcept;
void *setInternalLibraryPath(void *, int) noexcept;
}

namespace {

struct Creator {  // the virtual functions of TensorRT 8's creators
    virtual int getTensorRTVersion() { return 8000; }
    virtual const char *getPluginName() { return "YoloLayer_TRT"; }
    virtual const char *getPluginVersion() { return "1"; }
    virtual const void *getFieldNames() { return nullptr; }
    virtual void *createPlugin(const char *, const void *) { return nullptr; }
    virtual void *deserializePlugin(const char *, const void *, unsigned long) { return nullptr; }
    virtual void setPluginNamespace(const char *text) { space = text; }
    virtual const char *getPluginNamespace() { return space; }
    virtual ~Creator() = default;
    const char *space = "";
} creator;

struct Registry {
    virtual bool registerCreator(Creator &, const char *) noexcept = 0;
};

struct AtLoad {
    char *memory = nullptr;
    AtLoad() {
        void *taken = nullptr;
        if (cudaMalloc(&taken, 100) == 0) memory = static_cast<char *>(taken);
        if (memory) memory[99] = 1;
        NAME(1);
        static_cast<Registry *>(getPluginRegistry())->registerCreator(creator, "mine");
    }
    ~AtLoad() { cudaFree(memory); }
} at_load;

struct Derived : nvinfer1::IPluginV2 {
    int getNbOutputs() const override { return 3; }
};

struct Counted {  // its destructor must run while a refused call is unwound
    static int alive;
    Counted() { ++alive; }
    ~Counted() { --alive; }
};
int Counted::alive = 0;

// Objects whose destructors are not there: never destroyed.
alignas(16) char room[64];

int quiet(int value) noexcept { return NAME(value); }

}  // namespace

#define PARSER(name, body)                                                                     \
    extern "C" bool name(const std::vector<NvDsInferLayerInfo> &, const NvDsInferNetworkInfo &, \
                         const NvDsInferParseDetectionParams &,                                \
                         std::vector<NvDsInferObjectDetectionInfo> &objects) {                 \
        float value = 0.5f;                                                                    \
        (void)value;                                                                           \
        body;                                                                                  \
        objects.push_back({1, 2, 3, 4, value, 0.5f});                                          \
        return true;                                                                           \
    }

PARSER(ParseSound, value = static_cast<float>(Counted::alive))
PARSER(ParseMemory, value = at_load.memory && at_load.memory[99] == 1 ? 1.0f : 0.0f)
PARSER(ParseCall, Counted counted; NAME(2))
PARSER(ParseNoexcept, quiet(2))
PARSER(ParseOwnTerminate, std::set_terminate(std::abort); quiet(2))
PARSER(ParsePath, setInternalLibraryPath(nullptr, 1))
PARSER(ParseCatching, try { NAME(2); } catch (const std::exception &) { value = 9; })
PARSER(ParseMember, const Derived *plugin = new (room) Derived; plugin->plain())
PARSER(ParseBase, new (room) nvinfer1::IPluginV2(); value = 1)
PARSER(ParseVirtual, const nvinfer1::IPluginV2 *plugin = new (room) nvinfer1::IPluginV2();
       asm volatile("" : "+r"(plugin)); plugin->getNbOutputs())
PARSER(ParseThread, std::thread([&] { value = 5.0f + NAME(2); }).join())
