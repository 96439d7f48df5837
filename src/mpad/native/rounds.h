/* Whole rounds of messages (nn/messages.py), both ways: passes one behind another, in one call. A few hundred rows pass
 * through them faster than Python prepares a call.
 *
 * `kept` holds what the derivative needs, laid out by `round_parts` and `authors_parts`; `scratch` begins with what one
 * pass leaves for the next, behind it is room for the passes themselves. Gradients of weights end up in `found`. */

struct graph { /* one of them, as its own pass takes it; rows and bias are filled in */
    const struct mean *words;
    const struct among *sentences;
};

static void hear(const struct graph *graph, const float *x, long x_row, const float *bias, float *y, int back, long threads) {
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

/* What a pass has found, at the start of its room, goes to where gradients are kept. */
static float *keep(float *to, const float *found, long n) {
    memcpy(to, found, n * sizeof(float));
    return to + n;
}

static long update_room(long d) { return 7 * d * d + 5 * d + (5 * BLOCK + STRIP) * d; }

struct round { /* with W1, that makes what is sent of h; without, `sent` is given (its rows may be none, and it NULL) */
    struct graph graph;
    const float *h, *sent, *w1, *b1, *w2, *b2, *bias, *w, *u, *v;
    float *kept, *out, *scratch;
    long h_row, sent_row, rows, width;
};

struct round_back {
    struct graph graph;
    const float *g, *h, *w1, *w2, *w, *u, *v;
    float *kept, *d_h, *d_sent, *found, *scratch;
    long g_row, h_row, rows, width;
};

struct round_parts { float *inbox, *message, *rzc; };

static struct round_parts round_parts(float *kept, long numbers) {
    return (struct round_parts){kept, kept + numbers, kept + 2 * numbers};
}

/* The paper's: ReLU of a mean, a linear map with ReLU, the gate. */
void mpad_round(const struct round *of, long threads) {
    const long n = of->rows, d = of->width;
    const struct round_parts at = round_parts(of->kept, n * d);
    const float *sent = of->sent;
    if (of->w1) {
        mpad_linear(&(struct linear){of->h, of->w1, 0, of->scratch, at.message, of->h_row, n, d, d, 0}, threads);
        sent = at.message; /* which is written later */
    }
    hear(&of->graph, sent, of->w1 ? d : of->sent_row, of->b1, at.inbox, 0, threads);
    mpad_update(&(struct update){of->h, at.inbox, of->w2, of->b2, of->bias, of->w, of->u, of->v, of->scratch, at.message,
                                 at.rzc, of->out, of->h_row, d, n, d, 1}, threads);
}

/* `found`: W, U, V, W2, the gate's biases, b2, b1, W1. */
void mpad_round_back(const struct round_back *of, long threads) {
    const long n = of->rows, d = of->width;
    const struct round_parts at = round_parts(of->kept, n * d);
    float *d_inbox = of->scratch, *d_sent = of->w1 ? d_inbox + n * d : of->d_sent, *room = d_inbox + 2 * n * d;
    mpad_update_back(&(struct update_back){of->g, of->h, at.inbox, at.message, at.rzc, of->w2, of->w, of->u, of->v, of->d_h,
                                           d_inbox, room, of->g_row, of->h_row, n, d, 1, 1, update_room(d)}, threads);
    float *found = keep(of->found, room, 7 * d * d + 5 * d);
    hear(&of->graph, d_inbox, d, 0, d_sent, 1, threads);
    if (!of->w1) return;
    mpad_linear_back(&(struct linear_back){d_sent, of->h, 0, of->w1, of->d_h, room, d, of->h_row, n, d, d, d * (d + 1), 1},
                     threads);
    keep(found, room, d * d);
}

struct normed { /* batch norm; `before` as in `struct norm` */
    const float *gamma, *beta, *before;
    float *running_mean, *running_var;
};

/* A map of x without a ReLU merges into what the gate does with it: W (x W2 + b2) = x (W W2) + W b2. */
static void merge(const float *w, const float *w2, const float *b2, const float *bias, long d, float *to) {
    float *to_bias = to + 3 * d * d;
    (wide ? map_512 : map_256)(w, d, 3 * d, d, w2, d, d, 0, 0, to, d, PLAIN);
    for (long o = 0; o < 3 * d; o++) {
        float sum = bias[o];
        for (long k = 0; k < d; k++) sum += w[o * d + k] * b2[k];
        to_bias[o] = sum;
    }
}

/* Gradients of the merged map, in `found` as `struct update_back` has them, to those of its parts. */
static void part_again(const float *w, const float *w2, const float *b2, long d, float *found, float *room) {
    float *d_w = found, *d_w2 = found + 6 * d * d, *d_bias = d_w2 + d * d, *d_b2 = d_bias + 3 * d;
    float *turned = room + 3 * d * d;
    memset(d_w2, 0, d * d * sizeof(float));
    memset(d_b2, 0, d * sizeof(float));
    (wide ? add_outer_512 : add_outer_256)(w, d, d_w, d, 3 * d, d, d, d_w2);
    (wide ? turn_512 : turn_256)(w2, d, d, 0, d, turned);
    (wide ? map_512 : map_256)(d_w, d, 3 * d, d, turned, d % PANEL ? d : 0, d, 0, 0, room, d, PLAIN);
    for (long o = 0; o < 3 * d; o++)
        for (long k = 0; k < d; k++) d_w[o * d + k] = room[o * d + k] + d_bias[o] * b2[k], d_b2[k] += d_bias[o] * w[o * d + k];
}

struct authors { /* with V1, that makes `entered` of h; without, it is given. With `merge`, W2 merges into W */
    struct graph graph;
    struct normed enter, send;
    const float *h, *entered, *v1, *v2, *c2, *w1, *w2, *b2, *bias, *w, *u, *v;
    float *kept, *out, *scratch;
    long h_row, rows, width, merge;
    float momentum, eps;
};

struct authors_back { /* d_h is the gradient of `entered` where that was given */
    struct graph graph;
    struct normed enter, send;
    const float *g, *h, *entered, *v1, *v2, *w1, *w2, *b2, *w, *u, *v;
    float *kept, *d_h, *found, *scratch;
    long g_row, h_row, rows, width, merge;
};

struct authors_parts { float *enter, *send, *merged, *active, *x, *inbox, *heard, *rzc, *message, *entered; };

static struct authors_parts authors_parts(float *kept, long numbers, long d) { /* the first two: means and scales */
    float *rows = kept + 7 * d + 3 * d * d;
    return (struct authors_parts){kept, kept + 2 * d, kept + 4 * d, rows, rows + numbers, rows + 2 * numbers, rows + 3 * numbers,
                                  rows + 4 * numbers, rows + 7 * numbers, rows + 8 * numbers};
}

static void normalise(const struct authors *of, const struct normed *by, const float *x, float *moments, float *y, long threads) {
    const long d = of->width;
    mpad_norm(&(struct norm){x, by->gamma, by->beta, by->before, by->running_mean, by->running_var, moments, moments + d,
                             of->scratch, y, d, of->rows, d, 1, of->momentum, of->eps}, threads);
}

/* The authors': an MLP with batch norm inside before the mean, another behind it, the gate. */
void mpad_authors(const struct authors *of, long threads) {
    const long n = of->rows, d = of->width;
    const struct authors_parts at = authors_parts(of->kept, n * d, d);
    const float *entered = of->entered;
    if (of->v1) {
        mpad_linear(&(struct linear){of->h, of->v1, 0, of->scratch, at.entered, of->h_row, n, d, d, 0}, threads);
        entered = at.entered;
    }
    normalise(of, &of->enter, entered, at.enter, at.active, threads);
    mpad_linear(&(struct linear){at.active, of->v2, of->c2, of->scratch, at.x, d, n, d, d, 0}, threads);
    mpad_linear(&(struct linear){at.x, of->w1, 0, of->scratch, at.heard, d, n, d, d, 0}, threads); /* what is sent */
    hear(&of->graph, at.heard, d, 0, at.inbox, 0, threads);
    normalise(of, &of->send, at.inbox, at.send, at.heard, threads);
    if (of->merge) merge(of->w, of->w2, of->b2, of->bias, d, at.merged);
    mpad_update(&(struct update){at.x, at.heard, of->merge ? 0 : of->w2, of->b2, of->merge ? at.merged + 3 * d * d : of->bias,
                                 of->merge ? at.merged : of->w, of->u, of->v, of->scratch, at.message, at.rzc, of->out, d, d, n,
                                 d, 0}, threads);
}

static float *norm_gradients(const struct authors_back *of, const struct normed *by, const float *g, const float *x,
                             const float *moments, float *d_x, float *room, float *found, long threads) {
    const long d = of->width;
    mpad_norm_back(&(struct norm_back){g, x, by->gamma, by->beta, moments, moments + d, d_x, room, d, d, of->rows, d, 1}, threads);
    return keep(found, room, 2 * d);
}

static float *linear_gradients(const float *g, const float *x, long x_row, const float *w, float *d_x, int onto, long rows,
                               long d, float *room, float *found, long threads) {
    mpad_linear_back(&(struct linear_back){g, x, 0, w, d_x, room, d, x_row, rows, d, d, d * (d + 1), onto}, threads);
    return keep(found, room, d * (d + 1));
}

/* `found`: W, U, V, W2, the gate's biases, b2, and one that is not used; gamma and beta of `send`; W1 and its bias, which is
 * not used; V2 and c2; gamma and beta of `enter`; V1 and its bias, which is not used. */
void mpad_authors_back(const struct authors_back *of, long threads) {
    const long n = of->rows, d = of->width;
    const struct authors_parts at = authors_parts(of->kept, n * d, d);
    float *d_x = of->scratch, *one = d_x + n * d, *other = one + n * d, *room = other + n * d;
    mpad_update_back(&(struct update_back){of->g, at.x, at.heard, at.message, at.rzc, of->merge ? 0 : of->w2,
                                           of->merge ? at.merged : of->w, of->u, of->v, d_x, one, room, of->g_row, d, n, d, 0, 0,
                                           update_room(d)}, threads);
    float *found = keep(of->found, room, 7 * d * d + 5 * d);
    if (of->merge) part_again(of->w, of->w2, of->b2, d, of->found, room);
    found = norm_gradients(of, &of->send, one, at.inbox, at.send, other, room, found, threads);
    hear(&of->graph, other, d, 0, one, 1, threads);
    found = linear_gradients(one, at.x, d, of->w1, d_x, 1, n, d, room, found, threads);
    found = linear_gradients(d_x, at.active, d, of->v2, one, 0, n, d, room, found, threads);
    const float *entered = of->v1 ? at.entered : of->entered;
    float *d_entered = of->v1 ? other : of->d_h;
    found = norm_gradients(of, &of->enter, one, entered, at.enter, d_entered, room, found, threads);
    if (of->v1) linear_gradients(d_entered, of->h, of->h_row, of->v1, of->d_h, 0, n, d, room, found, threads);
}
