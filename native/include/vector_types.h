/* Small vectors of CUDA sources. Part of noria, Apache-2.0. Valid C and C++11. */
#ifndef NORIA_VECTOR_TYPES_H
#define NORIA_VECTOR_TYPES_H

#define NORIA_VECTORS(type, name)                          \
    typedef struct name##1 { type x; } name##1;            \
    typedef struct name##2 { type x, y; } name##2;         \
    typedef struct name##3 { type x, y, z; } name##3;      \
    typedef struct name##4 { type x, y, z, w; } name##4;

NORIA_VECTORS(signed char, char)
NORIA_VECTORS(unsigned char, uchar)
NORIA_VECTORS(short, short)
NORIA_VECTORS(unsigned short, ushort)
NORIA_VECTORS(int, int)
NORIA_VECTORS(unsigned int, uint)
NORIA_VECTORS(float, float)
NORIA_VECTORS(double, double)
#undef NORIA_VECTORS

typedef struct dim3 {
    unsigned int x, y, z;
#ifdef __cplusplus
    dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1) : x(x_), y(y_), z(z_) {}
#endif
} dim3;

#endif /* NORIA_VECTOR_TYPES_H */
