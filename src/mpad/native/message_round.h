/* Whole rounds of message passing (MessagePassing in mpad/model.py), forwards and backwards, one call each: a few hundred
 * rows take less time than Python needs to prepare several calls.
 *
 * `saved` holds what the backward needs, laid out by `round_parts` and `normed_parts`; `scratch` begins with the gradients
 * that one layer passes to the next, followed by workspace for the layers. Gradients of weights end up in `grads`. */

static void aggregate(const struct graph *graph, const float *x, long x_row, const float *bias, float *y, int back, long threads) {
    if (graph->words) {
        struct word_graph args = *graph->words;
        args.x = x, args.x_row = x_row, args.bias = bias, args.y = y, args.back = back;
        run_aggregate_words(&args, threads);
    } else {
        struct sentence_graph args = *graph->sentences;
        args.x = x, args.x_row = x_row, args.bias = bias, args.y = y;
        if (back && args.kind == 1) args.kind = 2;
        aggregate_sentences(&args);
    }
}

/* Copy a layer's gradients, at the start of its workspace, to the output buffer; return the buffer's next place. */
static float *copy_grads(float *to, const float *grads, long n) {
    memcpy(to, grads, n * sizeof(float));
    return to + n;
}

static long update_workspace(long d) { return 7 * d * d + 5 * d + (5 * BLOCK + STRIP) * d; }

struct round_parts { float *inbox, *message, *rzc; };

static struct round_parts round_parts(float *saved, long numbers) {
    return (struct round_parts){saved, saved + numbers, saved + 2 * numbers};
}

/* The paper's round: a mean with ReLU, a linear map with ReLU, the gate. */
void mpad_round(const struct round *args, long threads) {
    const long n = args->rows, d = args->width;
    const struct round_parts at = round_parts(args->saved, n * d);
    const float *sent = args->sent;
    if (args->w1) {
        run_linear(&(struct linear){args->h, args->w1, 0, args->scratch, at.message, args->h_row, n, d, d, 0}, threads);
        sent = at.message; /* `update` overwrites it after use */
    }
    aggregate(&args->graph, sent, args->w1 ? d : args->sent_row, args->b1, at.inbox, 0, threads);
    run_update(&(struct update){args->h, at.inbox, args->w2, args->b2, args->bias, args->w, args->u, args->v, args->scratch, at.message,
                                 at.rzc, args->out, args->h_row, d, n, d, 1, 0.5f}, threads);
}

/* `grads`: W, U, V, W2, the gate's biases, b2, b1, W1. */
void mpad_round_back(const struct round_back *args, long threads) {
    const long n = args->rows, d = args->width;
    const struct round_parts at = round_parts(args->saved, n * d);
    float *d_inbox = args->scratch, *d_sent = args->w1 ? d_inbox + n * d : args->d_sent, *workspace = d_inbox + 2 * n * d;
    run_update_back(&(struct update_back){args->g, args->h, at.inbox, at.message, at.rzc, args->w2, args->w, args->u, args->v, args->d_h,
                                           d_inbox, workspace, args->g_row, args->h_row, n, d, 1, 1, update_workspace(d)}, threads);
    float *grads = copy_grads(args->grads, workspace, 7 * d * d + 5 * d);
    aggregate(&args->graph, d_inbox, d, 0, d_sent, 1, threads);
    if (!args->w1) return;
    run_linear_back(&(struct linear_back){d_sent, args->h, 0, args->w1, args->d_h, workspace, d, args->h_row, n, d, d, d * (d + 1), 1},
                     threads);
    copy_grads(grads, workspace, d * d);
}

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

/* Split the gradients of the merged weights, in `grads` in the order of `struct update_back`, into those of W, W2 and b2. */
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

struct normed_parts { float *before_moments, *moments, *merged, *active, *x, *inbox, *normal, *rzc, *message, *projected; };

static struct normed_parts normed_parts(float *saved, long numbers, long d) {
    float *rows = saved + 7 * d + 3 * d * d;
    return (struct normed_parts){saved, saved + 2 * d, saved + 4 * d, rows, rows + numbers, rows + 2 * numbers, rows + 3 * numbers,
                                  rows + 4 * numbers, rows + 7 * numbers, rows + 8 * numbers};
}

static void normalize(const struct normed_round *args, const struct batch_norm *norm, const float *x, float *moments, float *y, long threads) {
    const long d = args->width;
    run_norm(&(struct norm){x, norm->gamma, norm->beta, norm->before, norm->running_mean, norm->running_var, moments, moments + d,
                             args->scratch, y, d, args->rows, d, 1, args->by_batch, args->momentum, args->eps}, threads);
}

/* The authors' round: an MLP with batch norm inside before the mean, another after it, the gate. */
void mpad_normed_round(const struct normed_round *args, long threads) {
    const long n = args->rows, d = args->width;
    const struct normed_parts at = normed_parts(args->saved, n * d, d);
    const float *projected = args->projected;
    if (args->v1) {
        run_linear(&(struct linear){args->h, args->v1, 0, args->scratch, at.projected, args->h_row, n, d, d, 0}, threads);
        projected = at.projected;
    }
    normalize(args, &args->before_norm, projected, at.before_moments, at.active, threads);
    run_linear(&(struct linear){at.active, args->v2, args->c2, args->scratch, at.x, d, n, d, d, 0}, threads);
    run_linear(&(struct linear){at.x, args->w1, 0, args->scratch, at.normal, d, n, d, d, 0}, threads); /* what each row sends */
    aggregate(&args->graph, at.normal, d, 0, at.inbox, 0, threads);
    normalize(args, &args->norm, at.inbox, at.moments, at.normal, threads);
    if (args->merge) merge(args->w, args->w2, args->b2, args->bias, d, at.merged);
    run_update(&(struct update){at.x, at.normal, args->merge ? 0 : args->w2, args->merge ? 0 : args->b2,
                                args->merge ? at.merged + 3 * d * d : args->bias, args->merge ? at.merged : args->w, args->u,
                                args->v, args->scratch, at.message, at.rzc, args->out, d, d, n, d, 0, 0.5f}, threads);
}

static float *norm_gradients(const struct normed_round_back *args, const struct batch_norm *norm, const float *g, const float *x,
                             const float *moments, float *d_x, float *workspace, float *grads, long threads) {
    const long d = args->width;
    run_norm_back(&(struct norm_back){g, x, norm->gamma, norm->beta, moments, moments + d, d_x, workspace, d, d, args->rows, d, 1}, threads);
    return copy_grads(grads, workspace, 2 * d);
}

static float *linear_gradients(const float *g, const float *x, long x_row, const float *w, float *d_x, int accumulate, long rows,
                               long d, float *workspace, float *grads, long threads) {
    run_linear_back(&(struct linear_back){g, x, 0, w, d_x, workspace, d, x_row, rows, d, d, d * (d + 1), accumulate}, threads);
    return copy_grads(grads, workspace, d * (d + 1));
}

/* `grads`: W, U, V, W2, the gate's biases, b2, (unused); gamma and beta of `norm`; W1, (unused); V2, c2; gamma and beta of
 * `before_norm`; V1, (unused). */
void mpad_normed_round_back(const struct normed_round_back *args, long threads) {
    const long n = args->rows, d = args->width;
    const struct normed_parts at = normed_parts(args->saved, n * d, d);
    float *d_x = args->scratch, *one = d_x + n * d, *other = one + n * d, *workspace = other + n * d;
    run_update_back(&(struct update_back){args->g, at.x, at.normal, at.message, at.rzc, args->merge ? 0 : args->w2,
                                           args->merge ? at.merged : args->w, args->u, args->v, d_x, one, workspace, args->g_row, d, n, d, 0, 0,
                                           update_workspace(d)}, threads);
    float *grads = copy_grads(args->grads, workspace, 7 * d * d + 5 * d);
    if (args->merge) unmerge_gradients(args->w, args->w2, args->b2, d, args->grads, workspace);
    grads = norm_gradients(args, &args->norm, one, at.inbox, at.moments, other, workspace, grads, threads);
    aggregate(&args->graph, other, d, 0, one, 1, threads);
    grads = linear_gradients(one, at.x, d, args->w1, d_x, 1, n, d, workspace, grads, threads);
    grads = linear_gradients(d_x, at.active, d, args->v2, one, 0, n, d, workspace, grads, threads);
    const float *projected = args->v1 ? at.projected : args->projected;
    float *d_entered = args->v1 ? other : args->d_h;
    grads = norm_gradients(args, &args->before_norm, one, projected, at.before_moments, d_entered, workspace, grads, threads);
    if (args->v1) linear_gradients(d_entered, args->h, args->h_row, args->v1, args->d_h, 0, n, d, workspace, grads, threads);
}
