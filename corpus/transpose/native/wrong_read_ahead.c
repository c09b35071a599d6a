/* Transpose in C that prefetches the element after the one it copies: right values, one float read past the input. */
#include <stdint.h>

void kernel(const float *x, float *y, int64_t M, int64_t N)
{
    if (M * N == 0)
        return;
    volatile float next = x[0];
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float v = next;
            next = x[i * N + j + 1];
            y[j * M + i] = v;
        }
}
