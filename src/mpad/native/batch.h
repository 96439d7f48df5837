/* Cutting a batch out of a corpus (graph/batch.py), and what its edges weigh (mpad/ops/graph.py). */

/* Graphs, nodes and edges of some documents; false if there are no such documents. */
int mpad_count(const struct corpus *of, const long *documents, long n, long *counts) {
    counts[0] = counts[1] = counts[2] = 0;
    for (long k = 0; k < n; k++) {
        const long document = documents[k];
        if (document < 0 || document >= of->documents) return 0;
        counts[0] += of->n_graphs[document];
        for (long g = of->first_graph[document]; g < of->first_graph[document] + of->n_graphs[document]; g++)
            counts[1] += of->n_nodes[g], counts[2] += of->n_edges[g];
    }
    return 1;
}

void mpad_take(const struct corpus *of, const long *documents, long n, const struct batch *to) {
    long graph = 0, node = 0, edge = 0;
    for (long k = 0; k < n; k++) {
        const long first = of->first_graph[documents[k]], count = of->n_graphs[documents[k]];
        to->graph_count[k] = count;
        for (long g = first; g < first + count; g++, graph++) {
            const long nodes = of->n_nodes[g], edges = of->n_edges[g], from = of->first_node[g], at = of->first_edge[g];
            to->size[graph] = nodes, to->graph_owner[graph] = k;
            for (long i = 0; i < nodes; i++) to->words[node + i] = of->words[from + i], to->owner[node + i] = graph;
            for (long i = 0; i < edges; i++) {
                to->source[edge + i] = of->source[at + i] + node, to->target[edge + i] = of->target[at + i] + node;
                to->weight[edge + i] = of->weight[at + i];
            }
            node += nodes, edge += edges;
        }
    }
}

/* Weights of edges, divided by all that come to their target (a master's 1 among them); what that leaves for the master;
 * and a word's share in its master. */
void mpad_shares(const struct shares *of) {
    for (long i = 0; i < of->words; i++) of->share[i] = 0;
    for (long e = 0; e < of->edges; e++) of->share[of->target[e]] += of->weight[e];
    for (long i = 0; i < of->words; i++) {
        const float least = 1.17549435e-38f, degree = of->share[i];
        of->share[i] = 1 / (of->master ? degree + 1 : degree < least ? least : degree);
    }
    for (long e = 0; e < of->edges; e++) of->divided[e] = of->weight[e] * of->share[of->target[e]];
    for (long g = 0; g < of->graphs; g++) of->part[g] = 1 / (float)(of->size[g] > 1 ? of->size[g] : 1);
}

/* Distinct words in the order in which they first come, and the place of each word among them; of `masters` that follow,
 * one behind all. `place` has a number for each of the `known` words, all -1, and is left so. -1 if a word is none of
 * them. */
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
