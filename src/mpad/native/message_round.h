/* Whole rounds of message passing (MessagePassing in mpad/model.py), forwards and backwards, one call each: a few hundred
 * rows take less time than Python needs to prepare several calls.
 *
 * `saved` holds what the backward needs, laid out by `round_parts`; `scratch` begins with the gradients
 * that one layer passes to the next, followed by workspace for the layers. Gradients of weights end up in `grads`. */

/* AGGREGATE over the sentences of each document: the mean of the others (clique), or the previous one (path; the next one in
 * its derivative). With a bias, ReLU(y + bias). */
static void aggregate_sentences(const struct graph *args) {
    const long d = args->width, from = args->back ? 1 : -1;
    const float *x = args->x;
    float *y = args->y, sum[WIDEST];
    for (long k = 0; k < args->groups; k++) {
        const long n = args->size[k], clique = args->kind == CLIQUE;
        const float share = args->mean && n > 2 ? 1.0f / (n - 1) : 1;
        for (long c = 0; c < d; c++) sum[c] = 0;
        for (long r = 0; clique && r < n; r++)
            for (long c = 0; c < d; c++) sum[c] += x[r * args->x_row + c];
        for (long r = 0; r < n; r++, y += d) {
            const float *own = x + r * args->x_row;
            if (clique && n > 1)
                for (long c = 0; c < d; c++) y[c] = (sum[c] - own[c]) * share;
            else if (!clique && r + from >= 0 && r + from < n)
                memcpy(y, own + from * args->x_row, d * sizeof(float));
            else
                memset(y, 0, d * sizeof(float));
            for (long c = 0; args->bias && c < d; c++) y[c] += args->bias[c], y[c] = y[c] < 0 ? 0 : y[c];
        }
        x += n * args->x_row;
    }
}

static void aggregate(const struct round *round, const float *x, long x_row, const float *bias, float *y, int back, long threads) {
    struct graph args = round->graph;
    args.x = x, args.x_row = x_row, args.bias = bias, args.y = y, args.back = back, args.width = round->width;
    if (args.kind == WORDS) parallel(aggregate_words_part, &args, args.rows * args.width, threads);
    else aggregate_sentences(&args);
}

/* Copy a layer's gradients, at the start of its workspace, to the output buffer; return the buffer's next place. */
static float *copy_grads(float *to, const float *grads, long n) {
    memcpy(to, grads, n * sizeof(float));
    return to + n;
}

static long update_workspace(long d) { return 7 * d * d + 5 * d + (5 * BLOCK + STRIP) * d; }

/* Multiply a linear map without ReLU into the gate's weights: W (W2 x + b2) + b = (W W2) x + (W b2 + b). */
static void merge(const float *w, const float *w2, const float *b2, const float *bias, long d, float *to) {
    float *to_bias = to + 3 * d * d;
    PICK(map)(w, d, 3 * d, d, w2, d, d, 0, 0, to, d, PLAIN);
    for (long o = 0; o < 3 * d; o++) {
        float sum = bias[o];
        for (long k = 0; k < d; k++) sum += w[o * d + k] * b2[k];
        to_bias[o] = sum;
    }
}

/* Split the gradients of the merged weights, in `grads` in the order of `update_back`, into those of W, W2 and b2. */
static void unmerge_gradients(const float *w, const float *w2, const float *b2, long d, float *grads, float *workspace) {
    float *d_w = grads, *d_w2 = grads + 6 * d * d, *d_bias = d_w2 + d * d, *d_b2 = d_bias + 3 * d;
    float *w_t = workspace + 3 * d * d;
    memset(d_w2, 0, d * d * sizeof(float));
    memset(d_b2, 0, d * sizeof(float));
    PICK(add_outer)(w, d, d_w, d, 3 * d, d, d, d_w2);
    PICK(transpose)(w2, d, d, 0, d, w_t);
    PICK(map)(d_w, d, 3 * d, d, w_t, d % PANEL ? d : 0, d, 0, 0, workspace, d, PLAIN);
    for (long o = 0; o < 3 * d; o++)
        for (long k = 0; k < d; k++) d_w[o * d + k] = workspace[o * d + k] + d_bias[o] * b2[k], d_b2[k] += d_bias[o] * w[o * d + k];
}

/* Where `saved` has what; the first three are for norms, the last four for an MLP before the mean. */
struct round_parts { float *before_moments, *moments, *merged, *inbox, *message, *rzc, *active, *x, *normal, *mapped; };

static struct round_parts round_parts(const struct round *args) {
    const long d = args->width, n = args->rows * d;
    float *small = args->saved, *rows = args->v2 ? small + 7 * d + 3 * d * d : small;
    return (struct round_parts){small, small + 2 * d, small + 4 * d, rows, rows + n, rows + 2 * n, rows + 5 * n, rows + 6 * n,
                                rows + 7 * n, rows + 8 * n};
}

static void normalize(const struct round *args, const struct batch_norm *norm, const float *x, long x_row, float *moments, float *y,
                      long threads) {
    const long d = args->width;
    run_norm(&(struct norm){x, norm->gamma, norm->beta, norm->before, norm->running_mean, norm->running_var, moments, moments + d,
                             args->scratch, y, x_row, args->rows, d, 1, args->by_batch, args->momentum, args->eps}, threads);
}

static void map_rows(const struct round *args, const float *x, long x_row, const float *w, const float *b, float *y, long threads) {
    const long d = args->width;
    run_linear(&(struct linear){x, w, b, args->scratch, y, x_row, args->rows, d, d, 0}, threads);
}

/* A mean with ReLU, a linear map with ReLU, the gate; or, the authors' round, with an MLP before the mean, and batch norm inside
 * both MLPs. */
void mpad_round(const struct round *args, long threads) {
    const long n = args->rows, d = args->width;
    const struct round_parts at = round_parts(args);
    const float *state = args->h, *message = at.inbox, *mapped = args->mapped;
    long state_row = args->h_row, row = args->mapped_row;
    if (args->v2) {
        if (args->v1) map_rows(args, args->h, args->h_row, args->v1, 0, at.mapped, threads), mapped = at.mapped, row = d;
        normalize(args, &args->before_norm, mapped, row, at.before_moments, at.active, threads);
        map_rows(args, at.active, d, args->v2, args->c2, at.x, threads);
        state = at.x, state_row = d, message = at.normal;
    }
    if (args->w1) /* what each row sends; `update` overwrites it after use */
        map_rows(args, state, state_row, args->w1, 0, at.message, threads), mapped = at.message, row = d;
    aggregate(args, mapped, row, args->v2 ? 0 : args->b1, at.inbox, 0, threads);
    if (args->v2) normalize(args, &args->norm, at.inbox, d, at.moments, at.normal, threads);
    if (args->merge) merge(args->w, args->w2, args->b2, args->bias, d, at.merged);
    run_update(&(struct update){state, message, args->merge ? 0 : args->w2, args->merge ? 0 : args->b2,
                                args->merge ? at.merged + 3 * d * d : args->bias, args->merge ? at.merged : args->w, args->u,
                                args->v, args->scratch, at.message, at.rzc, args->out, state_row, d, n, d, !args->v2}, threads);
}

static float *norm_gradients(const struct round *args, const struct batch_norm *norm, const float *g, const float *x, long x_row,
                             const float *moments, float *d_x, float *workspace, float *grads, long threads) {
    const long d = args->width;
    run_norm_back(&(struct norm_back){g, x, norm->gamma, norm->beta, moments, moments + d, d_x, workspace, d, x_row, args->rows, d, 1}, threads);
    return copy_grads(grads, workspace, 2 * d);
}

static float *linear_gradients(const struct round *args, const float *g, const float *x, long x_row, const float *w, float *d_x,
                               int accumulate, float *workspace, float *grads, long threads) {
    const long d = args->width;
    run_linear_back(&(struct linear_back){g, x, 0, w, d_x, workspace, d, x_row, args->rows, d, d, d * (d + 1), accumulate}, threads);
    return copy_grads(grads, workspace, w == args->v2 ? d * (d + 1) : d * d); /* the others have no bias */
}

/* `grads`: W, U, V, W2, the gate's biases, b2, b1; gamma and beta of `norm`; W1; V2, c2; gamma and beta of `before_norm`; V1: of
 * these, what the round has. */
void mpad_round_back(const struct round *args, long threads) {
    const long n = args->rows, d = args->width, authors = args->v2 != 0;
    const struct round_parts at = round_parts(args);
    float *one = args->scratch, *other = one + n * d, *d_x = other + n * d, *workspace = d_x + n * d;
    const float *state = authors ? at.x : args->h;
    const long state_row = authors ? d : args->h_row;
    float *d_state = authors ? d_x : args->d_h, *d_inbox = authors ? other : one;
    run_update_back(&(struct update_back){args->g, state, authors ? at.normal : at.inbox, at.message, at.rzc, args->merge ? 0 : args->w2,
                                          args->merge ? at.merged : args->w, args->u, args->v, d_state, one, workspace, args->g_row,
                                          state_row, n, d, !authors, !authors, update_workspace(d)}, threads);
    float *grads = copy_grads(args->grads, workspace, 7 * d * d + 5 * d);
    if (args->merge) unmerge_gradients(args->w, args->w2, args->b2, d, args->grads, workspace);
    if (authors) grads = norm_gradients(args, &args->norm, one, at.inbox, d, at.moments, d_inbox, workspace, grads, threads);
    float *d_sent = !args->w1 ? args->d_mapped : authors ? one : other;
    aggregate(args, d_inbox, d, 0, d_sent, 1, threads);
    if (args->w1) grads = linear_gradients(args, d_sent, state, state_row, args->w1, d_state, 1, workspace, grads, threads);
    if (!authors) return;
    grads = linear_gradients(args, d_x, at.active, d, args->v2, one, 0, workspace, grads, threads);
    const float *mapped = args->v1 ? at.mapped : args->mapped;
    float *d_mapped = args->v1 ? other : args->d_mapped;
    grads = norm_gradients(args, &args->before_norm, one, mapped, args->v1 ? d : args->mapped_row, at.before_moments, d_mapped, workspace,
                           grads, threads);
    if (args->v1) linear_gradients(args, d_mapped, args->h, args->h_row, args->v1, args->d_h, 0, workspace, grads, threads);
}
