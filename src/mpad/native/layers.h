/* The layers of the network (mpad/model.py), forwards and backwards, for one kind of processor; see gemm.h. Inference runs
 * the same forwards. */

/* COMBINE, equations 5 and 6, of at most STRIP rows: `rzc` holds the pre-activations of R, Z and C, of C without what R
 * lets through, and becomes R, Z and C. `out` may be `h`. */
static inline __attribute__((always_inline)) void NAME(gate)(const float *h, long h_row, float *rzc, const float *v, long v_row,
                                                             long rows, long d, float *out) {
    float reset[STRIP * WIDEST] __attribute__((aligned(64)));
    for (long row = 0; row < rows; row++)
        for (long c = 0; c < d; c += V) {
            vec *r = (vec *)(rzc + row * 3 * d + c), *z = (vec *)(rzc + row * 3 * d + d + c);
            *r = NAME(tanh)(*r * 0.5f) * 0.5f + 0.5f; /* the logistic function */
            *z = NAME(tanh)(*z * 0.5f) * 0.5f + 0.5f;
            *(vec *)(reset + row * d + c) = *r * *(const vec *)(h + row * h_row + c);
        }
    NAME(map)(reset, d, rows, d, v, v_row, d, 0, 1, rzc + 2 * d, 3 * d, TANH);
    for (long row = 0; row < rows; row++)
        for (long c = 0; c < d; c += V) {
            vec state = *(const vec *)(h + row * h_row + c), z = *(const vec *)(rzc + row * 3 * d + d + c);
            *(vec *)(out + row * d + c) = state + z * (*(const vec *)(rzc + row * 3 * d + 2 * d + c) - state);
        }
}

/* Rows first .. last - 1: M = X W2 + b2 [ReLU], or X itself without b2; then H' of M and H. */
static void NAME(update)(const struct update *args, long first, long last) {
    const long d = args->width, panels = d % PANEL == 0;
    const float *w = args->w_t, *u = w + 3 * d * d, *v = u + 2 * d * d, *w2 = v + d * d;
    float own_message[STRIP * WIDEST] __attribute__((aligned(64))), own_rzc[3 * STRIP * WIDEST] __attribute__((aligned(64)));
    for (long at = first; at < last; at += STRIP) {
        const long n = last - at < STRIP ? last - at : STRIP;
        const float *h = args->h + at * args->h_row, *m = args->x + at * args->x_row;
        float *rzc = args->rzc ? args->rzc + at * 3 * d : own_rzc;
        long m_row = args->x_row;
        if (args->b2) {
            float *message = args->message ? args->message + at * d : own_message;
            NAME(map)(m, m_row, n, d, w2, panels ? 0 : d, d, args->b2, 0, message, d, args->relu ? RELU : PLAIN);
            m = message, m_row = d;
        }
        NAME(map)(m, m_row, n, d, w, panels ? 0 : 3 * d, 3 * d, args->bias, 0, rzc, 3 * d, PLAIN);
        NAME(map)(h, args->h_row, n, d, u, panels ? 0 : 2 * d, 2 * d, 0, 1, rzc, 3 * d, PLAIN);
        NAME(gate)(h, args->h_row, rzc, v, panels ? 0 : d, n, d, args->out + at * d);
    }
}

/* Backward of `update` for rows first .. last - 1: gradients of H and of X (if `before`, of the input of X = ReLU(. + b)).
 * `grads` becomes the gradients of W, U, V, W2, their biases and b. Gradients between the layers stay in the cache: those of
 * a block of rows are stored after `grads`. */
static void NAME(update_back)(const struct update_back *args, long first, long last, float *grads) {
    const long d = args->width;
    float *d_w = grads, *d_u = d_w + 3 * d * d, *d_v = d_u + 2 * d * d, *d_w2 = d_v + d * d;
    float *d_bias = d_w2 + d * d, *d_b2 = d_bias + 3 * d, *d_before = d_b2 + d;
    float *d_rzc = d_before + d, *d_m = d_rzc + 3 * d * BLOCK, *reset_h = d_m + d * BLOCK, *d_reset = reset_h + d * BLOCK;
    for (float *at = grads; at < d_rzc; at += V) *(vec *)at = NAME(broadcast)(0);
    for (long start = first; start < last; start += BLOCK) {
        const long rows = last - start < BLOCK ? last - start : BLOCK;
        for (long at = 0; at < rows; at += STRIP) {
            const long n = rows - at < STRIP ? rows - at : STRIP;
            const float *h = args->h + (start + at) * args->h_row, *g = args->g + (start + at) * args->g_row;
            const float *rzc = args->rzc + (start + at) * 3 * d;
            float *d_gates = d_rzc + at * 3 * d, *d_h = args->d_h + (start + at) * d, *d_x = args->d_x + (start + at) * d;
            for (long r = 0; r < n; r++)
                for (long c = 0; c < d; c += V) {
                    vec upstream = *(const vec *)(g + r * args->g_row + c), state = *(const vec *)(h + r * args->h_row + c);
                    vec z = *(const vec *)(rzc + r * 3 * d + d + c), new = *(const vec *)(rzc + r * 3 * d + 2 * d + c);
                    *(vec *)(d_gates + r * 3 * d + d + c) = upstream * (new - state) * z * (1 - z);
                    *(vec *)(d_gates + r * 3 * d + 2 * d + c) = upstream * z * (1 - new * new);
                    *(vec *)(d_h + r * d + c) = upstream * (1 - z);
                }
            NAME(map)(d_gates + 2 * d, 3 * d, n, d, args->v, d, d, 0, 0, d_reset, d, PLAIN);
            for (long r = 0; r < n; r++)
                for (long c = 0; c < d; c += V) {
                    vec reset = *(const vec *)(rzc + r * 3 * d + c), back = *(const vec *)(d_reset + r * d + c);
                    vec state = *(const vec *)(h + r * args->h_row + c);
                    *(vec *)(d_gates + r * 3 * d + c) = back * state * reset * (1 - reset);
                    *(vec *)(d_h + r * d + c) += back * reset;
                    *(vec *)(reset_h + (at + r) * d + c) = reset * state;
                }
            NAME(map)(d_gates, 3 * d, n, 2 * d, args->u, d, d, 0, 1, d_h, d, PLAIN);
            if (!args->w2) {
                NAME(map)(d_gates, 3 * d, n, 3 * d, args->w, d, d, 0, 0, d_x, d, PLAIN);
                continue;
            }
            NAME(map)(d_gates, 3 * d, n, 3 * d, args->w, d, d, 0, 0, d_m + at * d, d, PLAIN);
            if (args->relu) NAME(relu_backward)(d_m + at * d, args->message + (start + at) * d, n * d);
            NAME(map)(d_m + at * d, d, n, d, args->w2, d, d, 0, 0, d_x, d, PLAIN);
            if (!args->before) continue;
            NAME(relu_backward)(d_x, args->x + (start + at) * d, n * d);
            NAME(add_columns)(d_x, d, n, d, d_before);
        }
        const float *h = args->h + start * args->h_row, *x = args->x + start * d, *m = args->w2 ? args->message + start * d : x;
        NAME(add_outer)(d_rzc, 3 * d, m, d, rows, 3 * d, d, d_w);
        NAME(add_outer)(d_rzc, 3 * d, h, args->h_row, rows, 2 * d, d, d_u);
        NAME(add_outer)(d_rzc + 2 * d, 3 * d, reset_h, d, rows, d, d, d_v);
        NAME(add_columns)(d_rzc, 3 * d, rows, 3 * d, d_bias);
        if (!args->w2) continue;
        NAME(add_outer)(d_m, d, x, d, rows, d, d, d_w2);
        NAME(add_columns)(d_m, d, rows, d, d_b2);
    }
}

/* Add weight[k] x[row] for k in first .. last - 1 to V columns of a sum; row = k, index[k], words[k] or
 * words[index[k]], and weights are 1 if NULL. */
static inline __attribute__((always_inline)) vec NAME(add_rows)(
    vec sum, const float *x, long x_row, const int *words, const long *index, const float *weight, long first, long last) {
    for (long k = first; k < last; k++) {
        long row = index ? index[k] : k;
        if (words) row = words[row];
        sum += (weight ? weight[k] : 1) * *(const vec *)(x + row * x_row);
    }
    return sum;
}

/* to = act(scale (other_weight other + the sum of n weighted rows)); with a bias, act(y) = ReLU(y + bias). */
static inline __attribute__((always_inline)) void NAME(weighted_sum)(
    const float *x, long x_row, const int *words, const long *index, const float *weight, long n, long d,
    const float *other, float other_weight, float scale, const float *bias, float *to) {
    for (long c = 0; c < d; c += V) {
        vec sum = NAME(broadcast)(0);
        if (other) sum = *(const vec *)(other + c) * other_weight;
        sum = NAME(add_rows)(sum, x + c, x_row, words, index, weight, 0, n < BLOCK ? n : BLOCK);
        for (long k = BLOCK; k < n; k += BLOCK) /* rounding errors grow with the length of a sum */
            sum += NAME(add_rows)(NAME(broadcast)(0), x + c, x_row, words, index, weight, k, n < k + BLOCK ? n : k + BLOCK);
        sum *= scale;
        *(vec *)(to + c) = bias ? NAME(activated)(sum + *(const vec *)(bias + c), RELU) : sum;
    }
}

/* AGGREGATE's mean over graphs first .. last - 1, whose words begin at row `v` and whose edges at `e`; with `back`, its
 * backward, from the gradients x of means to the gradients y of what was sent. Edges stay within their graph. With `words`, row
 * r of x is row words[r] of a table, whose last row is the master's, and row r of y is row -1 - place[r], none if negative. */
static void NAME(aggregate_words)(const struct graph *args, long first, long last, long v, long e, const int *words,
                                  const float *master_sends, const long *place) {
    const long d = args->width, x_row = args->x_row, back = args->back;
    for (long g = first; g < last; g++) {
        const long begin = v, end = v + args->size[g], first_edge = e;
        const float *master = !args->master ? 0 : words ? master_sends : args->x + (args->rows + g) * x_row;
        for (; v < end; v++) {
            const long from = e, row = place ? -1 - place[v] : v;
            while (e < args->edges && args->target[e] == v) e++;
            if (row < 0) continue;
            NAME(weighted_sum)(args->x, x_row, words, args->source + from, args->weight + from, back ? 0 : e - from, d, master,
                               back ? args->word_weight[g] : args->master_weight[v], 1, args->bias, args->y + row * d);
        }
        for (long k = first_edge; back && k < e; k++) /* each row of y has its first term */
            for (long c = 0; c < d; c += V)
                *(vec *)(args->y + args->source[k] * d + c) +=
                    args->weight[k] * *(const vec *)(args->x + args->target[k] * x_row + c);
        const long row = place && master ? -1 - place[args->rows + g] : args->rows + g;
        if (master)
            NAME(weighted_sum)(words ? args->x : args->x + begin * x_row, x_row, words ? words + begin : 0, 0,
                               back ? args->master_weight + begin : 0, end - begin, d, 0, 0, back ? 1 : args->word_weight[g],
                               args->bias, args->y + row * d);
    }
}

static inline float NAME(dot)(const float *x, const float *y, long width) {
    vec sum = NAME(broadcast)(0);
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
    NAME(weighted_sum)(h, h_row, 0, 0, alpha, rows, width, 0, 0, 1, 0, to);
}

/* READOUT of one round, equation 7: attention over the rows of each of groups first .. last - 1, which begin at `row` [a dense
 * layer with ReLU], in `to`, next to it the master rows. `score` may be `alpha`. */
static void NAME(attention)(const struct attention *args, long first, long last, long row) {
    const long d = args->width;
    float own_y[STRIP * WIDEST] __attribute__((aligned(64)));
    long end = row;
    for (long g = first; g < last; g++) end += args->size[g];
    for (long at = row; at < end; at += STRIP) {
        const long n = end - at < STRIP ? end - at : STRIP;
        float *y = args->y ? args->y + at * d : own_y;
        NAME(map)(args->h + at * args->h_row, args->h_row, n, d, args->w_t, d % PANEL ? d : 0, d, args->b, 0, y, d, TANH);
        for (long r = 0; r < n; r++) args->score[at + r] = NAME(score)(y + r * d, args->v, d, args->bounded);
    }
    for (long g = first; g < last; row += args->size[g++])
        NAME(pool)(args->h + row * args->h_row, args->h_row, args->score + row, args->size[g], d, args->alpha + row,
                   args->pooled + g * d);
    const float *u = args->pooled;
    if (args->dense_b) {
        NAME(map)(u + first * d, d, last - first, d, args->w_t + d * d, d % PANEL ? d : 0, d, args->dense_b, 0, args->mapped + first * d, d, RELU);
        u = args->mapped;
    }
    copy_rows(args->to + first * args->to_row, args->to_row, u + first * d, d, last - first, d);
    if (args->master)
        copy_rows(args->to + first * args->to_row + d, args->to_row, args->h + (args->rows + first) * args->h_row, args->h_row, last - first, d);
}

/* Backward of tanh(H A + b) for a block of rows, first .. last - 1: adds to the gradients of H, A and b. */
static void NAME(attention_weights)(const struct attention_back *args, long first, long last, const float *d_y, float *d_a,
                                    float *d_b) {
    const long d = args->width, n = last - first;
    NAME(map)(d_y, d, n, d, args->a, d, d, 0, 1, args->d_h + first * d, d, PLAIN);
    NAME(add_outer)(d_y, d, args->h + first * args->h_row, args->h_row, n, d, d, d_a);
    NAME(add_columns)(d_y, d, n, d, d_b);
}

/* Backward of `attention`: gradients of the rows; `grads` becomes those of A, its bias and the context. The gradients of the
 * tanh's input are stored after `grads`, for one block of rows at a time. */
static void NAME(attention_back)(const struct attention_back *args, long first, long last, long row, float *grads) {
    const long d = args->width;
    float *d_a = grads, *d_b = d_a + d * d, *d_v = d_b + d, *d_y = d_v + d;
    for (float *at = grads; at < d_y; at += V) *(vec *)at = NAME(broadcast)(0);
    long start = row; /* of the block */
    for (long g = first; g < last; g++) {
        const long end = row + args->size[g];
        const float *upstream = args->g + g * args->g_row;
        float mean = 0;
        for (long r = row; r < end; r++) mean += args->alpha[r] * NAME(dot)(upstream, args->h + r * args->h_row, d);
        for (; row < end; row++) {
            if (row - start == BLOCK) NAME(attention_weights)(args, start, row, d_y, d_a, d_b), start = row;
            float score = args->score[row], *before = d_y + (row - start) * d;
            float back = args->alpha[row] * (NAME(dot)(upstream, args->h + row * args->h_row, d) - mean);
            if (args->bounded) back *= 1 - score * score;
            for (long c = 0; c < d; c += V) {
                vec y = *(const vec *)(args->y + row * d + c);
                *(vec *)(d_v + c) += back * y;
                *(vec *)(before + c) = back * *(const vec *)(args->v + c) * (1 - y * y);
                *(vec *)(args->d_h + row * d + c) = args->alpha[row] * *(const vec *)(upstream + c);
            }
        }
    }
    NAME(attention_weights)(args, start, row, d_y, d_a, d_b);
}

/* y = x w^T + b [ReLU], rows first .. last - 1. */
static void NAME(linear)(const struct linear *args, long first, long last) {
    const long row = args->n_in % PANEL ? args->n_out : 0;
    for (long at = first; at < last; at += BLOCK)
        NAME(map)(args->x + at * args->x_row, args->x_row, last - at < BLOCK ? last - at : BLOCK, args->n_in, args->w_t, row,
                  args->n_out, args->b, 0, args->y + at * args->n_out, args->n_out, args->relu ? RELU : PLAIN);
}

/* Backward of `linear`: gradients of x; `grads` becomes those of w and b. */
static void NAME(linear_back)(const struct linear_back *args, long first, long last, float *grads) {
    float *d_b = grads + args->n_out * args->n_in, *masked = d_b + args->n_out;
    for (float *at = grads; at < d_b + args->n_out; at += V) *(vec *)at = NAME(broadcast)(0);
    for (long at = first; at < last; at += BLOCK) {
        const long n = last - at < BLOCK ? last - at : BLOCK;
        const float *g = args->g + at * args->g_row;
        long g_row = args->g_row;
        if (args->y) {
            copy_rows(masked, args->n_out, g, g_row, n, args->n_out);
            NAME(relu_backward)(masked, args->y + at * args->n_out, n * args->n_out);
            g = masked, g_row = args->n_out;
        }
        if (args->d_x)
            NAME(map)(g, g_row, n, args->n_out, args->w, args->n_in, args->n_in, 0, args->accumulate, args->d_x + at * args->n_in, args->n_in,
                      PLAIN);
        NAME(add_outer)(g, g_row, args->x + at * args->x_row, args->x_row, n, args->n_out, args->n_in, grads);
        NAME(add_columns)(g, g_row, n, args->n_out, d_b);
    }
}
