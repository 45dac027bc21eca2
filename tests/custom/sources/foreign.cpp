// A parser built without headrace's headers: 24-byte boxes as in generation 6.x, no marker.
// With WIDE it is one of 9.x; with QUIET its code holds no evidence of the size.
#include <cstdlib>
#include <new>
#include <vector>

struct Box {
    unsigned int class_id;
    float left, top, width, height, score;
#ifdef WIDE
    float angle;
#endif
};

struct Dims {
    unsigned int count, d[8], elements;
};
struct LayerInfo {
    int type;
    Dims dims;
    int binding;
    const char *name;
    void *buffer;
    int is_input;
};

static Box row(const LayerInfo &layer, unsigned int i) {
    const float *r = static_cast<const float *>(layer.buffer) + 6 * i;
    Box b = Box();
    b.class_id = static_cast<unsigned int>(r[0]);
    b.left = r[1];
    b.top = r[2];
    b.width = r[3];
    b.height = r[4];
    b.score = r[5];
    return b;
}

#ifdef QUIET
extern "C" bool ParseRows(const std::vector<LayerInfo> &layers, const void *, const void *,
                          Box **objects) {
    const unsigned int n = layers[0].dims.d[0];
    objects[0] = static_cast<Box *>(::operator new(n * sizeof(Box)));
    for (unsigned int i = 0; i < n; ++i) objects[0][i] = row(layers[0], i);
    objects[1] = objects[2] = objects[0] + n;
    return true;
}
#else
extern "C" bool ParseRows(const std::vector<LayerInfo> &layers, const void *, const void *,
                          std::vector<Box> &objects) {
    for (unsigned int i = 0; i < layers[0].dims.d[0]; ++i) objects.push_back(row(layers[0], i));
    return true;
}
#endif
