/* A round of messages (nn/neighbours.py, nn/gate.py), both ways, for one kind of processor; see maps.h. */

/* Rows first .. last - 1: M = X W2 + b2 [ReLU], the gates R and Z, the candidate C, R * H, and H'. */
static void NAME(update)(const struct update *of, long first, long last) {
    const long d = of->width, packed = d % PANEL == 0;
    for (long at = first; at < last; at += STRIP) {
        const long n = last - at < STRIP ? last - at : STRIP;
        const float *h = of->h + at * of->h_row, *m = of->x + at * of->x_row;
        float *rzc = of->rzc + at * 3 * d, *reset = of->reset_h + at * d, *out = of->out + at * d;
        long m_row = of->x_row;
        if (of->w2) {
            NAME(map)(m, m_row, n, d, of->w2, packed ? 0 : d, d, of->b2, 0, of->message + at * d, d, of->relu ? RELU : PLAIN);
            m = of->message + at * d, m_row = d;
        }
        NAME(map)(m, m_row, n, d, of->w, packed ? 0 : 3 * d, 3 * d, of->bias, 0, rzc, 3 * d, PLAIN);
        NAME(map)(h, of->h_row, n, d, of->u, packed ? 0 : 2 * d, 2 * d, 0, 1, rzc, 3 * d, SIGMOID);
        for (long r = 0; r < n; r++)
            for (long c = 0; c < d; c += V)
                *(vec *)(reset + r * d + c) = *(const vec *)(rzc + r * 3 * d + c) * *(const vec *)(h + r * of->h_row + c);
        NAME(map)(reset, d, n, d, of->v, packed ? 0 : d, d, 0, 1, rzc + 2 * d, 3 * d, TANH);
        for (long r = 0; r < n; r++)
            for (long c = 0; c < d; c += V) {
                vec state = *(const vec *)(h + r * of->h_row + c), z = *(const vec *)(rzc + r * 3 * d + d + c);
                *(vec *)(out + r * d + c) = state + z * (*(const vec *)(rzc + r * 3 * d + 2 * d + c) - state);
            }
    }
}

/* Rows first .. last - 1: gradients of the pre-activations of R, Z, C, of H, of M before its ReLU, and of X; into
 * `sums`, where X = ReLU(. + b), that of b. */
static void NAME(update_back)(const struct update_back *of, long first, long last, float *sums) {
    const long d = of->width;
    float d_reset[STRIP * WIDEST] __attribute__((aligned(64)));
    for (long at = first; at < last; at += STRIP) {
        const long n = last - at < STRIP ? last - at : STRIP;
        const float *h = of->h + at * of->h_row, *g = of->g + at * of->g_row, *rzc = of->rzc + at * 3 * d;
        float *d_rzc = of->d_rzc + at * 3 * d, *d_h = of->d_h + at * d, *d_m = of->d_m + at * d;
        for (long r = 0; r < n; r++)
            for (long c = 0; c < d; c += V) {
                vec given = *(const vec *)(g + r * of->g_row + c), state = *(const vec *)(h + r * of->h_row + c);
                vec z = *(const vec *)(rzc + r * 3 * d + d + c), new = *(const vec *)(rzc + r * 3 * d + 2 * d + c);
                *(vec *)(d_rzc + r * 3 * d + d + c) = given * (new - state) * z * (1 - z);
                *(vec *)(d_rzc + r * 3 * d + 2 * d + c) = given * z * (1 - new * new);
                *(vec *)(d_h + r * d + c) = given * (1 - z);
            }
        NAME(map)(d_rzc + 2 * d, 3 * d, n, d, of->v, d, d, 0, 0, d_reset, d, PLAIN);
        for (long r = 0; r < n; r++)
            for (long c = 0; c < d; c += V) {
                vec reset = *(const vec *)(rzc + r * 3 * d + c), back = *(const vec *)(d_reset + r * d + c);
                *(vec *)(d_rzc + r * 3 * d + c) =
                    back * *(const vec *)(h + r * of->h_row + c) * reset * (1 - reset);
                *(vec *)(d_h + r * d + c) += back * reset;
            }
        NAME(map)(d_rzc, 3 * d, n, 2 * d, of->u, d, d, 0, 1, d_h, d, PLAIN);
        NAME(map)(d_rzc, 3 * d, n, 3 * d, of->w, d, d, 0, 0, d_m, d, PLAIN);
        if (!of->w2) continue;
        if (of->relu) NAME(silence)(d_m, of->message + at * d, n * d);
        NAME(map)(d_m, d, n, d, of->w2, d, d, 0, 0, of->d_x + at * d, d, PLAIN);
        if (!of->before) continue;
        NAME(silence)(of->d_x + at * d, of->x + at * d, n * d);
        NAME(add_columns)(of->d_x + at * d, d, n, d, sums);
    }
}

/* Graphs first .. last - 1, whose words begin at row `v` and whose edges at `e`: what words and masters hear, or, of
 * gradients, what they are given back. Edges are sorted by target and stay within their graph. */
static void NAME(mean)(const struct mean *of, long first, long last, long v, long e) {
    const long d = of->width;
    for (long g = first; g < last; g++) {
        const long end = v + of->size[g];
        const float *master = of->master ? of->x + (of->words + g) * of->x_row : 0;
        const long begin = v, first_edge = e;
        for (; v < end; v++) {
            const long from = e;
            while (e < of->edges && of->target[e] == v) e++;
            const float share = of->back ? of->part[g] : of->share[v];
            for (long c = 0; c < d; c += V) {
                vec sum = NAME(all)(0);
                if (master) sum = *(const vec *)(master + c) * share;
                if (!of->back)
                    for (long k = from; k < e; k++)
                        sum += of->weight[k] * *(const vec *)(of->x + of->source[k] * of->x_row + c);
                if (of->bias) sum = NAME(activated)(sum + *(const vec *)(of->bias + c), RELU);
                *(vec *)(of->y + v * d + c) = sum;
            }
        }
        if (of->back) /* every row of y has begun */
            for (long k = first_edge; k < e; k++)
                for (long c = 0; c < d; c += V)
                    *(vec *)(of->y + of->source[k] * d + c) +=
                        of->weight[k] * *(const vec *)(of->x + of->target[k] * of->x_row + c);
        if (!of->master) continue;
        for (long c = 0; c < d; c += V) {
            vec sum = NAME(all)(0);
            for (long r = begin; r < end;) {
                vec some = NAME(all)(0);
                for (long stop = r + BLOCK < end ? r + BLOCK : end; r < stop; r++) {
                    float times = of->back ? of->share[r] : 1;
                    some += times * *(const vec *)(of->x + r * of->x_row + c);
                }
                sum += some;
            }
            if (!of->back) sum *= of->part[g];
            if (of->bias) sum = NAME(activated)(sum + *(const vec *)(of->bias + c), RELU);
            *(vec *)(of->y + (of->words + g) * d + c) = sum;
        }
    }
}

/* READOUT (nn/readout.py): attention over the rows of each of groups first .. last - 1, which begin at `row`. */
static void NAME(attention)(const struct attention *of, long first, long last, long row) {
    const long d = of->width, packed = d % PANEL == 0;
    long end = row;
    for (long g = first; g < last; g++) end += of->size[g];
    for (long at = row; at < end; at += STRIP) {
        const long n = end - at < STRIP ? end - at : STRIP;
        NAME(map)(of->h + at * of->h_row, of->h_row, n, d, of->a, packed ? 0 : d, d, of->b, 0, of->y + at * d, d, TANH);
        for (long r = at; r < at + n; r++) of->score[r] = NAME(score)(of->y + r * d, of->v, d, of->bounded);
    }
    for (long g = first; g < last; row += of->size[g++])
        NAME(pool)(of->h + row * of->h_row, of->h_row, of->score + row, of->size[g], d, of->alpha + row, of->pooled + g * d);
}

/* Its derivative: gradients of the rows, of what tanh was taken of, and, into d_v, of the context. */
static void NAME(attention_back)(const struct attention_back *of, long first, long last, long row, float *d_v) {
    const long d = of->width;
    for (long g = first; g < last; g++) {
        const long begin = row, end = row + of->size[g];
        const float *given = of->g + g * of->g_row;
        float mean = 0;
        for (long r = begin; r < end; r++) mean += of->alpha[r] * NAME(dot)(given, of->h + r * of->h_row, d);
        for (; row < end; row++) {
            float score = of->score[row];
            float back = of->alpha[row] * (NAME(dot)(given, of->h + row * of->h_row, d) - mean);
            if (of->bounded) back *= 1 - score * score;
            for (long c = 0; c < d; c += V) {
                vec y = *(const vec *)(of->y + row * d + c);
                *(vec *)(d_v + c) += back * y;
                *(vec *)(of->d_y + row * d + c) = back * *(const vec *)(of->v + c) * (1 - y * y);
                *(vec *)(of->d_h + row * d + c) = of->alpha[row] * *(const vec *)(given + c);
            }
        }
        NAME(map)(of->d_y + begin * d, d, end - begin, d, of->a, d, d, 0, 1, of->d_h + begin * d, d, PLAIN);
    }
}
