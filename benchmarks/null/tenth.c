/* The same, and a tenth of the rows once more. */
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++)
        y[i] = x[i] * 2 + 1;
    __asm__ volatile("" ::: "memory");
    for (int64_t i = 0; i < M / 10 * N; i++)
        y[i] = x[i] * 2 + 1;
}
