// A creator whose field holds three numbers of four bits, two to a byte.
#include <NvInferRuntime.h>

using namespace nvinfer1;

namespace {

const char kNumbers[] = {0x21, 0x03};
const PluginField kField{"packed", kNumbers, PluginFieldType::kINT4, 3};
const PluginFieldCollection kFields{1, &kField};

class PackedCreator : public IPluginCreatorV3One {
public:
    const char *getPluginName() const noexcept override { return "Packed"; }
    const char *getPluginVersion() const noexcept override { return "1"; }
    const char *getPluginNamespace() const noexcept override { return ""; }
    const PluginFieldCollection *getFieldNames() noexcept override { return &kFields; }
    IPluginV3 *createPlugin(const char *, const PluginFieldCollection *,
                            TensorRTPhase) noexcept override {
        return nullptr;
    }
};

REGISTER_TENSORRT_PLUGIN(PackedCreator);

}  // namespace
