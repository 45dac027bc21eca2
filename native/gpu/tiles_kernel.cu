// Images of many sources on one, in a GPU's memory: one thread makes four pixels with their chroma.
// All sums are of whole numbers. NVRTC compiles this file to PTX (`make ptx`); tests compile it by
// C++, with a loop in the place of the grid.
#include "component.h"

namespace headrace::draw {

// `sum` of samples times weights of their rows, which are 2^8 together, and of their columns, 2^14.
HEADRACE_TARGET inline int tile_level(unsigned sum) { return int((sum + (1u << 21)) >> 22); }

// A component of another colour space: `row` has the parts of Y, U, V and 1 in it, times 2^14.
HEADRACE_TARGET inline int recolored(const int32_t *row, int y, int u, int v) {
    const int sum = row[0] * y + row[1] * (u - 128) + row[2] * (v - 128) + row[3] + (1 << 13);
    const int level = sum < 0 ? 0 : sum >> 14;
    return level > 255 ? 255 : level;
}

// Of each sample of a tile along an axis: the first one of the image, and weights from it on.
struct TileAxis {
    const int32_t *first;
    const int16_t *weights;
    int64_t taps;
};

// Mirrored by `TILE` of headrace/media/draw/device_tiles.py.
struct Tile {
    preprocess::Component component[3];
    TileAxis x[2], y[2];  // of luma and of chroma
    int32_t wide, left, top, width, height, recolors;
    int32_t matrix[12];
};

// Mirrored by `_Mosaic`. Sides are even.
struct Mosaic {
    const Tile *tiles;
    uint8_t *luma, *chroma;  // NV12 with rows of `pitch` bytes
    int32_t count, width, height, pitch;
    int32_t dark[3];  // Y, U, V where no tile is
};

HEADRACE_TARGET inline int tile_sample(const Tile &tile, int c, int x, int y) {
    const TileAxis &across = tile.x[c > 0], &down = tile.y[c > 0];
    const int16_t *columns = across.weights + x * across.taps;
    const int16_t *rows = down.weights + y * down.taps;
    unsigned sum = 0;
    for (int j = 0; j < down.taps; ++j) {
        if (!rows[j]) continue;
        unsigned row = 0;
        for (int i = 0; i < across.taps; ++i)
            row += unsigned(columns[i]) *
                   unsigned(preprocess::sample_of(tile.component[c], tile.wide, down.first[y] + j,
                                                  across.first[x] + i));
        sum += unsigned(rows[j]) * row;
    }
    return tile_level(sum);
}

HEADRACE_TARGET inline void tile_quad(const Mosaic &to, int x, int y) {
    int luma[4] = {to.dark[0], to.dark[0], to.dark[0], to.dark[0]};
    int blue = to.dark[1], red = to.dark[2];
    for (int t = 0; t < to.count; ++t) {
        const Tile &tile = to.tiles[t];
        const int left = 2 * x - tile.left, top = 2 * y - tile.top;
        if (left < 0 || top < 0 || left >= tile.width || top >= tile.height) continue;
        for (int i = 0; i < 4; ++i) luma[i] = tile_sample(tile, 0, left + i % 2, top + i / 2);
        const int u = tile_sample(tile, 1, left / 2, top / 2);
        const int v = tile_sample(tile, 2, left / 2, top / 2);
        blue = u, red = v;
        if (tile.recolors) {
            for (int i = 0; i < 4; ++i) luma[i] = recolored(tile.matrix, luma[i], u, v);
            blue = recolored(tile.matrix + 4, 0, u, v);
            red = recolored(tile.matrix + 8, 0, u, v);
        }
    }
    for (int i = 0; i < 4; ++i)
        to.luma[int64_t(2 * y + i / 2) * to.pitch + 2 * x + i % 2] = uint8_t(luma[i]);
    uint8_t *chroma = to.chroma + int64_t(y) * to.pitch + 2 * x;
    chroma[0] = uint8_t(blue), chroma[1] = uint8_t(red);
}

#ifdef __CUDACC_RTC__
// Grid: x and y over the chroma samples.
extern "C" __global__ void headrace_tiles(Mosaic mosaic) {
    const int x = int(blockIdx.x * blockDim.x + threadIdx.x);
    const int y = int(blockIdx.y * blockDim.y + threadIdx.y);
    if (2 * x < mosaic.width && 2 * y < mosaic.height) tile_quad(mosaic, x, y);
}
#endif

}  // namespace headrace::draw
