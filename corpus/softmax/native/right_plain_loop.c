/* Softmax of each row: the largest element, then one float sum, term after term, then a division. */
#include <math.h>
#include <stdint.h>

void kernel(const float *x, float *y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const float *in = x + i * N;
        float *out = y + i * N;
        float top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < N; j++)
            if (in[j] > top || isnan(in[j]))
                top = isnan(top) ? top : in[j];
        for (int64_t j = 0; j < N; j++) {
            out[j] = expf(in[j] - top);
            sum += out[j];
        }
        for (int64_t j = 0; j < N; j++)
            out[j] /= sum;
    }
}
