// What a prebuilt library was linked against and is not there when it is loaded. -DPART selects.
#if PART == 1
extern "C" {
int cudaMalloc(void **, unsigned long) { return 77; }
int cudaFree(void *) { return 77; }
int cudaFirst(int) { return 77; }
int cudaSecond(int) { return 77; }
}
#else
namespace nvinfer1 {
class IPluginV2 {
public:
    virtual ~IPluginV2();
    virtual int getNbOutputs() const;
    int plain() const;
};
IPluginV2::~IPluginV2() {}
int IPluginV2::getNbOutputs() const { return 77; }
int IPluginV2::plain() const { return 77; }
}  // namespace nvinfer1
extern "C" {
void *getPluginRegistry() noexcept { return nullptr; }
void *setInternalLibraryPath(void *, int) noexcept { return nullptr; }
}
#endif
