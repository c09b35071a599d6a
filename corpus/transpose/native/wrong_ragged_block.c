/* Blocked transpose in C without clipping: a ragged last block reads the next row and writes past the output. */
#include <stdint.h>

#define BLOCK 16

void kernel(const float *x, float *y, int64_t M, int64_t N)
{
    for (int64_t i0 = 0; i0 < M; i0 += BLOCK)
        for (int64_t j0 = 0; j0 < N; j0 += BLOCK)
            for (int64_t i = i0; i < i0 + BLOCK; i++)
                for (int64_t j = j0; j < j0 + BLOCK; j++)
                    y[j * M + i] = x[i * N + j];
}
