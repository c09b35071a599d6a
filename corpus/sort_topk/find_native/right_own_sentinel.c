/* Linear search with a sentinel in a buffer of its own: the row is copied in pieces, and the key put behind each. */
#include <stdint.h>
#include <string.h>

enum { PIECE = 64 };

void kernel(const int32_t *x, const int32_t *key, int64_t *place, int64_t M, int64_t N)
{
    int32_t piece[PIECE + 1];
    for (int64_t i = 0; i < M; i++) {
        int64_t at = N;
        for (int64_t start = 0; start < N; start += PIECE) {
            int64_t n = N - start < PIECE ? N - start : PIECE, j = 0;
            memcpy(piece, x + i * N + start, (size_t)n * sizeof *piece);
            piece[n] = key[i];
            while (piece[j] != key[i])
                j++;
            if (j < n) {
                at = start + j;
                break;
            }
        }
        place[i] = at;
    }
}
