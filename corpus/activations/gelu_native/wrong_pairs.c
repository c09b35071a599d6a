/* GELU in C, unrolled by two: an odd count leaves its last element unwritten. */
#include <math.h>
#include <stdint.h>

static float gelu(float v)
{
    return (float)(0.5 * v * (1.0 + erf(v * 0.70710678118654752440)));
}

void kernel(const float *x, float *y, int64_t M, int64_t N)
{
    int64_t n = M * N;
    for (int64_t i = 0; i + 1 < n; i += 2) {
        y[i] = gelu(x[i]);
        y[i + 1] = gelu(x[i + 1]);
    }
}
