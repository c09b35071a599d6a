/* Sum of squares of each row as it is written down first: one accumulator, one element at a time. The parameters reach
   several accumulators, wider vectors and narrower sums. */
#include <stdint.h>

#define LANES 1   // knob: 1 2 4 8 16 32
#define ISA 0     // knob: 0 1
#define FAST 0    // knob: 0 1
#define HALVES 1  // knob: 1 2 4
// require: LANES % HALVES == 0
#if FAST
#pragma GCC optimize("O3")
#endif
#if ISA && defined(__x86_64__)
#pragma GCC target("avx2,fma")
#endif

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const float *row = x + i * N;
        double total = 0;
        int64_t j = 0;
#if LANES > 1
        float s[LANES] = {0};
        for (; j + LANES <= N; j += LANES)
            for (int h = 0; h < HALVES; h++)
                for (int l = 0; l < LANES / HALVES; l++) {
                    const float v = row[j + h * (LANES / HALVES) + l];
                    s[h * (LANES / HALVES) + l] += v * v;
                }
        for (int l = 0; l < LANES; l++) total += s[l];
#endif
        for (; j < N; j++) total += (double)row[j] * row[j];
        y[i] = (float)total;
    }
}
