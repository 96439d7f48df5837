/* Batches of a corpus (mpad/graph/batch.py) and the weights of AGGREGATE's mean (kernels/cpu.py). */

/* Count the graphs, nodes and edges of some documents; return 0 if a document does not exist. */
int mpad_count(const struct corpus *args, const long *documents, long n, long *counts) {
    counts[0] = counts[1] = counts[2] = 0;
    for (long k = 0; k < n; k++) {
        const long document = documents[k];
        if (document < 0 || document >= args->documents) return 0;
        counts[0] += args->n_graphs[document];
        for (long g = args->first_graph[document]; g < args->first_graph[document] + args->n_graphs[document]; g++)
            counts[1] += args->n_nodes[g], counts[2] += args->n_edges[g];
    }
    return 1;
}

/* Copy some documents into a batch. */
void mpad_take(const struct corpus *args, const long *documents, long n, const struct batch *to) {
    long graph = 0, node = 0, edge = 0;
    for (long k = 0; k < n; k++) {
        const long first = args->first_graph[documents[k]], count = args->n_graphs[documents[k]];
        to->graph_count[k] = count;
        for (long g = first; g < first + count; g++, graph++) {
            const long nodes = args->n_nodes[g], edges = args->n_edges[g], from = args->first_node[g], at = args->first_edge[g];
            to->size[graph] = nodes, to->graph_owner[graph] = k;
            for (long i = 0; i < nodes; i++) to->words[node + i] = args->words[from + i], to->owner[node + i] = graph;
            for (long i = 0; i < edges; i++) {
                to->source[edge + i] = args->source[at + i] + node, to->target[edge + i] = args->target[at + i] + node;
                to->weight[edge + i] = args->weight[at + i];
            }
            node += nodes, edge += edges;
        }
    }
}

/* D^-1 A: raw edge weights divided by their target's in-degree (which includes the master's edge of weight 1), the weight of
 * the master in each word's mean, and the weight of a word in its master's mean; without `mean`, A itself. */
void mpad_mean_weights(const struct graph *args, const float *raw) {
    for (long i = 0; i < args->rows; i++) args->master_weight[i] = !args->mean;
    for (long e = 0; args->mean && e < args->edges; e++) args->master_weight[args->target[e]] += raw[e];
    for (long i = 0; args->mean && i < args->rows; i++) {
        const float least = 1.17549435e-38f, degree = args->master_weight[i];
        args->master_weight[i] = 1 / (args->master ? degree + 1 : degree < least ? least : degree);
    }
    for (long e = 0; e < args->edges; e++) args->weight[e] = raw[e] * args->master_weight[args->target[e]];
    for (long g = 0; g < args->groups; g++) args->word_weight[g] = 1 / (float)(args->mean && args->size[g] > 1 ? args->size[g] : 1);
}

/* Find the distinct words, in order of first occurrence, and the place of each word among them; the place of the `masters`
 * that follow is after the last. `place` has `known` numbers, all -1 before and after. Returns the number of distinct
 * words, or -1 if a word is not below `known`. */
long mpad_distinct(const long *words, long n, long masters, long known, int *place, long *distinct, long *index) {
    long n_distinct = 0;
    for (long i = 0; i < n; i++)
        if (words[i] < 0 || words[i] >= known) return -1;
    for (long i = 0; i < n; i++) {
        if (place[words[i]] < 0) place[words[i]] = (int)n_distinct, distinct[n_distinct++] = words[i];
        index[i] = place[words[i]];
    }
    for (long i = 0; i < masters; i++) index[n + i] = n_distinct;
    for (long i = 0; i < n_distinct; i++) place[distinct[i]] = -1;
    return n_distinct;
}
