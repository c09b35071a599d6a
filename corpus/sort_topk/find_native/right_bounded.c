/* Linear search with two tests a step: is there an element left, and is it the key? */
#include <stdint.h>

void kernel(const int32_t *x, const int32_t *key, int64_t *place, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const int32_t *row = x + i * N;
        int64_t j = 0;
        while (j < N && row[j] != key[i])
            j++;
        place[i] = j;
    }
}
