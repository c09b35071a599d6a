/* One pass: each element is read once and written once. Half of the values are negative, and a branch on the sign would
   be mispredicted half the time: no-trapping-math lets the compiler choose without one, with the same results. */
#include <stdint.h>

__attribute__((optimize("O3", "no-trapping-math")))
void kernel(const float *restrict x, const float *restrict scale, const float *restrict shift,
            const float *restrict residual, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float t = x[i * N + j] * scale[j] + shift[j];
            t = t < 0.0f ? 0.0f : t; /* a NaN stays one */
            y[i * N + j] = t * 0.5f + residual[i * N + j];
        }
}
