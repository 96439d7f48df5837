/* What a prediction needs beside linear maps, for one kind of processor; see maps.h. */

/* COMBINE of equation 6. Of row i: its state and what that adds to the gates are rows own[i] of `states` and `gates`,
 * what it was told are rows told[i] of `told_gates` and `told_new`, or, where told[i] < 0, rows -1 - told[i] of the
 * `rest`; without indices, rows i. Gates are halved: sigma(2 g) = (1 + tanh g) / 2; `u` is halved too. */
static void NAME(combine)(const struct combine *of, long rows, long width, float *out) {
    float reset[STRIP * WIDEST] __attribute__((aligned(64)));
    float update[STRIP * WIDEST] __attribute__((aligned(64)));
    for (long first = 0; first < rows; first += STRIP) {
        long n = rows - first < STRIP ? rows - first : STRIP;
        for (long r = 0; r < n; r++) {
            long i = of->own ? of->own[first + r] : first + r, j = of->told ? of->told[first + r] : first + r;
            const float *state = of->states + i * width, *gates = of->gates + i * 2 * width;
            const float *told = j < 0 ? of->rest_gates + (-1 - j) * 2 * width : of->told_gates + j * 2 * width;
            const float *new = j < 0 ? of->rest_new + (-1 - j) * width : of->told_new + j * width;
            for (long c = 0; c < width; c += V) {
                vec g = NAME(tanh)(*(const vec *)(gates + c) + *(const vec *)(told + c)) + 1;
                vec z = NAME(tanh)(*(const vec *)(gates + width + c) + *(const vec *)(told + width + c)) + 1;
                *(vec *)(reset + r * width + c) = g * *(const vec *)(state + c);
                *(vec *)(update + r * width + c) = z * 0.5f;
                *(vec *)(out + (first + r) * width + c) = *(const vec *)(new + c);
            }
        }
        NAME(affine)(reset, n, width, of->u, width, 0, 1, out + first * width, TANH);
        for (long r = 0; r < n; r++) {
            long i = of->own ? of->own[first + r] : first + r;
            for (long c = 0; c < width; c += V) {
                vec *h = (vec *)(out + (first + r) * width + c), s = *(const vec *)(of->states + i * width + c);
                *h = s + *(const vec *)(update + r * width + c) * (*h - s);
            }
        }
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
static void NAME(hear)(const struct graphs *of, const float *x, long width, const float *bias, float *y) {
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
