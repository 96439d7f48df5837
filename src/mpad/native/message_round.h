/* Whole rounds of messages (mpad/ops/message_passing.py), both ways: passes one behind another, in one call. A few hundred rows pass
 * through them faster than Python prepares a call.
 *
 * `saved` holds what the derivative needs, laid out by `round_parts` and `normed_parts`; `scratch` begins with what one
 * pass leaves for the next, behind it is workspace for the passes themselves. Gradients of weights end up in `grads`. */

static void aggregate(const struct graph *graph, const float *x, long x_row, const float *bias, float *y, int back, long threads) {
    if (graph->words) {
        struct mean of = *graph->words;
        of.x = x, of.x_row = x_row, of.bias = bias, of.y = y, of.back = back;
        mpad_mean(&of, threads);
    } else {
        struct among of = *graph->sentences;
        of.x = x, of.x_row = x_row, of.bias = bias, of.y = y;
        if (back && of.kind == 1) of.kind = 2;
        mpad_among(&of);
    }
}

/* What a pass has grads, at the start of its workspace, goes to where gradients are saved. */
static float *keep(float *to, const float *grads, long n) {
    memcpy(to, grads, n * sizeof(float));
    return to + n;
}

static long update_workspace(long d) { return 7 * d * d + 5 * d + (5 * BLOCK + STRIP) * d; }

struct round_parts { float *inbox, *message, *rzc; };

static struct round_parts round_parts(float *saved, long numbers) {
    return (struct round_parts){saved, saved + numbers, saved + 2 * numbers};
}

/* Without norms, as in the paper: ReLU of a mean, a linear map with ReLU, the gate. */
void mpad_round(const struct round *of, long threads) {
    const long n = of->rows, d = of->width;
    const struct round_parts at = round_parts(of->saved, n * d);
    const float *sent = of->sent;
    if (of->w1) {
        mpad_linear(&(struct linear){of->h, of->w1, 0, of->scratch, at.message, of->h_row, n, d, d, 0}, threads);
        sent = at.message; /* which is written later */
    }
    aggregate(&of->graph, sent, of->w1 ? d : of->sent_row, of->b1, at.inbox, 0, threads);
    mpad_update(&(struct update){of->h, at.inbox, of->w2, of->b2, of->bias, of->w, of->u, of->v, of->scratch, at.message,
                                 at.rzc, of->out, of->h_row, d, n, d, 1}, threads);
}

/* `grads`: W, U, V, W2, the gate's biases, b2, b1, W1. */
void mpad_round_back(const struct round_back *of, long threads) {
    const long n = of->rows, d = of->width;
    const struct round_parts at = round_parts(of->saved, n * d);
    float *d_inbox = of->scratch, *d_sent = of->w1 ? d_inbox + n * d : of->d_sent, *workspace = d_inbox + 2 * n * d;
    mpad_update_back(&(struct update_back){of->g, of->h, at.inbox, at.message, at.rzc, of->w2, of->w, of->u, of->v, of->d_h,
                                           d_inbox, workspace, of->g_row, of->h_row, n, d, 1, 1, update_workspace(d)}, threads);
    float *grads = keep(of->grads, workspace, 7 * d * d + 5 * d);
    aggregate(&of->graph, d_inbox, d, 0, d_sent, 1, threads);
    if (!of->w1) return;
    mpad_linear_back(&(struct linear_back){d_sent, of->h, 0, of->w1, of->d_h, workspace, d, of->h_row, n, d, d, d * (d + 1), 1},
                     threads);
    keep(grads, workspace, d * d);
}

/* A map of x without a ReLU merges into what the gate does with it: W (x W2 + b2) = x (W W2) + W b2. */
static void merge(const float *w, const float *w2, const float *b2, const float *bias, long d, float *to) {
    float *to_bias = to + 3 * d * d;
    PICK(map)(w, d, 3 * d, d, w2, d, d, 0, 0, to, d, PLAIN);
    for (long o = 0; o < 3 * d; o++) {
        float sum = bias[o];
        for (long k = 0; k < d; k++) sum += w[o * d + k] * b2[k];
        to_bias[o] = sum;
    }
}

/* Gradients of the merged map, in `grads` as `struct update_back` has them, to those of its parts. */
static void part_again(const float *w, const float *w2, const float *b2, long d, float *grads, float *workspace) {
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

struct normed_parts { float *enter, *send, *merged, *active, *x, *inbox, *heard, *rzc, *message, *entered; };

static struct normed_parts normed_parts(float *saved, long numbers, long d) { /* the first two: means and scales */
    float *rows = saved + 7 * d + 3 * d * d;
    return (struct normed_parts){saved, saved + 2 * d, saved + 4 * d, rows, rows + numbers, rows + 2 * numbers, rows + 3 * numbers,
                                  rows + 4 * numbers, rows + 7 * numbers, rows + 8 * numbers};
}

static void normalise(const struct normed_round *of, const struct normed *by, const float *x, float *moments, float *y, long threads) {
    const long d = of->width;
    mpad_norm(&(struct norm){x, by->gamma, by->beta, by->before, by->running_mean, by->running_var, moments, moments + d,
                             of->scratch, y, d, of->rows, d, 1, of->by_batch, of->momentum, of->eps}, threads);
}

/* The normed_round': an MLP with batch norm inside before the mean, another behind it, the gate. */
void mpad_normed_round(const struct normed_round *of, long threads) {
    const long n = of->rows, d = of->width;
    const struct normed_parts at = normed_parts(of->saved, n * d, d);
    const float *entered = of->entered;
    if (of->v1) {
        mpad_linear(&(struct linear){of->h, of->v1, 0, of->scratch, at.entered, of->h_row, n, d, d, 0}, threads);
        entered = at.entered;
    }
    normalise(of, &of->enter, entered, at.enter, at.active, threads);
    mpad_linear(&(struct linear){at.active, of->v2, of->c2, of->scratch, at.x, d, n, d, d, 0}, threads);
    mpad_linear(&(struct linear){at.x, of->w1, 0, of->scratch, at.heard, d, n, d, d, 0}, threads); /* what is sent */
    aggregate(&of->graph, at.heard, d, 0, at.inbox, 0, threads);
    normalise(of, &of->send, at.inbox, at.send, at.heard, threads);
    if (of->merge) merge(of->w, of->w2, of->b2, of->bias, d, at.merged);
    mpad_update(&(struct update){at.x, at.heard, of->merge ? 0 : of->w2, of->b2, of->merge ? at.merged + 3 * d * d : of->bias,
                                 of->merge ? at.merged : of->w, of->u, of->v, of->scratch, at.message, at.rzc, of->out, d, d, n,
                                 d, 0}, threads);
}

static float *norm_gradients(const struct normed_round_back *of, const struct normed *by, const float *g, const float *x,
                             const float *moments, float *d_x, float *workspace, float *grads, long threads) {
    const long d = of->width;
    mpad_norm_back(&(struct norm_back){g, x, by->gamma, by->beta, moments, moments + d, d_x, workspace, d, d, of->rows, d, 1}, threads);
    return keep(grads, workspace, 2 * d);
}

static float *linear_gradients(const float *g, const float *x, long x_row, const float *w, float *d_x, int onto, long rows,
                               long d, float *workspace, float *grads, long threads) {
    mpad_linear_back(&(struct linear_back){g, x, 0, w, d_x, workspace, d, x_row, rows, d, d, d * (d + 1), onto}, threads);
    return keep(grads, workspace, d * (d + 1));
}

/* `grads`: W, U, V, W2, the gate's biases, b2, and one that is not used; gamma and beta of `send`; W1 and its bias, which is
 * not used; V2 and c2; gamma and beta of `enter`; V1 and its bias, which is not used. */
void mpad_normed_round_back(const struct normed_round_back *of, long threads) {
    const long n = of->rows, d = of->width;
    const struct normed_parts at = normed_parts(of->saved, n * d, d);
    float *d_x = of->scratch, *one = d_x + n * d, *other = one + n * d, *workspace = other + n * d;
    mpad_update_back(&(struct update_back){of->g, at.x, at.heard, at.message, at.rzc, of->merge ? 0 : of->w2,
                                           of->merge ? at.merged : of->w, of->u, of->v, d_x, one, workspace, of->g_row, d, n, d, 0, 0,
                                           update_workspace(d)}, threads);
    float *grads = keep(of->grads, workspace, 7 * d * d + 5 * d);
    if (of->merge) part_again(of->w, of->w2, of->b2, d, of->grads, workspace);
    grads = norm_gradients(of, &of->send, one, at.inbox, at.send, other, workspace, grads, threads);
    aggregate(&of->graph, other, d, 0, one, 1, threads);
    grads = linear_gradients(one, at.x, d, of->w1, d_x, 1, n, d, workspace, grads, threads);
    grads = linear_gradients(d_x, at.active, d, of->v2, one, 0, n, d, workspace, grads, threads);
    const float *entered = of->v1 ? at.entered : of->entered;
    float *d_entered = of->v1 ? other : of->d_h;
    grads = norm_gradients(of, &of->enter, one, entered, at.enter, d_entered, workspace, grads, threads);
    if (of->v1) linear_gradients(d_entered, of->h, of->h_row, of->v1, of->d_h, 0, n, d, workspace, grads, threads);
}
