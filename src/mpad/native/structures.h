/* What callers hand over: pointers, then numbers; mpad/runtime/compiled.py and mpad/nn/compiled have the same. */

struct combine {
    const long *own, *told;
    const float *states, *gates, *told_gates, *told_new, *rest_gates, *rest_new, *u;
};

struct graphs {
    const long *node_start, *edge_start;
    const int *source, *target;
    const float *weight;
    long n, master, mean;
};

struct answer_step { /* weights are (in, out); the first two maps only in the authors' network, `hear` only in the paper's */
    const float *enter, *enter_b, *second, *second_b, *sent, *u, *u_b, *bias, *hear, *hear_b, *gates, *candidate;
    const float *candidate_b, *reset;
};

struct answer_read {
    const float *align, *align_b, *context, *dense, *dense_b;
};

struct answers { /* tables have a row a word and a last one, `nobody`, of the master or of no word; those of what is told may be NULL */
    const long *node_start, *edge_start;
    const int *words, *source, *target;
    const float *weight, *says, *states, *gates, *told_gates, *told_new;
    const struct answer_step *steps;
    const struct answer_read *reads;
    float *read, *alpha, *scratch;
    long n, width, nobody, master, mean, relu, nodes, rows; /* `scratch` has room for so many rows */
};

struct update { /* weights are (out, in); `turned` has room for all of them, side by side: W, U, V, W2 */
    const float *h, *x, *w2, *b2, *bias, *w, *u, *v;
    float *turned, *message, *rzc, *out;
    long h_row, x_row, rows, width, relu;
};

struct update_back { /* rows of x lie end to end; `found` has `room` numbers for each thread, the first has all in the end */
    const float *g, *h, *x, *message, *rzc, *w2, *w, *u, *v;
    float *d_h, *d_x, *found;
    long g_row, h_row, rows, width, relu, before, room;
};

struct mean {
    const long *size, *source, *target; /* of each graph its words; of each edge its ends */
    const float *weight, *share, *part, *bias, *x;
    float *y;
    long x_row, words, edges, graphs, width, master, back;
};

struct attention { /* a is (out, in), `turned` has room for it */
    const long *size;
    const float *h, *a, *b, *v;
    float *turned, *y, *score, *alpha, *pooled;
    long h_row, rows, groups, width, bounded;
};

struct attention_back { /* `found` as in `update_back` */
    const long *size;
    const float *g, *h, *a, *v, *y, *score, *alpha;
    float *d_h, *found;
    long g_row, h_row, rows, groups, width, bounded, room;
};

struct linear { /* y = x w^T + b [ReLU]; w is (out, in), `turned` has room for it */
    const float *x, *w, *b;
    float *turned, *y;
    long x_row, rows, n_in, n_out, relu;
};

struct linear_back { /* y where a ReLU made it, else NULL; `found` as in `update_back`; `onto`: d_x is added to */
    const float *g, *x, *y, *w;
    float *d_x, *found;
    long g_row, x_row, rows, n_in, n_out, room, onto;
};

struct dropped {
    const float *x;
    const long *which;
    float *y;
    long n, width, as_they_stand;
    unsigned long key;
    long dropped; /* of 256 */
    float scale;
};

struct gathered {
    const float *x;
    const long *index;
    float *y;
    long rows, n, width;
};

struct scattered {
    const float *first, *second;
    const long *index;
    float *y;
    long first_row, second_row, rows, n, width, slice;
};

struct norm { /* `mean` and `scale`, 1 / sqrt(variance + eps), are of the batch; `room`: 2 * width numbers for each thread */
    const float *x, *gamma, *beta, *before;
    float *running_mean, *running_var, *mean, *scale, *room, *y;
    long x_row, rows, width, relu;
    float momentum, eps;
};

struct norm_back { /* `found`: for each thread gradients of gamma, then of beta; the first has all in the end */
    const float *g, *x, *gamma, *beta, *mean, *scale;
    float *d_x, *found;
    long g_row, x_row, rows, width, relu;
};

struct numbers {
    float *x, *m, *v;
    const float *g; /* NULL: all zero */
    long start, n;  /* start: numbers before these */
};

struct adam {
    const struct numbers *parts;
    long n;
    float rate, b1, b2, scale, eps; /* rate and scale: already corrected for the number of steps */
};
