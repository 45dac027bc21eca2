/* Small vectors of CUDA sources. Part of headrace, Apache-2.0. Valid C and C++11. */
#ifndef HEADRACE_VECTOR_TYPES_H
#define HEADRACE_VECTOR_TYPES_H

#define HEADRACE_VECTORS(type, name)            \
    typedef struct name##1 { type x; }          \
    name##1;                                    \
    typedef struct name##2 { type x, y; }       \
    name##2;                                    \
    typedef struct name##3 { type x, y, z; }    \
    name##3;                                    \
    typedef struct name##4 { type x, y, z, w; } \
    name##4;

HEADRACE_VECTORS(signed char, char)
HEADRACE_VECTORS(unsigned char, uchar)
HEADRACE_VECTORS(short, short)
HEADRACE_VECTORS(unsigned short, ushort)
HEADRACE_VECTORS(int, int)
HEADRACE_VECTORS(unsigned int, uint)
HEADRACE_VECTORS(float, float)
HEADRACE_VECTORS(double, double)
#undef HEADRACE_VECTORS

typedef struct dim3 {
    unsigned int x, y, z;
#ifdef __cplusplus
    dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1) : x(x_), y(y_), z(z_) {}
#endif
} dim3;

#endif /* HEADRACE_VECTOR_TYPES_H */
