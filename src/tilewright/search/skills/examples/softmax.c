/* Three passes over each row: maximum, sum, result. */
#include <math.h>
#include <stdint.h>

void kernel(const float *x, float *y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const float *row = x + i * N;
        float m = row[0];
        for (int64_t j = 1; j < N; j++)
            if (row[j] > m) m = row[j];
        double s = 0;
        for (int64_t j = 0; j < N; j++)
            s += expf(row[j] - m);
        for (int64_t j = 0; j < N; j++)
            y[i * N + j] = expf(row[j] - m) / s;
    }
}
