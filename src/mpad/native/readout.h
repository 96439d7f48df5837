/* The readout (Readout in mpad/model.py), forwards and backwards: attention over each round's rows [a dense layer with
 * ReLU], next to it the master rows; all rounds concatenated; batch norm; a dense layer with ReLU. */

struct readout_parts { float *moments, *joined, *normal, *rounds; };

static struct readout_parts readout_parts(float *saved, long groups, long all) {
    float *joined = saved + 2 * all;
    return (struct readout_parts){saved, joined, joined + groups * all, joined + 2 * groups * all};
}

struct round_readout_parts { float *y, *score, *pooled, *mapped; };

static struct round_readout_parts round_readout_parts(float *rounds, long round, long words, long groups, long d) {
    float *y = rounds + round * (words * (d + 1) + 2 * groups * d), *score = y + words * d, *pooled = score + words;
    return (struct round_readout_parts){y, score, pooled, pooled + groups * d};
}

void mpad_readout(const struct readout *args, long threads) {
    const long words = args->words, groups = args->groups, d = args->width, each = args->master ? 2 * d : d, all = args->n * each;
    const struct readout_parts whole = readout_parts(args->saved, groups, all);
    for (long t = 0; t < args->n; t++) {
        const struct readout_round *round = args->rounds + t;
        const struct round_readout_parts at = round_readout_parts(whole.rounds, t, words, groups, d);
        run_attention(&(struct attention){args->size, round->h, round->a, round->b, round->v, round->dense, round->dense_b, args->scratch,
                                          at.y, at.score, round->alpha, at.pooled, at.mapped, whole.joined + t * each, round->h_row, all,
                                          words, groups, d, args->bounded, args->master}, threads);
    }
    run_norm(&(struct norm){whole.joined, args->norm.gamma, args->norm.beta, 0, args->norm.running_mean, args->norm.running_var,
                             whole.moments, whole.moments + all, args->scratch, whole.normal, all, groups, all, 0, args->by_batch,
                             args->momentum, args->eps}, threads);
    run_linear(&(struct linear){whole.normal, args->dense, args->dense_b, args->scratch, args->out, all, groups, all, d, 1}, threads);
}

/* `grads`: weights and biases of the dense layer, gamma, beta; then per round [weights and biases of its dense layer,] A[, its
 * bias], the context. */
void mpad_readout_back(const struct readout *args, long threads) {
    const long words = args->words, groups = args->groups, d = args->width, each = args->master ? 2 * d : d, all = args->n * each;
    const struct readout_parts whole = readout_parts(args->saved, groups, all);
    float *d_normal = args->scratch, *d_joined = d_normal + groups * all, *d_pooled = d_joined + groups * all;
    float *workspace = d_pooled + groups * d, *grads = args->grads;
    run_linear_back(&(struct linear_back){args->g, whole.normal, args->out, args->dense, d_normal, workspace, args->g_row, all, groups, all,
                                           d, d * (all + 1 + BLOCK), 0}, threads);
    grads = copy_grads(grads, workspace, d * (all + 1));
    run_norm_back(&(struct norm_back){d_normal, whole.joined, args->norm.gamma, args->norm.beta, whole.moments,
                                       whole.moments + all, d_joined, workspace, all, all, groups, all, 0}, threads);
    grads = copy_grads(grads, workspace, 2 * all);
    for (long t = 0; t < args->n; t++) {
        const struct readout_round *round = args->rounds + t;
        const struct round_readout_parts at = round_readout_parts(whole.rounds, t, words, groups, d);
        const float *upstream = d_joined + t * each;
        if (round->dense) {
            run_linear_back(&(struct linear_back){upstream, at.pooled, at.mapped, round->dense, d_pooled, workspace, all, d, groups, d, d,
                                                   d * (d + 1 + BLOCK), 0}, threads);
            grads = copy_grads(grads, workspace, d * (d + 1));
        }
        run_attention_back(&(struct attention_back){args->size, round->dense ? d_pooled : upstream, round->h, round->a, round->v, at.y, at.score,
                                                     round->alpha, round->d_h, workspace, round->dense ? d : all, round->h_row, words, groups, d,
                                                     args->bounded, d * (d + 2 + BLOCK)}, threads);
        grads = copy_grads(grads, workspace, round->b ? d * (d + 1) : d * d);
        grads = copy_grads(grads, workspace + d * (d + 1), d);
        if (args->master) copy_rows(round->d_h + words * d, d, d_joined + t * each + d, all, groups, d);
    }
}
