/* What one core can do at most: read, copy, fused multiply-add. Wide vectors, many independent chains. */
#include <stdint.h>
#include <string.h>
#include <time.h>

typedef uint64_t words __attribute__((vector_size(64)));
typedef float floats __attribute__((vector_size(64)));
typedef double doubles __attribute__((vector_size(64)));

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Best seconds of `rounds` passes over n bytes (a multiple of 512), each pass repeated `again` times. */
double best_read(const char *from, int64_t n, int64_t again, int64_t rounds, uint64_t *sink)
{
    double best = 1e30;
    words a = {0}, b = a, c = a, d = a, e = a, f = a, g = a, h = a;
    for (int64_t r = 0; r < rounds; r++) {
        double began = now();
        for (int64_t k = 0; k < again; k++) {
            const words *p = (const words *)from;
            for (int64_t i = 0; i < n / 64; i += 8, p += 8) {
                a |= p[0], b |= p[1], c |= p[2], d |= p[3], e |= p[4], f |= p[5], g |= p[6], h |= p[7];
            }
            __asm__ volatile("" ::: "memory");
        }
        double took = (now() - began) / again;
        best = took < best ? took : best;
    }
    a |= b | c | d | e | f | g | h;
    for (int i = 0; i < 8; i++)
        *sink |= a[i];
    return best;
}

double best_copy(char *to, const char *from, int64_t n, int64_t again, int64_t rounds)
{
    double best = 1e30;
    for (int64_t r = 0; r < rounds; r++) {
        double began = now();
        for (int64_t k = 0; k < again; k++) {
            memcpy(to, from, n);
            __asm__ volatile("" ::: "memory");
        }
        double took = (now() - began) / again;
        best = took < best ? took : best;
    }
    return best;
}

#define FMA(NAME, VECTOR)                                                                                              \
    double NAME(int64_t steps, int64_t rounds, double *sink)                                                           \
    {                                                                                                                  \
        double best = 1e30;                                                                                            \
        VECTOR x[12], m, s;                                                                                            \
        for (unsigned i = 0; i < sizeof(VECTOR) / sizeof(m[0]); i++) {                                                 \
            m[i] = 1.0f - 1e-6f, s[i] = 1e-6f;                                                                         \
            for (int j = 0; j < 12; j++)                                                                               \
                x[j][i] = j;                                                                                           \
        }                                                                                                              \
        for (int64_t r = 0; r < rounds; r++) {                                                                         \
            double began = now();                                                                                      \
            for (int64_t k = 0; k < steps; k++)                                                                        \
                for (int j = 0; j < 12; j++)                                                                           \
                    x[j] = x[j] * m + s;                                                                               \
            double took = (now() - began) / steps;                                                                     \
            best = took < best ? took : best;                                                                          \
        }                                                                                                              \
        for (int j = 0; j < 12; j++)                                                                                   \
            *sink += x[j][0];                                                                                          \
        return best;                                                                                                   \
    }

FMA(best_fma_float, floats)
FMA(best_fma_double, doubles)
