// Discrete Fourier transforms of a few complex numbers, in eight lanes. All is inlined into
// HEADRACE_WIDE functions; include it after core/vectorise.h.
#pragma once
#include <cstring>
#include <utility>

namespace headrace::track {

#define HEADRACE_INLINE inline __attribute__((always_inline))
#define HEADRACE_LAMBDA __attribute__((always_inline))

constexpr int kWide = 8;
using Vector = float __attribute__((vector_size(kWide * sizeof(float))));

HEADRACE_INLINE void load(Vector &v, const float *from) { std::memcpy(&v, from, sizeof v); }
HEADRACE_INLINE void store(float *to, const Vector &v) { std::memcpy(to, &v, sizeof v); }

// In place, in natural order.
template <int N>
struct Dft;

template <>
struct Dft<2> {
    static HEADRACE_INLINE void run(Vector *re, Vector *im) {
        const Vector a = re[0] - re[1], b = im[0] - im[1];
        re[0] += re[1], im[0] += im[1];
        re[1] = a, im[1] = b;
    }
};

template <>
struct Dft<3> {
    static HEADRACE_INLINE void run(Vector *re, Vector *im) {
        constexpr float kSine = 0.86602540378f;
        const Vector sum_re = re[1] + re[2], sum_im = im[1] + im[2];
        const Vector off_re = (re[1] - re[2]) * kSine, off_im = (im[1] - im[2]) * kSine;
        const Vector mid_re = re[0] - 0.5f * sum_re, mid_im = im[0] - 0.5f * sum_im;
        re[0] += sum_re, im[0] += sum_im;
        re[1] = mid_re + off_im, im[1] = mid_im - off_re;
        re[2] = mid_re - off_im, im[2] = mid_im + off_re;
    }
};

template <>
struct Dft<4> {
    static HEADRACE_INLINE void run(Vector *re, Vector *im) {
        const Vector a_re = re[0] + re[2], a_im = im[0] + im[2];
        const Vector b_re = re[0] - re[2], b_im = im[0] - im[2];
        const Vector c_re = re[1] + re[3], c_im = im[1] + im[3];
        const Vector d_re = re[1] - re[3], d_im = im[1] - im[3];
        re[0] = a_re + c_re, im[0] = a_im + c_im;
        re[1] = b_re + d_im, im[1] = b_im - d_re;
        re[2] = a_re - c_re, im[2] = a_im - c_im;
        re[3] = b_re - d_im, im[3] = b_im + d_re;
    }
};

template <>
struct Dft<5> {
    static HEADRACE_INLINE void run(Vector *re, Vector *im) {
        constexpr float kCos1 = 0.30901699437f, kCos2 = -0.80901699437f;
        constexpr float kSin1 = 0.95105651630f, kSin2 = 0.58778525229f;
        const Vector a_re = re[1] + re[4], a_im = im[1] + im[4];
        const Vector b_re = re[2] + re[3], b_im = im[2] + im[3];
        const Vector c_re = re[1] - re[4], c_im = im[1] - im[4];
        const Vector d_re = re[2] - re[3], d_im = im[2] - im[3];
        const Vector e_re = re[0] + kCos1 * a_re + kCos2 * b_re;
        const Vector e_im = im[0] + kCos1 * a_im + kCos2 * b_im;
        const Vector f_re = re[0] + kCos2 * a_re + kCos1 * b_re;
        const Vector f_im = im[0] + kCos2 * a_im + kCos1 * b_im;
        const Vector g_re = kSin1 * c_re + kSin2 * d_re, g_im = kSin1 * c_im + kSin2 * d_im;
        const Vector h_re = kSin2 * c_re - kSin1 * d_re, h_im = kSin2 * c_im - kSin1 * d_im;
        re[0] += a_re + b_re, im[0] += a_im + b_im;
        re[1] = e_re + g_im, im[1] = e_im - g_re;
        re[2] = f_re + h_im, im[2] = f_im - h_re;
        re[3] = f_re - h_im, im[3] = f_im + h_re;
        re[4] = e_re - g_im, im[4] = e_im + g_re;
    }
};

// Turns a number by the angle of which the cosine and the sine are given, clockwise.
HEADRACE_INLINE void turn(Vector &re, Vector &im, float cosine, float sine) {
    const Vector a = re * cosine + im * sine;
    im = im * cosine - re * sine;
    re = a;
}

template <>
struct Dft<8> {
    static HEADRACE_INLINE void run(Vector *re, Vector *im) {
        constexpr float kHalf = 0.70710678119f;
        Vector a_re[4] = {re[0], re[2], re[4], re[6]}, a_im[4] = {im[0], im[2], im[4], im[6]};
        Vector b_re[4] = {re[1], re[3], re[5], re[7]}, b_im[4] = {im[1], im[3], im[5], im[7]};
        Dft<4>::run(a_re, a_im);
        Dft<4>::run(b_re, b_im);
        const Vector c_re = (b_re[1] + b_im[1]) * kHalf, c_im = (b_im[1] - b_re[1]) * kHalf;
        const Vector d_re = (b_im[3] - b_re[3]) * kHalf, d_im = (b_im[3] + b_re[3]) * -kHalf;
        re[0] = a_re[0] + b_re[0], im[0] = a_im[0] + b_im[0];
        re[4] = a_re[0] - b_re[0], im[4] = a_im[0] - b_im[0];
        re[1] = a_re[1] + c_re, im[1] = a_im[1] + c_im;
        re[5] = a_re[1] - c_re, im[5] = a_im[1] - c_im;
        re[2] = a_re[2] + b_im[2], im[2] = a_im[2] - b_re[2];
        re[6] = a_re[2] - b_im[2], im[6] = a_im[2] + b_re[2];
        re[3] = a_re[3] + d_re, im[3] = a_im[3] + d_im;
        re[7] = a_re[3] - d_re, im[7] = a_im[3] - d_im;
    }
};

template <>
struct Dft<9> {
    static HEADRACE_INLINE void run(Vector *re, Vector *im) {
        Vector a_re[3] = {re[0], re[3], re[6]}, a_im[3] = {im[0], im[3], im[6]};
        Vector b_re[3] = {re[1], re[4], re[7]}, b_im[3] = {im[1], im[4], im[7]};
        Vector c_re[3] = {re[2], re[5], re[8]}, c_im[3] = {im[2], im[5], im[8]};
        Dft<3>::run(a_re, a_im);
        Dft<3>::run(b_re, b_im);
        Dft<3>::run(c_re, c_im);
        turn(b_re[1], b_im[1], 0.76604444312f, 0.64278760969f);   // 40 degrees
        turn(b_re[2], b_im[2], 0.17364817767f, 0.98480775301f);   // 80
        turn(c_re[1], c_im[1], 0.17364817767f, 0.98480775301f);   // 80
        turn(c_re[2], c_im[2], -0.93969262079f, 0.34202014333f);  // 160
        for (int k = 0; k < 3; ++k) {
            Vector d_re[3] = {a_re[k], b_re[k], c_re[k]}, d_im[3] = {a_im[k], b_im[k], c_im[k]};
            Dft<3>::run(d_re, d_im);
            re[k] = d_re[0], im[k] = d_im[0];
            re[k + 3] = d_re[1], im[k + 3] = d_im[1];
            re[k + 6] = d_re[2], im[k + 6] = d_im[2];
        }
    }
};

// Calls f with 0 to N - 1 as constants.
template <class F, int... I>
HEADRACE_INLINE void each(std::integer_sequence<int, I...>, const F &f) {
    (f(std::integral_constant<int, I>()), ...);
}

// Of P * Q numbers without a common factor: transforms of P, then of Q, with nothing between them
// (Good 1958, Thomas 1963).
template <int P, int Q>
struct Parts {
    static constexpr int kSize = P * Q;

    // The number below P * Q that leaves i and j.
    static constexpr int leaving(int i, int j) {
        for (int n = 0; n < kSize; ++n)
            if (n % P == i && n % Q == j) return n;
        return 0;
    }

    static HEADRACE_INLINE void run(Vector *re, Vector *im) {
        Vector part_re[Q][P], part_im[Q][P];
        each(std::make_integer_sequence<int, Q>(), [&](auto j) HEADRACE_LAMBDA {
            each(std::make_integer_sequence<int, P>(), [&](auto i) HEADRACE_LAMBDA {
                constexpr int kFrom = (Q * decltype(i)::value + P * decltype(j)::value) % kSize;
                part_re[j][i] = re[kFrom], part_im[j][i] = im[kFrom];
            });
            Dft<P>::run(part_re[j], part_im[j]);
        });
        each(std::make_integer_sequence<int, P>(), [&](auto i) HEADRACE_LAMBDA {
            Vector some_re[Q], some_im[Q];
            each(std::make_integer_sequence<int, Q>(), [&](auto j) HEADRACE_LAMBDA {
                some_re[j] = part_re[j][i], some_im[j] = part_im[j][i];
            });
            Dft<Q>::run(some_re, some_im);
            each(std::make_integer_sequence<int, Q>(), [&](auto j) HEADRACE_LAMBDA {
                constexpr int kTo = leaving(decltype(i)::value, decltype(j)::value);
                re[kTo] = some_re[j], im[kTo] = some_im[j];
            });
        });
    }
};

template <>
struct Dft<6> : Parts<2, 3> {};
template <>
struct Dft<12> : Parts<4, 3> {};
template <>
struct Dft<18> : Parts<9, 2> {};
template <>
struct Dft<24> : Parts<8, 3> {};
template <>
struct Dft<30> : Parts<6, 5> {};
template <>
struct Dft<36> : Parts<9, 4> {};

}  // namespace headrace::track
