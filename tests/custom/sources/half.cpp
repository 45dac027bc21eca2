// Functions of half precision on the host; a number is the line of what is wrong.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define CHECK(what) \
    if (!(what)) return __LINE__

static float of(half v) { return __half2float(v); }

extern "C" int check() {
    half a(1.5f), b(2.0f);
    const half product = a * b;
    a += b;
    CHECK(of(product) == 3.0f && of(a) == 3.5f && a > b && a > 1 && a == 3.5f);
    CHECK(a * 2 == 7.0f && a * 2.0 == 7.0 && 3 * b + 1 == 7.0f && of(a / b) == 1.75f);
    CHECK(of(__hfma(a, b, product)) == 10.0f && of(__hadd(a, b)) == 5.5f);
    CHECK(of(__hmul(half(0.1f), half(3.0f))) == of(half(of(half(0.1f)) * 3.0f)));
    CHECK(__hgt(a, b) && __hle(b, b) && !__hlt(a, b) && __hne(a, b) && __heq(a, a));
    CHECK(of(__hmax(a, b)) == 3.5f && of(__hneg(a)) == -3.5f && of(__habs(half(-2.0f))) == 2.0f);
    CHECK(__hisnan(half(0.0f / 0.0f * 1.0f)) || !(a == a + 0));
    CHECK(__hisinf(half(1e9f)) == 1 && __hisinf(half(-1e9f)) == -1 && !__hisinf(a));
    CHECK(of(hexp(half(0.0f))) == 1.0f && of(hsqrt(half(4.0f))) == 2.0f);
    CHECK(of(hrcp(half(4.0f))) == 0.25f && of(hrsqrt(half(4.0f))) == 0.5f);
    // a half has 11 bits of digits: 2049 is between two
    CHECK(of(__int2half_rn(2049)) == 2048.0f && of(__int2half_rd(2049)) == 2048.0f);
    CHECK(of(__int2half_ru(2049)) == 2050.0f && of(__int2half_rz(2051)) == 2050.0f);
    CHECK(of(__int2half_rd(-2049)) == -2050.0f && of(__int2half_rz(-2049)) == -2048.0f);
    CHECK(__half2int_rn(a) == 4 && __half2int_rd(a) == 3 && __half2int_rz(__hneg(a)) == -3);
    CHECK(of(__float2half_ru(1e-9f)) > 0.0f && of(__float2half_rd(-1e-9f)) < 0.0f);
    CHECK(__half_as_ushort(__float2half_rz(65535.0f)) == 0x7BFF);
    CHECK(__half_as_ushort(__float2half_ru(1e6f)) == 0x7C00);
    CHECK(__half_as_ushort(__float2half_rd(1e6f)) == 0x7BFF);
    const half2 pair = __floats2half2_rn(1.0f, 2.0f);
    const float2 sum = __half22float2(__hadd2(pair, __float2half2_rn(0.5f)));
    CHECK(sum.x == 1.5f && sum.y == 2.5f && __high2float(h2exp2(pair)) == 4.0f);
    CHECK(__low2float(__hfma2(pair, pair, pair)) == 2.0f);
    return 0;
}
