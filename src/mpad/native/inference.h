/* What a prediction needs beside linear maps, for one kind of processor; see gemm.h. */

/* The gated update of equation 6: pre-activations g of both gates and c of the candidate, but for what was reset, and
 * states x -> H'. Gates are halved: sigma(2 g) = (1 + tanh g) / 2; `reset_w` is halved too. */
static void NAME(gate)(const float *x, float *g, float *c, const float *reset_w, long rows, long d, float *out) {
    for (long r = 0; r < rows; r++)
        for (long k = 0; k < d; k += V) {
            vec *reset = (vec *)(g + r * 2 * d + k), *z = (vec *)(g + r * 2 * d + d + k);
            *reset = (NAME(tanh)(*reset) + 1) * *(const vec *)(x + r * d + k);
            *z = NAME(tanh)(*z) * 0.5f + 0.5f;
        }
    NAME(map)(g, 2 * d, rows, d, reset_w, d, d, 0, 1, c, d, TANH);
    for (long r = 0; r < rows; r++)
        for (long k = 0; k < d; k += V) {
            vec state = *(const vec *)(x + r * d + k);
            *(vec *)(out + r * d + k) =
                state + *(const vec *)(g + r * 2 * d + d + k) * (*(const vec *)(c + r * d + k) - state);
        }
}

/* COMBINE. Of row i: its state and what that adds to the gates are rows own[i] of `states` and `gates`, what it was told
 * are rows told[i] of `told_gates` and `told_new`, or, where told[i] < 0, rows -1 - told[i] of the `rest`; without indices,
 * rows i. */
static void NAME(combine)(const struct combine *of, long rows, long d, float *out) {
    float x[STRIP * WIDEST] __attribute__((aligned(64))), g[2 * STRIP * WIDEST] __attribute__((aligned(64)));
    float c[STRIP * WIDEST] __attribute__((aligned(64)));
    for (long first = 0; first < rows; first += STRIP) {
        const long n = rows - first < STRIP ? rows - first : STRIP;
        for (long r = 0; r < n; r++) {
            const long row = first + r, i = of->own ? of->own[row] : row, j = of->told ? of->told[row] : row;
            const float *gates = of->gates + i * 2 * d;
            const float *told = j < 0 ? of->rest_gates + (-1 - j) * 2 * d : of->told_gates + j * 2 * d;
            if (of->own && of->told && row + AHEAD < rows) {
                const long next = of->own[row + AHEAD], k = of->told[row + AHEAD];
                for (long at = 0; at < d; at += 16) {
                    __builtin_prefetch(of->states + next * d + at);
                    __builtin_prefetch(of->gates + next * 2 * d + at);
                    __builtin_prefetch(of->gates + next * 2 * d + d + at);
                    if (k < 0) continue;
                    __builtin_prefetch(of->told_new + k * d + at);
                    __builtin_prefetch(of->told_gates + k * 2 * d + at);
                    __builtin_prefetch(of->told_gates + k * 2 * d + d + at);
                }
            }
            memcpy(x + r * d, of->states + i * d, d * sizeof(float));
            memcpy(c + r * d, j < 0 ? of->rest_new + (-1 - j) * d : of->told_new + j * d, d * sizeof(float));
            for (long k = 0; k < 2 * d; k += V)
                *(vec *)(g + r * 2 * d + k) = *(const vec *)(gates + k) + *(const vec *)(told + k);
        }
        NAME(gate)(x, g, c, of->u, n, d, out + first * d);
    }
}

static inline float NAME(dot)(const float *x, const float *y, long width) {
    vec sum = NAME(all)(0);
    for (long c = 0; c < width; c += V) sum += *(const vec *)(x + c) * *(const vec *)(y + c);
#if V == 16
    return _mm512_reduce_add_ps((__m512)sum);
#else
    float total = 0;
    for (int c = 0; c < V; c++) total += sum[c];
    return total;
#endif
}

static inline float NAME(score)(const float *aligned, const float *context, long width, int bounded) {
    float score = NAME(dot)(aligned, context, width);
    return bounded ? tanhf(score) : score;
}

/* Softmax of the scores of a group, and the weighted sum of its rows. */
static void NAME(pool)(const float *h, long h_row, const float *score, long rows, long width, float *alpha, float *to) {
    float top = -INFINITY;
    double total = 0;
    for (long r = 0; r < rows; r++) top = score[r] > top ? score[r] : top;
    for (long r = 0; r < rows; r++) total += alpha[r] = expf(score[r] - top);
    const float scale = rows ? (float)(1 / total) : 0;
    for (long r = 0; r < rows; r++) alpha[r] *= scale;
    for (long c = 0; c < width; c += V) {
        vec sum = NAME(all)(0);
        for (long r = 0; r < rows;) { /* block by block: long sums lose less */
            vec part = NAME(all)(0);
            for (long last = r + BLOCK < rows ? r + BLOCK : rows; r < last; r++)
                part += alpha[r] * *(const vec *)(h + r * h_row + c);
            sum += part;
        }
        *(vec *)(to + c) = sum;
    }
}

/* READOUT of equation 7: attention over rows start[g] .. start[g + 1] of each group, and their weighted sum. */
static void NAME(attend)(const float *h, const long *start, long groups, long width, const float *align,
                         const float *bias, const float *context, int bounded, float *alpha, float *pooled) {
    float aligned[STRIP * WIDEST] __attribute__((aligned(64)));
    const long rows = start[groups] - start[0];
    for (long first = 0; first < rows; first += STRIP) {
        const long n = rows - first < STRIP ? rows - first : STRIP;
        NAME(affine)(h + first * width, n, width, align, width, bias, 0, aligned, TANH);
        for (long r = 0; r < n; r++) alpha[first + r] = NAME(score)(aligned + r * width, context, width, bounded);
    }
    for (long g = 0; g < groups; g++) {
        const long begin = start[g] - start[0];
        float *weights = alpha + begin;
        NAME(pool)(h + begin * width, width, weights, start[g + 1] - start[g], width, weights, pooled + g * width);
    }
}

/* AGGREGATE's mean, with a bias and ReLU: what each word hears of its neighbours and its master, and each master of
 * its words. Rows: all words of the graphs, then a master for each where there are any. */
static void NAME(aggregate)(const struct graphs *of, const float *x, long width, const float *bias, float *y) {
    long begin = of->node_start[0], words = of->node_start[of->n] - begin;
    for (long g = 0; g < of->n; g++) {
        long first = of->node_start[g] - begin, last = of->node_start[g + 1] - begin;
        const float *master = x + (words + g) * width;
        long e = of->edge_start[g], end = of->edge_start[g + 1];
        for (long v = first; v < last; v++) {
            float *to = y + v * width, degree = of->master ? 1 : 0;
            long from = e;
            for (; e < end && of->target[e] == v - first; e++) degree += of->weight[e];
            float share = !of->mean ? 1 : degree > 0 ? 1 / degree : 0;
            for (long c = 0; c < width; c += V) {
                vec sum = of->master ? *(const vec *)(master + c) : NAME(all)(0);
                for (long k = from; k < e; k++)
                    sum += of->weight[k] * *(const vec *)(x + (first + of->source[k]) * width + c);
                *(vec *)(to + c) = NAME(activated)(sum * share + *(const vec *)(bias + c), RELU);
            }
        }
        if (!of->master) continue;
        float part = of->mean && last > first ? 1.0f / (last - first) : 1;
        for (long c = 0; c < width; c += V) {
            vec sum = NAME(all)(0);
            for (long v = first; v < last;) {
                vec some = NAME(all)(0);
                for (long stop = v + BLOCK < last ? v + BLOCK : last; v < stop; v++)
                    some += *(const vec *)(x + v * width + c);
                sum += some;
            }
            *(vec *)(y + (words + g) * width + c) = NAME(activated)(sum * part + *(const vec *)(bias + c), RELU);
        }
    }
}
