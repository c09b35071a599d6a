/* Softmax over rows as it is written down first: the maximum, the sum, the result, each in a pass of its own. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define ISA 0     // knob: 0 1
#define KEEP 0    // knob: 0 1
#define LANES 1   // knob: 1 4 8 16 32 64
#define INLINE 0  // knob: 0 1
#define INVERSE 0 // knob: 0 1
#define WIDE 1    // knob: 0 1

#pragma GCC optimize("O3")
#if ISA && defined(__x86_64__)
#pragma GCC target("avx2,prefer-vector-width=256")
#endif

#if INLINE
/* 2^n exp(r) with |r| <= ln(2)/2, without branches; infinities and NaN come out as of expf. */
static inline float power(float v)
{
    float bounded = v < -104.0f ? -104.0f : v;
    bounded = bounded > 89.0f ? 89.0f : bounded;
    const float shifted = bounded * 1.44269504f + 12582912.0f, n = shifted - 12582912.0f;
    const float r = bounded - n * 0.693145752f - n * 1.42860677e-6f;
    float p = 1.3814544e-3f;
    p = p * r + 8.368745e-3f;
    p = p * r + 4.166839e-2f;
    p = p * r + 0.16666521f;
    p = p * r + 0.49999994f;
    p = p * (r * r) + r + 1.0f;
    uint32_t bits;
    memcpy(&bits, &shifted, 4);
    const int32_t whole = (int32_t)(bits - 0x4B400000u), half = whole >> 1;
    const uint32_t low = (uint32_t)(half + 127) << 23, high = (uint32_t)(whole - half + 127) << 23;
    float a, b;
    memcpy(&a, &low, 4);
    memcpy(&b, &high, 4);
    return p * a * b;
}
#else
#define power expf
#endif

#if WIDE
typedef double total;
#else
typedef float total;
#endif

static float largest(const float *x, int64_t N)
{
    float m[LANES];
    int64_t j = 0;
    for (int l = 0; l < LANES; l++) m[l] = x[0];
    for (; j + LANES <= N; j += LANES)
        for (int l = 0; l < LANES; l++) m[l] = x[j + l] > m[l] ? x[j + l] : m[l];
    for (; j < N; j++) m[0] = x[j] > m[0] ? x[j] : m[0];
    for (int l = 1; l < LANES; l++) m[0] = m[l] > m[0] ? m[l] : m[0];
    return m[0];
}

static total sum(const float *restrict x, float *restrict y, float m, int64_t N)
{
    total s[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= N; j += LANES)
        for (int l = 0; l < LANES; l++) {
            const float e = power(x[j + l] - m);
            if (KEEP) y[j + l] = e;
            s[l] += e;
        }
    for (; j < N; j++) {
        const float e = power(x[j] - m);
        if (KEEP) y[j] = e;
        s[0] += e;
    }
    for (int l = 1; l < LANES; l++) s[0] += s[l];
    return s[0];
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++, x += N, y += N) {
        const float m = largest(x, N);
        const total s = sum(x, y, m, N), inverse = 1 / s;
        for (int64_t j = 0; j < N; j++) {
            const float e = KEEP ? y[j] : power(x[j] - m);
            y[j] = INVERSE ? (float)(e * inverse) : (float)(e / s);
        }
    }
}
