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

/* READOUT of equation 7: attention over rows start[g] .. start[g + 1] of each group, and their weighted sum. */
static void NAME(attend)(const float *h, const long *start, long groups, long width, const float *align,
                         const float *bias, const float *context, int bounded, float *alpha, float *pooled,
                         long pooled_row) {
    float aligned[STRIP * WIDEST] __attribute__((aligned(64)));
    long rows = start[groups] - start[0];
    for (long first = 0; first < rows; first += STRIP) {
        long n = rows - first < STRIP ? rows - first : STRIP;
        NAME(affine)(h + first * width, n, width, align, width, bias, 0, aligned, TANH);
        for (long r = 0; r < n; r++) {
            vec sum = NAME(all)(0);
            for (long c = 0; c < width; c += V) sum += *(const vec *)(aligned + r * width + c) * *(const vec *)(context + c);
            float score = 0;
            for (int c = 0; c < V; c++) score += sum[c];
            alpha[first + r] = bounded ? tanhf(score) : score;
        }
    }
    for (long g = 0; g < groups; g++) {
        long begin = start[g] - start[0], end = start[g + 1] - start[0];
        float top = -INFINITY;
        double total = 0;
        for (long r = begin; r < end; r++) top = alpha[r] > top ? alpha[r] : top;
        for (long r = begin; r < end; r++) total += alpha[r] = expf(alpha[r] - top);
        float *to = pooled + g * pooled_row, scale = begin < end ? (float)(1 / total) : 0;
        for (long c = 0; c < width; c += V) {
            vec sum = NAME(all)(0);
            for (long r = begin; r < end;) { /* block by block: long sums lose less */
                vec part = NAME(all)(0);
                for (long last = r + BLOCK < end ? r + BLOCK : end; r < last; r++)
                    part += alpha[r] * *(const vec *)(h + r * width + c);
                sum += part;
            }
            *(vec *)(to + c) = sum * scale;
        }
        for (long r = begin; r < end; r++) alpha[r] *= scale;
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
