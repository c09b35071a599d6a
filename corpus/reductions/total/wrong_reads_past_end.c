/* The last group of eight is read whole and its surplus multiplied by 0: reads up to seven floats outside the input, and NaN there reaches the sum. */
#include <stdint.h>

void kernel(const float *x, float *y, int64_t B, int64_t M, int64_t N) {
    int64_t n = B * M * N, i = 0;
    double lane[8] = {0};
    for (; i < n; i += 8)
        for (int k = 0; k < 8; k++) lane[k] += x[i + k] * (i + k < n ? 1.0f : 0.0f);
    double s = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    *y = (float)s;
}
