/* Blocks of 32 in all three loops, edges by min(); the output is cleared first. */
#include <stdint.h>
#include <string.h>

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

void kernel(const float *a, const float *b, float *c, int64_t M, int64_t K, int64_t N) {
    memset(c, 0, (size_t)(M * N) * sizeof(float));
    for (int64_t i0 = 0; i0 < M; i0 += 32)
        for (int64_t k0 = 0; k0 < K; k0 += 32)
            for (int64_t j0 = 0; j0 < N; j0 += 32)
                for (int64_t i = i0; i < lesser(i0 + 32, M); i++)
                    for (int64_t k = k0; k < lesser(k0 + 32, K); k++) {
                        float x = a[i * K + k];
                        for (int64_t j = j0; j < lesser(j0 + 32, N); j++) c[i * N + j] += x * b[k * N + j];
                    }
}
