/* Whole answers over graphs of words (mpad/runtime/fused.py), some graphs at a time, for one kind of processor; see
 * gemm.h. Nothing between two rounds leaves the cache. */

/* What some rows of `says` add up to, times `share`, with a bias and ReLU. */
static void NAME(aggregate_words)(const struct answers *of, const int *words, const int *which, const float *weight, long n,
                             int master, float share, float *to) {
    const long d = of->width;
    for (long k = 0; k < d; k += V) {
        vec sum = master ? *(const vec *)(of->says + of->nobody * d + k) : NAME(all)(0);
        for (long first = 0; first < n; first += BLOCK) { /* long sums lose less */
            vec part = NAME(all)(0);
            for (long i = first; i < n && i < first + BLOCK; i++)
                part += (weight ? weight[i] : 1) * *(const vec *)(of->says + (long)words[which ? which[i] : i] * d + k);
            sum += part;
        }
        *(vec *)(to + k) = NAME(activated)(sum * share + *(const vec *)(of->steps->bias + k), RELU);
    }
}

/* Where each row finds what it is told at the first round: at a word's number in the tables; or, as -1 - k, in row k of
 * what `heard` becomes. Gives the number of such rows. */
static long NAME(listen)(const struct answers *of, long begin, long end, float *heard, long *told) {
    const long d = of->width, tables = of->told_gates && of->master && of->mean;
    long rest = 0;
    for (long g = begin; g < end; g++) {
        const int *words = of->words + of->node_start[g];
        const long n = of->node_start[g + 1] - of->node_start[g];
        for (long v = 0, e = of->edge_start[g]; v < n; v++) {
            const long from = e;
            float degree = of->master ? 1 : 0;
            for (; e < of->edge_start[g + 1] && of->target[e] == v; e++) degree += of->weight[e];
            if (tables && (e == from || (e == from + 1 && of->weight[from] == 1))) {
                *told++ = e == from ? of->nobody : words[of->source[from]];
                continue;
            }
            const float share = !of->mean ? 1 : degree > 0 ? 1 / degree : 0;
            NAME(aggregate_words)(of, words, of->source + from, of->weight + from, e - from, of->master, share, heard + rest * d);
            *told++ = -1 - rest++;
        }
    }
    for (long g = begin; of->master && g < end; g++) {
        const long n = of->node_start[g + 1] - of->node_start[g];
        NAME(aggregate_words)(of, of->words + of->node_start[g], 0, 0, n, 0, of->mean && n ? 1.0f / n : 1, heard + rest * d);
        *told++ = -1 - rest++;
    }
    return rest;
}

static void NAME(first_round)(const struct answers *of, long begin, long end, long words, long rows, float *workspace, float *h) {
    const long d = of->width;
    const struct answer_step *by = of->steps;
    float *heard = workspace, *message = heard + rows * d, *gates = message + rows * d, *new = gates + 2 * rows * d;
    long *told = (long *)(new + rows * d), *own = told + rows;
    const long rest = NAME(listen)(of, begin, end, heard, told);
    if (by->mlp2) NAME(affine)(heard, rest, d, by->mlp2, d, by->mlp2_b, 0, message, of->relu ? RELU : PLAIN);
    else message = heard;
    NAME(affine)(message, rest, d, by->gates, 2 * d, 0, 0, gates, PLAIN);
    NAME(affine)(message, rest, d, by->candidate, d, by->candidate_b, 0, new, PLAIN);
    for (long row = 0; row < rows; row++) own[row] = row < words ? of->words[of->node_start[begin] + row] : of->nobody;
    const struct combine all = {own, told, of->states, of->gates, of->told_gates, of->told_new, gates, new, by->reset};
    NAME(combine)(&all, rows, d, h);
}

static void NAME(next_round)(const struct answers *of, const struct answer_step *by, long begin, long end, long rows,
                             float *workspace, float *h) {
    const long d = of->width;
    float *x = h, *says = workspace, *heard = says + rows * d;
    if (by->enter) {
        x = heard + rows * d;
        NAME(affine)(h, rows, d, by->enter, d, by->enter_b, 0, says, RELU);
        NAME(affine)(says, rows, d, by->second, d, by->second_b, 0, x, PLAIN);
    }
    NAME(affine)(x, rows, d, by->sent, d, 0, 0, says, PLAIN);
    const struct graphs some = {of->node_start + begin, of->edge_start + begin, of->source, of->target, of->weight,
                                end - begin, of->master, of->mean};
    NAME(aggregate)(&some, says, d, by->bias, heard);
    float m[STRIP * WIDEST] __attribute__((aligned(64))), g[2 * STRIP * WIDEST] __attribute__((aligned(64)));
    float c[STRIP * WIDEST] __attribute__((aligned(64)));
    for (long first = 0; first < rows; first += STRIP) {
        const long n = rows - first < STRIP ? rows - first : STRIP;
        const float *message = heard + first * d;
        if (by->mlp2) {
            NAME(affine)(message, n, d, by->mlp2, d, by->mlp2_b, 0, m, of->relu ? RELU : PLAIN);
            message = m;
        }
        NAME(affine)(x + first * d, n, d, by->u, 2 * d, by->u_b, 0, g, PLAIN);
        NAME(affine)(message, n, d, by->gates, 2 * d, 0, 1, g, PLAIN);
        NAME(affine)(message, n, d, by->candidate, d, by->candidate_b, 0, c, PLAIN);
        NAME(gate)(x + first * d, g, c, by->reset, n, d, h + first * d);
    }
}

/* Graphs begin .. end - 1: what each round's readout gives, side by side, and its attention. */
static void NAME(answer)(const struct answers *of, long begin, long end) {
    const long d = of->width, at = of->node_start[begin], words = of->node_start[end] - at, groups = end - begin;
    const long rows = of->master ? words + groups : words, each = of->master ? 2 * d : d, all = of->n * each;
    float *h = of->scratch, *pooled = h + rows * d, *mapped = pooled + groups * d, *workspace = mapped + groups * d;
    for (long t = 0; t < of->n; t++) {
        const struct answer_read *by = of->reads + t;
        if (t == 0) NAME(first_round)(of, begin, end, words, rows, workspace, h);
        else NAME(next_round)(of, of->steps + t, begin, end, rows, workspace, h);
        NAME(attend)(h, of->node_start + begin, groups, d, by->align, by->align_b, by->context, of->bounded,
                     of->alpha + t * of->nodes + at, pooled);
        if (by->dense) NAME(affine)(pooled, groups, d, by->dense, d, by->dense_b, 0, mapped, RELU);
        const float *from = by->dense ? mapped : pooled;
        float *to = of->read + begin * all + t * each;
        copy_rows(to, all, from, d, groups, d);
        if (of->master) copy_rows(to + d, all, h + words * d, d, groups, d);
    }
}
