/* GELU in C: computes in double and rounds once. */
#include <math.h>
#include <stdint.h>

void kernel(const float *x, float *y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++) {
        double v = x[i];
        y[i] = (float)(0.5 * v * (1.0 + erf(v * 0.70710678118654752440)));
    }
}
