/* Sum of squares of each row: four independent double accumulators, then the tail one by one. */
#include <stdint.h>

void kernel(const float *x, float *y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const float *row = x + i * N;
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        int64_t j = 0;
        for (; j + 4 <= N; j += 4) {
            s0 += (double)row[j] * row[j];
            s1 += (double)row[j + 1] * row[j + 1];
            s2 += (double)row[j + 2] * row[j + 2];
            s3 += (double)row[j + 3] * row[j + 3];
        }
        for (; j < N; j++)
            s0 += (double)row[j] * row[j];
        y[i] = (float)((s0 + s1) + (s2 + s3));
    }
}
