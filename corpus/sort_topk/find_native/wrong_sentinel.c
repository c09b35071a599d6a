/* Linear search that puts the key at the row's end for the time of the search: the input is written, and put back. */
#include <stdint.h>

void kernel(int32_t *x, const int32_t *key, int64_t *place, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        int32_t *row = x + i * N;
        if (N == 0) {
            place[i] = 0;
            continue;
        }
        int32_t last = row[N - 1];
        row[N - 1] = key[i];
        int64_t j = 0;
        while (row[j] != key[i])
            j++;
        row[N - 1] = last;
        place[i] = j == N - 1 && last != key[i] ? N : j;
    }
}
