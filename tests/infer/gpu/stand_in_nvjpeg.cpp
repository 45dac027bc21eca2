// nvJPEG's encoder as far as headrace calls it, over the stand-in driver: a "file" is its magic, the size of
// the image, the quality and the samples of its three planes.
#include <cstdint>
#include <cstring>
#include <vector>

namespace {
struct Image {
    const uint8_t *channel[4];
    size_t pitch[4];
};
struct Params {
    int quality = 0, sampling = -1;
};
using File = std::vector<uint8_t>;
int alive = 0;
}  // namespace

extern "C" {
int headrace_test_alive() { return alive; }
int nvjpegCreateSimple(void **handle) { return *handle = new int(++alive), 0; }
int nvjpegDestroy(int *handle) { return delete handle, --alive, 0; }
int nvjpegEncoderStateCreate(void *, File **state, void *) { return ++alive, *state = new File, 0; }
int nvjpegEncoderStateDestroy(File *state) { return delete state, --alive, 0; }
int nvjpegEncoderParamsCreate(void *, Params **params, void *) { return ++alive, *params = new Params, 0; }
int nvjpegEncoderParamsDestroy(Params *params) { return delete params, --alive, 0; }
int nvjpegEncoderParamsSetQuality(Params *params, int quality, void *) { return params->quality = quality, 0; }
int nvjpegEncoderParamsSetSamplingFactors(Params *params, int sampling, void *) {
    return params->sampling = sampling, 0;
}
int nvjpegEncodeYUV(void *, File *state, const Params *params, const Image *image, int sampling, int width,
                    int height, void *) {
    if (sampling != 2 || params->sampling != 2 || width < 1 || height < 1) return 2;  // invalid parameter
    const uint32_t head[] = {0x4750414a, uint32_t(width), uint32_t(height), uint32_t(params->quality)};
    state->assign(reinterpret_cast<const uint8_t *>(head), reinterpret_cast<const uint8_t *>(head + 4));
    for (int c = 0; c < 3; ++c)
        for (int y = 0; y < (c ? (height + 1) / 2 : height); ++y) {
            const uint8_t *row = image->channel[c] + size_t(y) * image->pitch[c];
            state->insert(state->end(), row, row + (c ? (width + 1) / 2 : width));
        }
    return 0;
}
int nvjpegEncodeRetrieveBitstream(void *, const File *state, uint8_t *data, size_t *length, void *) {
    if (data && *length < state->size()) return 2;
    *length = state->size();
    if (data) std::memcpy(data, state->data(), state->size());
    return 0;
}
}
