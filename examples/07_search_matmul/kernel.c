/* A product of matrices as it is written down first: one sum an element. The parameters reach what tiling, another order
   of the loops and several rows at once would give. */
#include <stdint.h>
#include <string.h>

#define ISA 0       // knob: 0 1
#define ORDER 0     // knob: 0 1 2
#define ROWS 1      // knob: 1 2 4 8
#define TILE_J 4096 // knob: 32 128 512 4096
#define TILE_K 4096 // knob: 16 64 256 4096
// require: ORDER == 2 || ROWS == 1

#pragma GCC optimize("O3")
#if ISA && defined(__x86_64__)
#pragma GCC target("avx2,prefer-vector-width=256")
#endif

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/* ROWS rows of c at once: each element of b that is loaded is used ROWS times. */
static void rows(const float *a, const float *b, float *c, int64_t n, int64_t K, int64_t N, int64_t j0, int64_t j1,
                 int64_t k0, int64_t k1)
{
    if (n == ROWS)
        for (int64_t k = k0; k < k1; k++)
            for (int64_t j = j0; j < j1; j++)
                for (int r = 0; r < ROWS; r++) c[r * N + j] += a[r * K + k] * b[k * N + j];
    else
        for (int64_t r = 0; r < n; r++)
            for (int64_t k = k0; k < k1; k++)
                for (int64_t j = j0; j < j1; j++) c[r * N + j] += a[r * K + k] * b[k * N + j];
}

void kernel(const float *restrict a, const float *restrict b, float *restrict c, int64_t M, int64_t K, int64_t N)
{
    memset(c, 0, (size_t)(M * N) * sizeof(float));
    for (int64_t j0 = 0; j0 < N; j0 += TILE_J)
        for (int64_t k0 = 0; k0 < K; k0 += TILE_K) {
            const int64_t j1 = lesser(j0 + TILE_J, N), k1 = lesser(k0 + TILE_K, K);
#if ORDER == 0
            for (int64_t i = 0; i < M; i++)
                for (int64_t j = j0; j < j1; j++) {
                    float s = c[i * N + j];
                    for (int64_t k = k0; k < k1; k++) s += a[i * K + k] * b[k * N + j];
                    c[i * N + j] = s;
                }
#elif ORDER == 1
            for (int64_t k = k0; k < k1; k++)
                for (int64_t i = 0; i < M; i++)
                    for (int64_t j = j0; j < j1; j++) c[i * N + j] += a[i * K + k] * b[k * N + j];
#else
            for (int64_t i = 0; i < M; i += ROWS)
                rows(a + i * K, b, c + i * N, lesser(ROWS, M - i), K, N, j0, j1, k0, k1);
#endif
        }
}
