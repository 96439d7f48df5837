/* A round of messages (mpad/ops/message_passing.py), both ways, for one kind of processor; see gemm.h. */

/* Rows first .. last - 1: M = X W2 + b2 [ReLU], or X itself; the gates R and Z, the candidate C, and H'. */
static void NAME(update)(const struct update *of, long first, long last) {
    const long d = of->width, panels = d % PANEL == 0;
    const float *w = of->w_t, *u = w + 3 * d * d, *v = u + 2 * d * d, *w2 = v + d * d;
    float reset[STRIP * WIDEST] __attribute__((aligned(64)));
    for (long at = first; at < last; at += STRIP) {
        const long n = last - at < STRIP ? last - at : STRIP;
        const float *h = of->h + at * of->h_row, *m = of->x + at * of->x_row;
        float *rzc = of->rzc + at * 3 * d, *out = of->out + at * d;
        long m_row = of->x_row;
        if (of->w2) {
            NAME(map)(m, m_row, n, d, w2, panels ? 0 : d, d, of->b2, 0, of->message + at * d, d, of->relu ? RELU : PLAIN);
            m = of->message + at * d, m_row = d;
        }
        NAME(map)(m, m_row, n, d, w, panels ? 0 : 3 * d, 3 * d, of->bias, 0, rzc, 3 * d, PLAIN);
        NAME(map)(h, of->h_row, n, d, u, panels ? 0 : 2 * d, 2 * d, 0, 1, rzc, 3 * d, SIGMOID);
        for (long r = 0; r < n; r++)
            for (long c = 0; c < d; c += V)
                *(vec *)(reset + r * d + c) = *(const vec *)(rzc + r * 3 * d + c) * *(const vec *)(h + r * of->h_row + c);
        NAME(map)(reset, d, n, d, v, panels ? 0 : d, d, 0, 1, rzc + 2 * d, 3 * d, TANH);
        for (long r = 0; r < n; r++)
            for (long c = 0; c < d; c += V) {
                vec state = *(const vec *)(h + r * of->h_row + c), z = *(const vec *)(rzc + r * 3 * d + d + c);
                *(vec *)(out + r * d + c) = state + z * (*(const vec *)(rzc + r * 3 * d + 2 * d + c) - state);
            }
    }
}

/* Its derivative, of rows first .. last - 1: gradients of H and of X (where X = ReLU(. + b), of what stands in the
 * brackets); added to `grads`, those of W, U, V, W2 and of their biases, and of b. Gradients of what lies between never
 * leave the cache: of a block of rows they stand behind `grads`, until the weights have had their share of them. */
static void NAME(update_back)(const struct update_back *of, long first, long last, float *grads) {
    const long d = of->width;
    float *d_w = grads, *d_u = d_w + 3 * d * d, *d_v = d_u + 2 * d * d, *d_w2 = d_v + d * d;
    float *d_bias = d_w2 + d * d, *d_b2 = d_bias + 3 * d, *d_before = d_b2 + d;
    float *d_rzc = d_before + d, *d_m = d_rzc + 3 * d * BLOCK, *reset_h = d_m + d * BLOCK, *d_reset = reset_h + d * BLOCK;
    for (float *at = grads; at < d_rzc; at += V) *(vec *)at = NAME(all)(0);
    for (long start = first; start < last; start += BLOCK) {
        const long rows = last - start < BLOCK ? last - start : BLOCK;
        for (long at = 0; at < rows; at += STRIP) {
            const long n = rows - at < STRIP ? rows - at : STRIP;
            const float *h = of->h + (start + at) * of->h_row, *g = of->g + (start + at) * of->g_row;
            const float *rzc = of->rzc + (start + at) * 3 * d;
            float *d_gates = d_rzc + at * 3 * d, *d_h = of->d_h + (start + at) * d, *d_x = of->d_x + (start + at) * d;
            for (long r = 0; r < n; r++)
                for (long c = 0; c < d; c += V) {
                    vec given = *(const vec *)(g + r * of->g_row + c), state = *(const vec *)(h + r * of->h_row + c);
                    vec z = *(const vec *)(rzc + r * 3 * d + d + c), new = *(const vec *)(rzc + r * 3 * d + 2 * d + c);
                    *(vec *)(d_gates + r * 3 * d + d + c) = given * (new - state) * z * (1 - z);
                    *(vec *)(d_gates + r * 3 * d + 2 * d + c) = given * z * (1 - new * new);
                    *(vec *)(d_h + r * d + c) = given * (1 - z);
                }
            NAME(map)(d_gates + 2 * d, 3 * d, n, d, of->v, d, d, 0, 0, d_reset, d, PLAIN);
            for (long r = 0; r < n; r++)
                for (long c = 0; c < d; c += V) {
                    vec reset = *(const vec *)(rzc + r * 3 * d + c), back = *(const vec *)(d_reset + r * d + c);
                    vec state = *(const vec *)(h + r * of->h_row + c);
                    *(vec *)(d_gates + r * 3 * d + c) = back * state * reset * (1 - reset);
                    *(vec *)(d_h + r * d + c) += back * reset;
                    *(vec *)(reset_h + (at + r) * d + c) = reset * state;
                }
            NAME(map)(d_gates, 3 * d, n, 2 * d, of->u, d, d, 0, 1, d_h, d, PLAIN);
            if (!of->w2) {
                NAME(map)(d_gates, 3 * d, n, 3 * d, of->w, d, d, 0, 0, d_x, d, PLAIN);
                continue;
            }
            NAME(map)(d_gates, 3 * d, n, 3 * d, of->w, d, d, 0, 0, d_m + at * d, d, PLAIN);
            if (of->relu) NAME(silence)(d_m + at * d, of->message + (start + at) * d, n * d);
            NAME(map)(d_m + at * d, d, n, d, of->w2, d, d, 0, 0, d_x, d, PLAIN);
            if (!of->before) continue;
            NAME(silence)(d_x, of->x + (start + at) * d, n * d);
            NAME(add_columns)(d_x, d, n, d, d_before);
        }
        const float *h = of->h + start * of->h_row, *x = of->x + start * d, *m = of->w2 ? of->message + start * d : x;
        NAME(add_outer)(d_rzc, 3 * d, m, d, rows, 3 * d, d, d_w);
        NAME(add_outer)(d_rzc, 3 * d, h, of->h_row, rows, 2 * d, d, d_u);
        NAME(add_outer)(d_rzc + 2 * d, 3 * d, reset_h, d, rows, d, d, d_v);
        NAME(add_columns)(d_rzc, 3 * d, rows, 3 * d, d_bias);
        if (!of->w2) continue;
        NAME(add_outer)(d_m, d, x, d, rows, d, d, d_w2);
        NAME(add_columns)(d_m, d, rows, d, d_b2);
    }
}

/* Graphs first .. last - 1, whose words begin at row `v` and whose edges at `e`: what words and masters receive, or, of
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

/* READOUT (mpad/ops/readout.py): attention over the rows of each of groups first .. last - 1, which begin at `row`. */
static void NAME(attention)(const struct attention *of, long first, long last, long row) {
    const long d = of->width, panels = d % PANEL == 0;
    long end = row;
    for (long g = first; g < last; g++) end += of->size[g];
    for (long at = row; at < end; at += STRIP) {
        const long n = end - at < STRIP ? end - at : STRIP;
        NAME(map)(of->h + at * of->h_row, of->h_row, n, d, of->w_t, panels ? 0 : d, d, of->b, 0, of->y + at * d, d, TANH);
        for (long r = at; r < at + n; r++) of->score[r] = NAME(score)(of->y + r * d, of->v, d, of->bounded);
    }
    for (long g = first; g < last; row += of->size[g++])
        NAME(pool)(of->h + row * of->h_row, of->h_row, of->score + row, of->size[g], d, of->alpha + row, of->pooled + g * d);
}

/* What a block of rows, first .. last - 1, is given back through tanh(H A + b), and what it adds to A and b. */
static void NAME(attention_weights)(const struct attention_back *of, long first, long last, const float *d_y, float *d_a,
                                    float *d_b) {
    const long d = of->width, n = last - first;
    NAME(map)(d_y, d, n, d, of->a, d, d, 0, 1, of->d_h + first * d, d, PLAIN);
    NAME(add_outer)(d_y, d, of->h + first * of->h_row, of->h_row, n, d, d, d_a);
    NAME(add_columns)(d_y, d, n, d, d_b);
}

/* Its derivative: gradients of the rows; added to `grads`, those of A, of its bias and of the context. What tanh was
 * taken of has its gradients, of a block of rows, behind `grads`. */
static void NAME(attention_back)(const struct attention_back *of, long first, long last, long row, float *grads) {
    const long d = of->width;
    float *d_a = grads, *d_b = d_a + d * d, *d_v = d_b + d, *d_y = d_v + d;
    for (float *at = grads; at < d_y; at += V) *(vec *)at = NAME(all)(0);
    long start = row; /* of the block */
    for (long g = first; g < last; g++) {
        const long end = row + of->size[g];
        const float *given = of->g + g * of->g_row;
        float mean = 0;
        for (long r = row; r < end; r++) mean += of->alpha[r] * NAME(dot)(given, of->h + r * of->h_row, d);
        for (; row < end; row++) {
            if (row - start == BLOCK) NAME(attention_weights)(of, start, row, d_y, d_a, d_b), start = row;
            float score = of->score[row], *before = d_y + (row - start) * d;
            float back = of->alpha[row] * (NAME(dot)(given, of->h + row * of->h_row, d) - mean);
            if (of->bounded) back *= 1 - score * score;
            for (long c = 0; c < d; c += V) {
                vec y = *(const vec *)(of->y + row * d + c);
                *(vec *)(d_v + c) += back * y;
                *(vec *)(before + c) = back * *(const vec *)(of->v + c) * (1 - y * y);
                *(vec *)(of->d_h + row * d + c) = of->alpha[row] * *(const vec *)(given + c);
            }
        }
    }
    NAME(attention_weights)(of, start, row, d_y, d_a, d_b);
}

/* y = x w^T + b [ReLU] , rows first .. last - 1. */
static void NAME(linear)(const struct linear *of, long first, long last) {
    const long row = of->n_in % PANEL ? of->n_out : 0; /* of the w_t weights */
    for (long at = first; at < last; at += BLOCK)
        NAME(map)(of->x + at * of->x_row, of->x_row, last - at < BLOCK ? last - at : BLOCK, of->n_in, of->w_t, row,
                  of->n_out, of->b, 0, of->y + at * of->n_out, of->n_out, of->relu ? RELU : PLAIN);
}

/* Its derivative: gradients of x; added to `grads`, those of w and b. */
static void NAME(linear_back)(const struct linear_back *of, long first, long last, float *grads) {
    float *d_b = grads + of->n_out * of->n_in, *masked = d_b + of->n_out;
    for (float *at = grads; at < d_b + of->n_out; at += V) *(vec *)at = NAME(all)(0);
    for (long at = first; at < last; at += BLOCK) {
        const long n = last - at < BLOCK ? last - at : BLOCK;
        const float *g = of->g + at * of->g_row;
        long g_row = of->g_row;
        if (of->y) {
            copy_rows(masked, of->n_out, g, g_row, n, of->n_out);
            NAME(silence)(masked, of->y + at * of->n_out, n * of->n_out);
            g = masked, g_row = of->n_out;
        }
        if (of->d_x)
            NAME(map)(g, g_row, n, of->n_out, of->w, of->n_in, of->n_in, 0, of->onto, of->d_x + at * of->n_in, of->n_in,
                      PLAIN);
        NAME(add_outer)(g, g_row, of->x + at * of->x_row, of->x_row, n, of->n_out, of->n_in, grads);
        NAME(add_columns)(g, g_row, n, of->n_out, d_b);
    }
}
