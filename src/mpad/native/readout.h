/* The pooling of each round's rows (Readout.pool in mpad/model.py), forwards and backwards: attention [a dense layer with
 * ReLU], next to it the master rows; all rounds concatenated. */

struct round_readout_parts { float *y, *score, *pooled, *mapped; };

static struct round_readout_parts round_readout_parts(float *rounds, long round, long words, long groups, long d) {
    float *y = rounds + round * (words * (d + 1) + 2 * groups * d), *score = y + words * d, *pooled = score + words;
    return (struct round_readout_parts){y, score, pooled, pooled + groups * d};
}

void mpad_readout(const struct readout *args, long threads) {
    const long words = args->words, groups = args->groups, d = args->width, each = args->master ? 2 * d : d, all = args->n * each;
    for (long t = 0; t < args->n; t++) {
        const struct readout_round *round = args->rounds + t;
        const struct round_readout_parts at = round_readout_parts(args->saved, t, words, groups, d);
        run_attention(&(struct attention){args->size, round->h, round->a, round->b, round->v, round->dense, round->dense_b, args->scratch,
                                          at.y, at.score, round->alpha, at.pooled, at.mapped, args->out + t * each, round->h_row, all,
                                          words, groups, d, args->bounded, args->master}, threads);
    }
}

/* `grads`, per round: [weights and biases of its dense layer,] A[, its bias], the context. */
void mpad_readout_back(const struct readout *args, long threads) {
    const long words = args->words, groups = args->groups, d = args->width, each = args->master ? 2 * d : d;
    float *d_pooled = args->scratch, *workspace = d_pooled + groups * d, *grads = args->grads;
    for (long t = 0; t < args->n; t++) {
        const struct readout_round *round = args->rounds + t;
        const struct round_readout_parts at = round_readout_parts(args->saved, t, words, groups, d);
        const float *upstream = args->g + t * each;
        if (round->dense) {
            run_linear_back(&(struct linear_back){upstream, at.pooled, at.mapped, round->dense, d_pooled, workspace, args->g_row, d, groups, d, d,
                                                   d * (d + 1 + BLOCK), 0}, threads);
            grads = copy_grads(grads, workspace, d * (d + 1));
        }
        run_attention_back(&(struct attention_back){args->size, round->dense ? d_pooled : upstream, round->h, round->a, round->v, at.y, at.score,
                                                     round->alpha, round->d_h, workspace, round->dense ? d : args->g_row, round->h_row, words,
                                                     groups, d, args->bounded, d * (d + 2 + BLOCK)}, threads);
        grads = copy_grads(grads, workspace, round->b ? d * (d + 1) : d * d);
        grads = copy_grads(grads, workspace + d * (d + 1), d);
        if (args->master) copy_rows(round->d_h + words * d, d, upstream + d, args->g_row, groups, d);
    }
}
