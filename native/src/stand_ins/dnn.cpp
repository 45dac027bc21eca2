// What stands in for cuDNN: the calls that plugins make, on host memory. Numbers of enumerations
// and orders of arguments are those of releases 7 to 9.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "stand_ins/arithmetic.h"
#include "stand_ins/stand_in.h"

namespace headrace::stand_ins {
namespace {

constexpr int kSuccess = 0, kBadParameter = 3, kNotSupported = 9;  // cudnnStatus_t of 7 and 8
constexpr int kFloat = 0, kHalf = 2;                               // cudnnDataType_t

// Extents and steps of a tensor, in elements: up to five axes, N and C first.
struct Tensor {
    static constexpr int kMost = 5;
    int type = kFloat, count = 0;
    std::array<int, kMost> size{1, 1, 1, 1, 1};
    std::array<std::ptrdiff_t, kMost> step{};

    std::ptrdiff_t at(int n, int c, int d, int h, int w) const {
        return n * step[0] + c * step[1] + d * step[2] + h * step[3] + w * step[4];
    }
    bool same_size(const Tensor &other) const { return size == other.size; }
};

// An image has four axes: its depth is 1. So that all have five, others get ones in front of the
// last.
void set(Tensor &to, int type, const int *sizes, const int *steps, int count) {
    to = Tensor{};
    to.type = type, to.count = count;
    for (int i = 0; i < count; ++i) {
        const int axis = i < 2 ? i : Tensor::kMost - count + i;
        to.size[static_cast<size_t>(axis)] = sizes[i];
        to.step[static_cast<size_t>(axis)] = steps[i];
    }
}

int refused(const char *call) {
    not_done(call);
    return kNotSupported;
}

int set_steps(Tensor *to, int type, int n, int c, int h, int w, int sn, int sc, int sh, int sw) {
    const int sizes[] = {n, c, h, w}, steps[] = {sn, sc, sh, sw};
    if (!to || *std::min_element(sizes, sizes + 4) < 1) return kBadParameter;
    set(*to, type, sizes, steps, 4);
    return kSuccess;
}

int set_image(Tensor *to, int format, int type, int n, int c, int h, int w) {
    if (format == 0) return set_steps(to, type, n, c, h, w, c * h * w, h * w, w, 1);
    if (format == 1) return set_steps(to, type, n, c, h, w, h * w * c, 1, w * c, c);
    return refused("cudnnSetTensor4dDescriptor with a format other than NCHW and NHWC");
}

int set_axes(Tensor *to, int type, int count, const int *sizes, const int *steps) {
    if (!to || !sizes || !steps || count < 1) return kBadParameter;
    if (count > Tensor::kMost) return refused("cudnnSetTensorNdDescriptor with over five axes");
    set(*to, type, sizes, steps, count);
    return kSuccess;
}

int set_filter(Tensor *to, int type, int format, int k, int c, int h, int w) {
    return set_image(to, format, type, k, c, h, w);
}

struct Activation {
    int mode = 0;
    double limit = 0;
};

int set_activation(Activation *to, int mode, int, double limit) {
    if (!to) return kBadParameter;
    *to = {mode, limit};
    return kSuccess;
}

struct Window {
    int mode = 0, type = kFloat, groups = 1;
    int height = 1, width = 1, top = 0, left = 0, down = 1, right = 1, spread_y = 1, spread_x = 1;

    static int count(int extent, int window, int border, int step, int spread) {
        return 1 + (extent + 2 * border - ((window - 1) * spread + 1)) / step;
    }
};

int set_pooling(Window *to, int mode, int, int height, int width, int top, int left, int down,
                int right) {
    if (!to || height < 1 || width < 1 || down < 1 || right < 1) return kBadParameter;
    *to = {mode, kFloat, 1, height, width, top, left, down, right, 1, 1};
    return kSuccess;
}

int set_convolution(Window *to, int top, int left, int down, int right, int spread_y, int spread_x,
                    int mode, int type) {
    if (!to || down < 1 || right < 1 || spread_y < 1 || spread_x < 1) return kBadParameter;
    *to = {mode, type, to->groups, 1, 1, top, left, down, right, spread_y, spread_x};
    return kSuccess;
}

int set_groups(Window *to, int groups) {
    if (!to || groups < 1) return kBadParameter;
    to->groups = groups;
    return kSuccess;
}

int convolved_size(const Window *how, const Tensor *x, const Tensor *w, int *n, int *c, int *height,
                   int *width) {
    if (!how || !x || !w || !n || !c || !height || !width) return kBadParameter;
    *n = x->size[0], *c = w->size[0];
    *height = Window::count(x->size[3], w->size[3], how->top, how->down, how->spread_y);
    *width = Window::count(x->size[4], w->size[4], how->left, how->right, how->spread_x);
    return kSuccess;
}

int pooled_size(const Window *how, const Tensor *x, int *n, int *c, int *height, int *width) {
    if (!how || !x || !n || !c || !height || !width) return kBadParameter;
    *n = x->size[0], *c = x->size[1];
    *height = Window::count(x->size[3], how->height, how->top, how->down, 1);
    *width = Window::count(x->size[4], how->width, how->left, how->right, 1);
    return kSuccess;
}

// What each function that computes is given; both tensors have one type, that of `Number`.
template <typename Number>
struct Call {
    float alpha, beta;
    const Tensor &x_of, &y_of;
    const Number *x;
    Number *y;

    void put(float value, int n, int c, int d, int h, int w) const {
        blend(y[y_of.at(n, c, d, h, w)], alpha, value, beta);
    }
    float get(int n, int c, int d, int h, int w) const { return x[x_of.at(n, c, d, h, w)]; }
};

template <typename Each>
void for_each_place(const Tensor &of, Each each) {
    for (int n = 0; n < of.size[0]; ++n)
        for (int c = 0; c < of.size[1]; ++c)
            for (int d = 0; d < of.size[2]; ++d)
                for (int h = 0; h < of.size[3]; ++h)
                    for (int w = 0; w < of.size[4]; ++w) each(n, c, d, h, w);
}

// Calls `body(Call)` with the type of the tensors.
template <typename Body>
int computed(const char *function, const float *alpha, const Tensor *x_of, const void *x,
             const float *beta, const Tensor *y_of, void *y, Body body) {
    if (!alpha || !beta || !x_of || !x || !y_of || !y) return kBadParameter;
    const auto with = [&](auto number) {
        using Number = decltype(number);
        return body(Call<Number>{*alpha, *beta, *x_of, *y_of, static_cast<const Number *>(x),
                                 static_cast<Number *>(y)});
    };
    if (x_of->type == y_of->type && x_of->type == kFloat) return with(float{});
    if (x_of->type == y_of->type && x_of->type == kHalf) return with(Half{});
    static thread_local std::string text;
    text = std::string(function) + " with types other than FP32 or FP16";
    return refused(text.c_str());
}

// Algorithm 2 gives logarithms; mode 0 makes one distribution of an item, 1 one of each place.
int softmax(void *, int algorithm, int mode, const float *alpha, const Tensor *x_of, const void *x,
            const float *beta, const Tensor *y_of, void *y) {
    return computed("cudnnSoftmaxForward", alpha, x_of, x, beta, y_of, y, [&](const auto &call) {
        const Tensor &of = call.x_of;
        if (!of.same_size(call.y_of)) return kBadParameter;
        Tensor outer = of, inner = of;  // a distribution for each place of `outer`
        for (size_t axis = 1; axis < of.size.size(); ++axis)
            (mode == 1 && axis > 1 ? inner : outer).size[axis] = 1;
        inner.size[0] = 1;
        for_each_place(outer, [&](int n, int, int d, int h, int w) {
            float most = -std::numeric_limits<float>::infinity();
            double sum = 0;
            const auto over = [&](auto each) {
                for_each_place(inner, [&](int, int c, int id, int ih, int iw) {
                    each(n, c, d + id, h + ih, w + iw);
                });
            };
            over([&](auto... at) { most = std::max(most, call.get(at...)); });
            over([&](auto... at) { sum += std::exp(call.get(at...) - most); });
            // of floats: that of doubles would need glibc 2.29
            const float logarithm = std::log(static_cast<float>(sum));
            over([&](auto... at) {
                const float value = call.get(at...) - most;
                const double result = algorithm == 2 ? value - logarithm : std::exp(value) / sum;
                call.put(static_cast<float>(result), at...);
            });
        });
        return kSuccess;
    });
}

// Scale, bias, mean and variance are FP32; mode 0 has them for each element of an item.
int normalize(void *, int mode, const float *alpha, const float *beta, const Tensor *x_of,
              const void *x, const Tensor *y_of, void *y, const Tensor *of, const float *factors,
              const float *bias, const float *mean, const float *variance, double epsilon) {
    if (!of || !factors || !bias || !mean || !variance) return kBadParameter;
    return computed("cudnnBatchNormalizationForwardInference", alpha, x_of, x, beta, y_of, y,
                    [&](const auto &call) {
                        if (!call.x_of.same_size(call.y_of)) return kBadParameter;
                        for_each_place(call.x_of, [&](int n, int c, int d, int h, int w) {
                            const auto k = mode ? of->at(0, c, 0, 0, 0) : of->at(0, c, d, h, w);
                            const double spread = std::sqrt(double{variance[k]} + epsilon);
                            const double value =
                                factors[k] * (call.get(n, c, d, h, w) - mean[k]) / spread + bias[k];
                            call.put(static_cast<float>(value), n, c, d, h, w);
                        });
                        return kSuccess;
                    });
}

float activated(const Activation &how, float x) {
    const auto limit = static_cast<float>(how.limit);
    switch (how.mode) {
    case 0: return 1.0F / (1.0F + std::exp(-x));
    case 1: return x > 0.0F ? x : 0.0F;
    case 2: return std::tanh(x);
    case 3: return std::min(std::max(x, 0.0F), limit);
    case 4: return x > 0.0F ? x : limit * std::expm1(x);
    case 6: return x / (1.0F + std::exp(-limit * x));
    default: return x;
    }
}

int activate(void *, const Activation *how, const float *alpha, const Tensor *x_of, const void *x,
             const float *beta, const Tensor *y_of, void *y) {
    if (!how) return kBadParameter;
    if (how->mode < 0 || how->mode > 6) return refused("cudnnActivationForward with its mode");
    return computed("cudnnActivationForward", alpha, x_of, x, beta, y_of, y, [&](const auto &call) {
        if (!call.x_of.same_size(call.y_of)) return kBadParameter;
        for_each_place(call.x_of,
                       [&](auto... at) { call.put(activated(*how, call.get(at...)), at...); });
        return kSuccess;
    });
}

// Adds x to y, axes of one element of x to each of y.
int add(void *, const float *alpha, const Tensor *x_of, const void *x, const float *beta,
        const Tensor *y_of, void *y) {
    return computed("cudnnAddTensor", alpha, x_of, x, beta, y_of, y, [&](const auto &call) {
        for (size_t i = 0; i < Tensor::kMost; ++i)
            if (call.x_of.size[i] != 1 && call.x_of.size[i] != call.y_of.size[i])
                return kBadParameter;
        const auto &s = call.x_of.size;
        for_each_place(call.y_of, [&](int n, int c, int d, int h, int w) {
            const auto one = [&s](size_t axis, int index) { return s[axis] == 1 ? 0 : index; };
            call.put(call.get(one(0, n), one(1, c), one(2, d), one(3, h), one(4, w)), n, c, d, h,
                     w);
        });
        return kSuccess;
    });
}

int pool(void *, const Window *how, const float *alpha, const Tensor *x_of, const void *x,
         const float *beta, const Tensor *y_of, void *y) {
    if (!how) return kBadParameter;
    if (how->mode < 0 || how->mode > 3) return refused("cudnnPoolingForward with its mode");
    return computed("cudnnPoolingForward", alpha, x_of, x, beta, y_of, y, [&](const auto &call) {
        const auto &size = call.x_of.size;
        if (size[2] != 1) return refused("cudnnPoolingForward with a depth");
        for_each_place(call.y_of, [&](int n, int c, int d, int h, int w) {
            float most = -std::numeric_limits<float>::infinity(), sum = 0.0F;
            int inside = 0;
            for (int i = 0; i < how->height; ++i)
                for (int j = 0; j < how->width; ++j) {
                    const int row = h * how->down - how->top + i;
                    const int column = w * how->right - how->left + j;
                    if (row < 0 || column < 0 || row >= size[3] || column >= size[4]) continue;
                    const float value = call.get(n, c, d, row, column);
                    most = std::max(most, value), sum += value, ++inside;
                }
            const int all = how->mode == 1 ? how->height * how->width : std::max(inside, 1);
            call.put(how->mode == 0 || how->mode == 3 ? most : sum / static_cast<float>(all), n, c,
                     d, h, w);
        });
        return kSuccess;
    });
}

int convolve(void *, const float *alpha, const Tensor *x_of, const void *x, const Tensor *w_of,
             const void *weights, const Window *how, int, void *, size_t, const float *beta,
             const Tensor *y_of, void *y) {
    if (!how || !w_of || !weights) return kBadParameter;
    return computed(
        "cudnnConvolutionForward", alpha, x_of, x, beta, y_of, y, [&](const auto &call) {
            using Number = std::remove_const_t<std::remove_pointer_t<decltype(call.x)>>;
            if (w_of->type != call.x_of.type)
                return refused("cudnnConvolutionForward with weights of a type of their own");
            const auto &size = call.x_of.size, &window = w_of->size;
            const int filters = window[0] / how->groups;
            if (size[2] != 1) return refused("cudnnConvolutionForward with a depth");
            if (window[1] * how->groups != size[1] || window[0] != call.y_of.size[1] || !filters)
                return kBadParameter;
            const auto *factors = static_cast<const Number *>(weights);
            for_each_place(call.y_of, [&](int n, int k, int, int h, int w) {
                float sum = 0.0F;
                for (int c = 0; c < window[1]; ++c)
                    for (int i = 0; i < window[3]; ++i)
                        for (int j = 0; j < window[4]; ++j) {
                            const int row = h * how->down - how->top + i * how->spread_y;
                            const int column = w * how->right - how->left + j * how->spread_x;
                            if (row < 0 || column < 0 || row >= size[3] || column >= size[4])
                                continue;
                            const int fi = how->mode ? i : window[3] - 1 - i;  // 0: it is mirrored
                            const int fj = how->mode ? j : window[4] - 1 - j;
                            const float factor = factors[w_of->at(k, c, 0, fi, fj)];
                            sum +=
                                call.get(n, k / filters * window[1] + c, 0, row, column) * factor;
                        }
                call.put(sum, n, k, 0, h, w);
            });
            return kSuccess;
        });
}

int no_workspace(void *, const Tensor *, const Tensor *, const Window *, const Tensor *, int,
                 size_t *bytes) {
    if (bytes) *bytes = 0;
    return kSuccess;
}

template <typename T>
int create(T **made) {
    if (!made) return kBadParameter;
    *made = new T;
    return kSuccess;
}
template <typename T>
int destroy(T *gone) {
    delete gone;
    return kSuccess;
}

int done() { return kSuccess; }
size_t version() { return 8907; }
const char *status_text(int status) {
    return status == kSuccess ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_SUPPORTED";
}

}  // namespace

void *dnn_stand_in(const std::string &function) {
#define DNN(name, body)                                 \
    {                                                   \
        "cudnn" name, reinterpret_cast<void *>(&(body)) \
    }
    static const Table table = {
        DNN("CreateTensorDescriptor", create<Tensor>),
        DNN("DestroyTensorDescriptor", destroy<Tensor>),
        DNN("SetTensor4dDescriptor", set_image),
        DNN("SetTensor4dDescriptorEx", set_steps),
        DNN("SetTensorNdDescriptor", set_axes),
        DNN("CreateFilterDescriptor", create<Tensor>),
        DNN("DestroyFilterDescriptor", destroy<Tensor>),
        DNN("SetFilter4dDescriptor", set_filter),
        DNN("CreateActivationDescriptor", create<Activation>),
        DNN("DestroyActivationDescriptor", destroy<Activation>),
        DNN("SetActivationDescriptor", set_activation),
        DNN("CreatePoolingDescriptor", create<Window>),
        DNN("DestroyPoolingDescriptor", destroy<Window>),
        DNN("SetPooling2dDescriptor", set_pooling),
        DNN("GetPooling2dForwardOutputDim", pooled_size),
        DNN("CreateConvolutionDescriptor", create<Window>),
        DNN("DestroyConvolutionDescriptor", destroy<Window>),
        DNN("SetConvolution2dDescriptor", set_convolution),
        DNN("SetConvolutionGroupCount", set_groups),
        DNN("SetConvolutionMathType", done),
        DNN("GetConvolution2dForwardOutputDim", convolved_size),
        DNN("GetConvolutionForwardWorkspaceSize", no_workspace),
        DNN("SoftmaxForward", softmax),
        DNN("BatchNormalizationForwardInference", normalize),
        DNN("ActivationForward", activate),
        DNN("AddTensor", add),
        DNN("PoolingForward", pool),
        DNN("ConvolutionForward", convolve),
        DNN("GetVersion", version),
        DNN("GetErrorString", status_text),
    };
#undef DNN
    return found_in(table, function);
}

}  // namespace headrace::stand_ins
