/* Blocked transpose in C: the block limits are clipped to the matrix. */
#include <stdint.h>

#define BLOCK 16

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void kernel(const float *x, float *y, int64_t M, int64_t N)
{
    for (int64_t i0 = 0; i0 < M; i0 += BLOCK)
        for (int64_t j0 = 0; j0 < N; j0 += BLOCK)
            for (int64_t i = i0; i < least(i0 + BLOCK, M); i++)
                for (int64_t j = j0; j < least(j0 + BLOCK, N); j++)
                    y[j * M + i] = x[i * N + j];
}
