// Conversions between the formats of an NvBufSurface and RGBA.
#include "pixels.h"

#include <algorithm>
#include <cmath>

namespace headrace::deepstream {

namespace {

constexpr NvBufSurfaceColorFormat kPlanar[] = {
    NVBUF_COLOR_FORMAT_YUV420, NVBUF_COLOR_FORMAT_YUV420_ER, NVBUF_COLOR_FORMAT_YUV420_709,
    NVBUF_COLOR_FORMAT_YUV420_709_ER};
constexpr NvBufSurfaceColorFormat kSemiPlanar[] = {
    NVBUF_COLOR_FORMAT_NV12, NVBUF_COLOR_FORMAT_NV12_ER, NVBUF_COLOR_FORMAT_NV12_709,
    NVBUF_COLOR_FORMAT_NV12_709_ER};

template <size_t N>
bool is_in(const NvBufSurfaceColorFormat (&formats)[N], NvBufSurfaceColorFormat format) {
    return std::find(std::begin(formats), std::end(formats), format) != std::end(formats);
}

// Where red, green, blue and alpha lie in a pixel; -1 for no alpha.
struct Order {
    int red, green, blue, alpha;
};

Order order_of(NvBufSurfaceColorFormat format) {
    switch (format) {
    case NVBUF_COLOR_FORMAT_BGRA: return {2, 1, 0, 3};
    case NVBUF_COLOR_FORMAT_BGRx: return {2, 1, 0, -1};
    case NVBUF_COLOR_FORMAT_ARGB: return {1, 2, 3, 0};
    case NVBUF_COLOR_FORMAT_ABGR: return {3, 2, 1, 0};
    case NVBUF_COLOR_FORMAT_BGR: return {2, 1, 0, -1};
    case NVBUF_COLOR_FORMAT_RGBA: return {0, 1, 2, 3};
    default: return {0, 1, 2, -1};  // RGBx, RGB
    }
}

// Weights of the colours in luma. Sources: ITU-R BT.601 and BT.709.
struct Weights {
    float red, blue;
    bool full;  // luma from 0 to 255, else from 16 to 235

    explicit Weights(NvBufSurfaceColorFormat format) {
        const bool hd =
            format == NVBUF_COLOR_FORMAT_NV12_709 || format == NVBUF_COLOR_FORMAT_NV12_709_ER ||
            format == NVBUF_COLOR_FORMAT_YUV420_709 || format == NVBUF_COLOR_FORMAT_YUV420_709_ER;
        red = hd ? 0.2126F : 0.299F;
        blue = hd ? 0.0722F : 0.114F;
        full = format == NVBUF_COLOR_FORMAT_NV12_ER || format == NVBUF_COLOR_FORMAT_NV12_709_ER ||
               format == NVBUF_COLOR_FORMAT_YUV420_ER ||
               format == NVBUF_COLOR_FORMAT_YUV420_709_ER || format == NVBUF_COLOR_FORMAT_GRAY8;
    }
    [[nodiscard]] float green() const { return 1 - red - blue; }
    [[nodiscard]] float luma_scale() const { return full ? 255.0F : 219.0F; }
    [[nodiscard]] float chroma_scale() const { return full ? 255.0F : 224.0F; }
    [[nodiscard]] float luma_offset() const { return full ? 0.0F : 16.0F; }
};

uint8_t byte(float value) {
    return static_cast<uint8_t>(std::lround(std::clamp(value, 0.0F, 255.0F)));
}

uint8_t *row(const NvBufSurfaceParams &image, uint32_t plane, uint32_t y) {
    return static_cast<uint8_t *>(image.dataPtr) + image.planeParams.offset[plane] +
           static_cast<size_t>(image.planeParams.pitch[plane]) * y;
}

// The chroma of a pixel: U and V.
std::pair<uint8_t *, uint8_t *> chroma(const NvBufSurfaceParams &image, uint32_t x, uint32_t y) {
    if (is_in(kSemiPlanar, image.colorFormat)) {
        uint8_t *pair = row(image, 1, y / 2) + x / 2 * 2;
        return {pair, pair + 1};
    }
    return {row(image, 1, y / 2) + x / 2, row(image, 2, y / 2) + x / 2};
}

bool has_chroma(NvBufSurfaceColorFormat format) {
    return is_in(kPlanar, format) || is_in(kSemiPlanar, format);
}

void read_yuv(const NvBufSurfaceParams &image, const Area &area, Rgba &into) {
    const Weights weights(image.colorFormat);
    for (uint32_t y = 0; y < area.height; y++)
        for (uint32_t x = 0; x < area.width; x++) {
            const uint32_t from_x = area.left + x;
            const uint32_t from_y = area.top + y;
            const auto [u, v] = chroma(image, from_x, from_y);
            const float luma =
                (static_cast<float>(row(image, 0, from_y)[from_x]) - weights.luma_offset()) /
                weights.luma_scale();
            const float cb = (static_cast<float>(*u) - 128) / weights.chroma_scale();
            const float cr = (static_cast<float>(*v) - 128) / weights.chroma_scale();
            const float red = luma + 2 * (1 - weights.red) * cr;
            const float blue = luma + 2 * (1 - weights.blue) * cb;
            const float green = (luma - weights.red * red - weights.blue * blue) / weights.green();
            uint8_t *pixel = into.at(x, y);
            pixel[0] = byte(255 * red);
            pixel[1] = byte(255 * green);
            pixel[2] = byte(255 * blue);
            pixel[3] = 255;
        }
}

float luma_of(const Weights &weights, const uint8_t *pixel) {
    return (weights.red * static_cast<float>(pixel[0]) +
            weights.green() * static_cast<float>(pixel[1]) +
            weights.blue * static_cast<float>(pixel[2])) /
           255;
}

void write_yuv(const Rgba &from, const NvBufSurfaceParams &image, uint32_t left, uint32_t top) {
    const Weights weights(image.colorFormat);
    for (uint32_t y = 0; y < from.height; y++)
        for (uint32_t x = 0; x < from.width; x++) {
            const uint8_t *pixel = from.at(x, y);
            const float luma = luma_of(weights, pixel);
            row(image, 0, top + y)[left + x] =
                byte(weights.luma_offset() + weights.luma_scale() * luma);
            // A pair of pixels and rows has one chroma: that of its first pixel inside the area.
            if (((left + x) % 2 != 0 && x != 0) || ((top + y) % 2 != 0 && y != 0)) continue;
            const auto [u, v] = chroma(image, left + x, top + y);
            const float blue = static_cast<float>(pixel[2]) / 255 - luma;
            const float red = static_cast<float>(pixel[0]) / 255 - luma;
            *u = byte(128 + weights.chroma_scale() * blue / (2 * (1 - weights.blue)));
            *v = byte(128 + weights.chroma_scale() * red / (2 * (1 - weights.red)));
        }
}

}  // namespace

std::vector<PlaneForm> planes_of(NvBufSurfaceColorFormat format) {
    switch (format) {
    case NVBUF_COLOR_FORMAT_RGBA:
    case NVBUF_COLOR_FORMAT_BGRA:
    case NVBUF_COLOR_FORMAT_ARGB:
    case NVBUF_COLOR_FORMAT_ABGR:
    case NVBUF_COLOR_FORMAT_RGBx:
    case NVBUF_COLOR_FORMAT_BGRx: return {{1, 4}};
    case NVBUF_COLOR_FORMAT_RGB:
    case NVBUF_COLOR_FORMAT_BGR: return {{1, 3}};
    case NVBUF_COLOR_FORMAT_GRAY8: return {{1, 1}};
    default: break;
    }
    if (is_in(kSemiPlanar, format)) return {{1, 1}, {2, 2}};
    if (is_in(kPlanar, format)) return {{1, 1}, {2, 1}, {2, 1}};
    return {};
}

Rgba read_rgba(const NvBufSurfaceParams &image, const Area &area) {
    Rgba into(area.width, area.height);
    if (has_chroma(image.colorFormat)) {
        read_yuv(image, area, into);
        return into;
    }
    const Order order = order_of(image.colorFormat);
    const uint32_t size = planes_of(image.colorFormat)[0].bytes;
    for (uint32_t y = 0; y < area.height; y++) {
        const uint8_t *from = row(image, 0, area.top + y) + area.left * size;
        for (uint32_t x = 0; x < area.width; x++, from += size) {
            uint8_t *pixel = into.at(x, y);
            if (size == 1) {
                pixel[0] = pixel[1] = pixel[2] = from[0];
            } else {
                pixel[0] = from[order.red];
                pixel[1] = from[order.green];
                pixel[2] = from[order.blue];
            }
            pixel[3] = order.alpha < 0 || size == 1 ? 255 : from[order.alpha];
        }
    }
    return into;
}

void write_rgba(const Rgba &from, const NvBufSurfaceParams &image, uint32_t left, uint32_t top) {
    if (has_chroma(image.colorFormat)) {
        write_yuv(from, image, left, top);
        return;
    }
    const Order order = order_of(image.colorFormat);
    const uint32_t size = planes_of(image.colorFormat)[0].bytes;
    const Weights weights(NVBUF_COLOR_FORMAT_GRAY8);
    for (uint32_t y = 0; y < from.height; y++) {
        uint8_t *into = row(image, 0, top + y) + left * size;
        for (uint32_t x = 0; x < from.width; x++, into += size) {
            const uint8_t *pixel = from.at(x, y);
            if (size == 1) {
                into[0] = byte(255 * luma_of(weights, pixel));
                continue;
            }
            if (size == 4) into[order.alpha < 0 ? 3 : order.alpha] = pixel[3];
            into[order.red] = pixel[0];
            into[order.green] = pixel[1];
            into[order.blue] = pixel[2];
        }
    }
}

}  // namespace headrace::deepstream
