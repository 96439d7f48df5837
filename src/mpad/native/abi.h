/* What Python hands over: the one description of these structures. mpad/native/__init__.py reads it and makes the same
 * of it; `mpad_sizes` in kernels.c tells how large the compiler made each, which is compared when the library is loaded.
 * Pointers, then numbers; a comment stands at the end of a line. */

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

struct answer_step { /* weights are (in, out); `enter` and `second`, the MLP before the mean, and `mlp2` may be NULL */
    const float *enter, *enter_b, *second, *second_b, *sent, *u, *u_b, *bias, *mlp2, *mlp2_b, *gates, *candidate;
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
    long n, width, nobody, master, mean, relu, bounded, nodes, rows; /* `scratch` has room for so many rows */
};

struct update { /* weights are (out, in); `w_t` has room for all of them, side by side: W, U, V, W2 */
    const float *h, *x, *w2, *b2, *bias, *w, *u, *v;
    float *w_t, *message, *rzc, *out;
    long h_row, x_row, rows, width, relu;
};

struct update_back { /* rows of x lie end to end; `grads` has `workspace` numbers for each thread, the first has all in the end */
    const float *g, *h, *x, *message, *rzc, *w2, *w, *u, *v;
    float *d_h, *d_x, *grads;
    long g_row, h_row, rows, width, relu, before, workspace;
};

struct mean {
    const long *size, *source, *target; /* of each graph its words; of each edge its ends */
    const float *weight, *share, *part, *bias, *x;
    float *y;
    long x_row, words, edges, graphs, width, master, back;
};

struct attention { /* a is (out, in), `w_t` has room for it */
    const long *size;
    const float *h, *a, *b, *v;
    float *w_t, *y, *score, *alpha, *pooled;
    long h_row, rows, groups, width, bounded;
};

struct attention_back { /* `grads` as in `update_back` */
    const long *size;
    const float *g, *h, *a, *v, *y, *score, *alpha;
    float *d_h, *grads;
    long g_row, h_row, rows, groups, width, bounded, workspace;
};

struct linear { /* y = x w^T + b [ReLU]; w is (out, in), `w_t` has room for it */
    const float *x, *w, *b;
    float *w_t, *y;
    long x_row, rows, n_in, n_out, relu;
};

struct linear_back { /* y where a ReLU made it, else NULL; `grads` as in `update_back`; `onto`: d_x is added to */
    const float *g, *x, *y, *w;
    float *d_x, *grads;
    long g_row, x_row, rows, n_in, n_out, workspace, onto;
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

struct norm { /* `mean` and `scale`, 1 / sqrt(variance + eps): the batch's, or the running ones. `workspace`: 2 * width numbers a thread */
    const float *x, *gamma, *beta, *before;
    float *running_mean, *running_var, *mean, *scale, *workspace, *y;
    long x_row, rows, width, relu, by_batch;
    float momentum, eps;
};

struct norm_back { /* `grads`: for each thread gradients of gamma, then of beta; the first has all in the end */
    const float *g, *x, *gamma, *beta, *mean, *scale;
    float *d_x, *grads;
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

struct among { /* rows x of documents with `size` sentences each; kinds: 0 clique, 1 path, 2 the path's derivative */
    const long *size;
    const float *x, *bias;
    float *y;
    long x_row, documents, width, kind, mean;
};

struct corpus { /* graphs end to end, each document's beside one another; firsts and counts of what each owns */
    const int *words, *source, *target;
    const float *weight;
    const long *first_graph, *n_graphs, *first_node, *n_nodes, *first_edge, *n_edges;
    long documents;
};

struct batch {
    long *words, *owner, *size, *source, *target, *graph_owner, *graph_count;
    float *weight;
};

struct shares {
    const long *target, *size;
    const float *weight;
    float *divided, *share, *part;
    long edges, words, graphs, master;
};

struct words { /* word k is letters[start[k]] to letters[start[k + 1] - 1]; slots, a power of two of them, hold k + 1, or 0 */
    unsigned char *letters;
    long *start;
    unsigned *hash;
    int *slots;
    long n, n_slots, capacity, letters_capacity; /* room for so many words, and letters */
};

struct graph { /* one of them, as its own pass takes it; rows and bias are filled in */
    const struct mean *words;
    const struct among *sentences;
};

struct round { /* with W1, that makes what is sent of h; without, `sent` is given (its rows may be none, and it NULL) */
    struct graph graph;
    const float *h, *sent, *w1, *b1, *w2, *b2, *bias, *w, *u, *v;
    float *saved, *out, *scratch;
    long h_row, sent_row, rows, width;
};

struct round_back {
    struct graph graph;
    const float *g, *h, *w1, *w2, *w, *u, *v;
    float *saved, *d_h, *d_sent, *grads, *scratch;
    long g_row, h_row, rows, width;
};

struct normed { /* batch norm; `before` as in `struct norm` */
    const float *gamma, *beta, *before;
    float *running_mean, *running_var;
};

struct normed_round { /* with V1, that makes `entered` of h; without, it is given. With `merge`, W2 merges into W */
    struct graph graph;
    struct normed enter, send;
    const float *h, *entered, *v1, *v2, *c2, *w1, *w2, *b2, *bias, *w, *u, *v;
    float *saved, *out, *scratch;
    long h_row, rows, width, merge, by_batch;
    float momentum, eps;
};

struct normed_round_back { /* d_h is the gradient of `entered` where that was given */
    struct graph graph;
    struct normed enter, send;
    const float *g, *h, *entered, *v1, *v2, *w1, *w2, *b2, *w, *u, *v;
    float *saved, *d_h, *grads, *scratch;
    long g_row, h_row, rows, width, merge;
};

struct reading { /* of one round; `dense` may be NULL */
    const float *h, *a, *b, *v, *dense, *dense_b;
    float *alpha, *d_h;
    long h_row;
};

struct readouts { /* `behind`: whether each group has a row behind all words */
    const long *size;
    const struct reading *rounds;
    struct normed norm;
    const float *dense, *dense_b;
    float *saved, *out, *scratch;
    long n, words, behind, groups, width, bounded, by_batch;
    float momentum, eps;
};

struct readouts_back {
    const long *size;
    const struct reading *rounds;
    struct normed norm;
    const float *g, *dense, *out;
    float *saved, *grads, *scratch;
    long g_row, n, words, behind, groups, width, bounded;
};
