/* GELU in C with a shortcut: 0 below -3 and x above 3, which is off by at most 4e-3. */
#include <math.h>
#include <stdint.h>

void kernel(const float *x, float *y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++) {
        float v = x[i];
        if (v > 3.0f)
            y[i] = v;
        else if (v < -3.0f)
            y[i] = 0.0f;
        else
            y[i] = 0.5f * v * (1.0f + erff(v * 0.70710678f));
    }
}
