/* Pairwise summation by recursion, halves split at any point; an empty tensor gives 0. */
#include <stdint.h>

static float pairwise(const float *x, int64_t n) {
    if (n <= 8) {
        float s = 0.0f;
        for (int64_t i = 0; i < n; i++) s += x[i];
        return s;
    }
    int64_t half = n / 2;
    return pairwise(x, half) + pairwise(x + half, n - half);
}

void kernel(const float *x, float *y, int64_t B, int64_t M, int64_t N) { *y = pairwise(x, B * M * N); }
