/* Structures that Python passes to C. native/__init__.py reads this file and builds them with ctypes; `mpad_sizes` in
 * kernels.c has the size that the compiler gave each, which is compared when the library is loaded.
 * Pointers come first, then numbers; a comment ends its line. */

struct inference_step { /* before1, before2 and mlp1 are `w_t` of `struct linear`; before1 and before2, the MLP before the mean, may be NULL */
    const float *before1, *before1_b, *before2, *before2_b, *mlp1, *mlp1_b;
    const float *update, *bias, *mlp2_b; /* `w_t`, `bias` and `b2` of `struct update` */
};

struct inference_attention { /* maps: `w_t` of `struct attention`; dense_b is NULL without a dense layer */
    const float *maps, *align_b, *context, *dense_b;
};

struct inference { /* tables have one row per word; the last row is the master node's. message_* and vectors may be NULL */
    const long *node_start, *edge_start;
    const int *words, *source, *target;
    const float *weight, *sent, *states, *state_gates, *message_gates, *message_candidate, *vectors;
    const struct inference_step *steps;
    const struct inference_attention *attention;
    float *read, *alpha, *scratch;
    long n_steps, width, vector_width, master_row, master, mean, relu, bounded, nodes;
    long rows, edges; /* of one chunk, at most; `scratch` has rows * (7 * width + 6) + 5 * edges numbers */
};

struct graph { /* size: rows per group; source and target: sorted by target. Rows of x and y: words, then masters; or sentences */
    const long *size, *source, *target;
    float *weight, *master_weight, *word_weight; /* per edge; of the master in each word's mean; of words in each master's */
    const float *bias, *x;
    float *y;
    long x_row, rows, edges, groups, width, master, back, kind, mean; /* kinds: 0 words, 1 a clique of sentences, 2 their path */
};

struct dropout { /* row r of y is row which[r] of x or, in place, row r of x */
    const float *x;
    const long *which;
    float *y;
    long n, width, in_place;
    unsigned long key;
    long threshold; /* of 256 */
    float scale;
};

struct scatter {
    const float *first, *second;
    const long *index;
    float *y;
    long first_row, second_row, rows, n, width, slice;
};

struct corpus { /* graphs one after another, those of a document adjacent; first index and count per document or graph */
    const int *words, *source, *target;
    const float *weight;
    const long *first_graph, *n_graphs, *first_node, *n_nodes, *first_edge, *n_edges;
    long documents;
};

struct batch {
    long *words, *owner, *size, *source, *target, *graph_owner, *graph_count;
    float *weight;
};

struct words { /* word k is letters[start[k]] to letters[start[k + 1] - 1]; slots, a power of two of them, hold k + 1 or 0 */
    unsigned char *letters;
    long *start;
    unsigned *hash;
    int *slots;
    long n, n_slots, capacity, letters_capacity;
};

struct batch_norm { /* `before`: a bias before the norm that the input lacks, or NULL */
    const float *gamma, *beta, *before;
    float *running_mean, *running_var;
};

struct round { /* v2 is NULL in the paper's round. `mapped` is h V1, or the paper's h W1, where that is given; v1 or w1 is NULL then */
    struct graph graph;
    struct batch_norm before_norm, norm;
    const float *h, *mapped, *v1, *v2, *c2, *w1, *b1, *w2, *b2, *bias, *w, *u, *v;
    const float *g; /* from here to grads: of the backward */
    float *d_h, *d_mapped, *grads, *saved, *out, *scratch;
    long h_row, mapped_row, g_row, rows, width, merge, by_batch; /* `merge`: multiply W2 into W */
    float momentum, eps;
};

struct readout_round { /* `dense` may be NULL */
    const float *h, *dense, *dense_b, *a, *b, *v;
    float *alpha, *d_h;
    long h_row;
};

struct readout { /* `master`: each group has a master row after all words. g, grads: of the backward; out: rounds concatenated */
    const long *size;
    const struct readout_round *rounds;
    const float *g;
    float *grads, *saved, *out, *scratch;
    long g_row, n, words, master, groups, width, bounded;
};
