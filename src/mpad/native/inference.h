/* Inference over graphs of words (mpad/inference/fused.py), a chunk of graphs at a time, for one kind of processor; see
 * gemm.h. Intermediate results of a chunk stay in the cache. */

/* Describe graphs begin .. end - 1, rows counted from the first; `buffer` has 3 numbers per row and 5 per edge. */
static struct graph NAME(chunk_graph)(const struct inference *args, long begin, long end, float *buffer) {
    const long at = args->node_start[begin], words = args->node_start[end] - at, groups = end - begin;
    const long first_edge = args->edge_start[begin], edges = args->edge_start[end] - first_edge;
    long *size = (long *)buffer, *source = size + groups, *target = source + edges;
    float *weight = (float *)(target + edges), *master_weight = weight + edges, *word_weight = master_weight + words;
    for (long g = begin; g < end; g++) {
        const long first = args->node_start[g] - at;
        size[g - begin] = args->node_start[g + 1] - args->node_start[g];
        for (long e = args->edge_start[g]; e < args->edge_start[g + 1]; e++)
            source[e - first_edge] = args->source[e] + first, target[e - first_edge] = args->target[e] + first;
    }
    const struct graph graph = {size, source, target, weight, master_weight, word_weight, 0, 0, 0, args->width, words, edges, groups,
                                args->width, args->master, 0, WORDS, args->mean};
    mpad_mean_weights(&graph, args->weight + first_edge);
    return graph;
}

/* Find each row's incoming message of the first round: a row of the tables or, as -1 - k, row k of `inbox`, where the means
 * are computed that no table has. Returns their number. */
static long NAME(first_messages)(const struct inference *args, const struct graph *graph, const int *words, const float *raw,
                                 float *inbox, long *message) {
    const long cached = args->message_gates && args->master && args->mean;
    long uncached = 0;
    for (long v = 0, e = 0; v < graph->rows; v++) {
        const long from = e;
        while (e < graph->edges && graph->target[e] == v) e++;
        if (cached && (e == from || (e == from + 1 && raw[from] == 1)))
            message[v] = e == from ? args->master_row : words[graph->source[from]];
        else message[v] = -1 - uncached++;
    }
    for (long g = 0; args->master && g < graph->groups; g++) message[graph->rows + g] = -1 - uncached++;
    struct graph mean = *graph;
    mean.x = args->sent, mean.bias = args->steps->mlp1_b, mean.y = inbox;
    NAME(aggregate_words)(&mean, 0, graph->groups, 0, 0, words, args->sent + args->master_row * args->width, message);
    return uncached;
}

static void NAME(prefetch)(const float *x, long n) {
    for (long c = 0; c < n; c += 16) __builtin_prefetch(x + c);
}

/* The first round: states and most messages come from tables. */
static void NAME(first_round)(const struct inference *args, const struct graph *graph, long begin, long rows, long *message,
                              float *workspace, float *h) {
    const long d = args->width, w_row = d % PANEL ? d : 0;
    const int *words = args->words + args->node_start[begin];
    const struct inference_step *step = args->steps;
    const float *w = step->update, *v = w + 5 * d * d, *w2 = v + d * d;
    float *inbox = workspace, *uncached = inbox + rows * d;
    const long n_uncached = NAME(first_messages)(args, graph, words, args->weight + args->edge_start[begin], inbox, message);
    float x[STRIP * WIDEST] __attribute__((aligned(64))), rzc[3 * STRIP * WIDEST] __attribute__((aligned(64)));
    for (long at = 0; at < n_uncached; at += STRIP) {
        const long n = n_uncached - at < STRIP ? n_uncached - at : STRIP;
        const float *m = inbox + at * d;
        if (step->mlp2_b) {
            NAME(map)(m, d, n, d, w2, w_row, d, step->mlp2_b, 0, x, d, args->relu ? RELU : PLAIN);
            m = x;
        }
        NAME(map)(m, d, n, d, w, 3 * w_row, 3 * d, step->bias, 0, uncached + at * 3 * d, 3 * d, PLAIN);
    }
    for (long at = 0; at < rows; at += STRIP) {
        const long n = rows - at < STRIP ? rows - at : STRIP;
        for (long r = 0; r < n; r++) {
            const long row = at + r, own = row < graph->rows ? words[row] : args->master_row, m = message[row];
            const float *state_gates = args->state_gates + own * 2 * d, *own_message = uncached + (-1 - m) * 3 * d;
            const float *gates = m < 0 ? own_message : args->message_gates + m * 2 * d;
            if (row + PREFETCH < rows) {
                const long next = row + PREFETCH < graph->rows ? words[row + PREFETCH] : args->master_row;
                NAME(prefetch)(args->states + next * d, d);
                NAME(prefetch)(args->state_gates + next * 2 * d, 2 * d);
                if (message[row + PREFETCH] >= 0) {
                    NAME(prefetch)(args->message_candidate + message[row + PREFETCH] * d, d);
                    NAME(prefetch)(args->message_gates + message[row + PREFETCH] * 2 * d, 2 * d);
                }
            }
            memcpy(x + r * d, args->states + own * d, d * sizeof(float));
            memcpy(rzc + (3 * r + 2) * d, m < 0 ? own_message + 2 * d : args->message_candidate + m * d, d * sizeof(float));
            for (long c = 0; c < 2 * d; c += V)
                *(vec *)(rzc + r * 3 * d + c) = *(const vec *)(state_gates + c) + *(const vec *)(gates + c);
        }
        NAME(gate)(x, d, rzc, v, w_row, n, d, h + at * d);
    }
}

static void NAME(next_round)(const struct inference *args, const struct inference_step *step, const struct graph *graph,
                             long rows, float *workspace, float *h) {
    const long d = args->width;
    float *x = h, *sent = workspace, *inbox = sent + rows * d;
    if (step->before1) {
        x = inbox + rows * d;
        NAME(linear)(&(struct linear){h, 0, step->before1_b, (float *)step->before1, sent, d, rows, d, d, 1}, 0, rows);
        NAME(linear)(&(struct linear){sent, 0, step->before2_b, (float *)step->before2, x, d, rows, d, d, 0}, 0, rows);
    }
    NAME(linear)(&(struct linear){x, 0, 0, (float *)step->mlp1, sent, d, rows, d, d, 0}, 0, rows);
    struct graph mean = *graph;
    mean.x = sent, mean.bias = step->mlp1_b, mean.y = inbox;
    NAME(aggregate_words)(&mean, 0, graph->groups, 0, 0, 0, 0, 0);
    NAME(update)(&(struct update){x, inbox, 0, step->mlp2_b, step->bias, 0, 0, 0, (float *)step->update, 0, 0, h, d, d, rows, d,
                                  args->relu}, 0, rows);
}

/* The mean vector of each graph's words: `vector_width` numbers at `to`, one graph every `all`. */
static void NAME(mean_vectors)(const struct inference *args, long begin, long end, float *to, long all) {
    for (long group = begin; group < end; group++, to += all) {
        const long from = args->node_start[group], n = args->node_start[group + 1] - from, width = args->vector_width;
        const float share = 1.0f / (float)(n ? n : 1);
        for (long j = 0; j < width; j++) to[j] = 0;
        for (long word = 0; word < n; word++) {
            const float *vector = args->vectors + args->words[from + word] * width;
            for (long j = 0; j < width; j++) to[j] += vector[j];
        }
        for (long j = 0; j < width; j++) to[j] *= share;
    }
}

/* Graphs begin .. end - 1: the output of each round's readout and the mean word vector, concatenated; and attention. */
static void NAME(infer)(const struct inference *args, long begin, long end) {
    const long d = args->width, at = args->node_start[begin], words = args->node_start[end] - at, groups = end - begin;
    const long rows = args->master ? words + groups : words, each = args->master ? 2 * d : d, all = args->n_steps * each + args->vector_width;
    float *h = args->scratch, *pooled = h + rows * d, *mapped = pooled + groups * d, *workspace = mapped + groups * d;
    long *message = (long *)(workspace + 4 * rows * d);
    const struct graph graph = NAME(chunk_graph)(args, begin, end, (float *)(message + rows));
    if (args->vectors) NAME(mean_vectors)(args, begin, end, args->read + begin * all + args->n_steps * each, all);
    for (long t = 0; t < args->n_steps; t++) {
        const struct inference_attention *attention = args->attention + t;
        float *alpha = args->alpha + t * args->nodes + at, *to = args->read + begin * all + t * each;
        if (t == 0) NAME(first_round)(args, &graph, begin, rows, message, workspace, h);
        else NAME(next_round)(args, args->steps + t, &graph, rows, workspace, h);
        NAME(attention)(&(struct attention){graph.size, h, 0, attention->align_b, attention->context, 0, attention->dense_b,
                                            (float *)attention->maps, 0, alpha, alpha, pooled, mapped, to, d, all, words, groups, d,
                                            args->bounded, args->master}, 0, groups, 0);
    }
}
