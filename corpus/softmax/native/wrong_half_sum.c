/* Softmax of each row whose sum is rounded to half precision after each term: the rows no longer sum to one. */
#include <math.h>
#include <stdint.h>

void kernel(const float *x, float *y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const float *in = x + i * N;
        float *out = y + i * N;
        float top = -INFINITY;
        _Float16 sum = 0;
        for (int64_t j = 0; j < N; j++)
            if (in[j] > top || isnan(in[j]))
                top = isnan(top) ? top : in[j];
        for (int64_t j = 0; j < N; j++) {
            out[j] = expf(in[j] - top);
            sum = (_Float16)(sum + (_Float16)out[j]);
        }
        for (int64_t j = 0; j < N; j++)
            out[j] /= (float)sum;
    }
}
