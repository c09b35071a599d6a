/* A step of diffusion as it is written down first: columns outside, every element asks whether it lies on the border. */
#include <stdint.h>

#define ISA 0       // knob: 0 1
#define ORDER 0     // knob: 0 1
#define SPLIT 0     // knob: 0 1
#define TILE_I 4096 // knob: 8 32 128 4096
#define TILE_J 4096 // knob: 32 128 512 4096
#define UNROLL 1    // knob: 1 2 4
#pragma GCC optimize("O3")
#if ISA && defined(__x86_64__)
#pragma GCC target("avx2,prefer-vector-width=256")
#endif
enum { unroll = UNROLL };

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

static inline float any(const float *x, int64_t i, int64_t j, int64_t M, int64_t N)
{
    const float up = i > 0 ? x[(i - 1) * N + j] : 0, down = i + 1 < M ? x[(i + 1) * N + j] : 0;
    const float left = j > 0 ? x[i * N + j - 1] : 0, right = j + 1 < N ? x[i * N + j + 1] : 0;
    return 0.5f * x[i * N + j] + 0.125f * ((up + down) + (left + right));
}

static inline float inner(const float *x, int64_t at, int64_t N)
{
    return 0.5f * x[at] + 0.125f * ((x[at - N] + x[at + N]) + (x[at - 1] + x[at + 1]));
}

/* One row from j0 to j1; the inside of the grid apart from its border, if SPLIT. */
static void row(const float *restrict x, float *restrict y, int64_t i, int64_t j0, int64_t j1, int64_t M, int64_t N)
{
    int64_t j = j0;
#if SPLIT
    if (i > 0 && i + 1 < M) {
        for (; j < lesser(1, j1); j++) y[i * N + j] = any(x, i, j, M, N);
        const int64_t end = lesser(j1, N - 1);
#pragma GCC unroll unroll
        for (; j < end; j++) y[i * N + j] = inner(x, i * N + j, N);
    }
#endif
#pragma GCC unroll unroll
    for (; j < j1; j++) y[i * N + j] = any(x, i, j, M, N);
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t i0 = 0; i0 < M; i0 += TILE_I)
        for (int64_t j0 = 0; j0 < N; j0 += TILE_J) {
            const int64_t i1 = lesser(i0 + TILE_I, M), j1 = lesser(j0 + TILE_J, N);
#if ORDER == 0
            for (int64_t j = j0; j < j1; j++)
                for (int64_t i = i0; i < i1; i++) row(x, y, i, j, j + 1, M, N);
#else
            for (int64_t i = i0; i < i1; i++) row(x, y, i, j0, j1, M, N);
#endif
        }
}
