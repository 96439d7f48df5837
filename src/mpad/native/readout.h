/* All that a level reads out of its rounds (mpad/ops/readout.py), both ways: attention over each round's rows [a dense layer
 * with ReLU on that], the rows behind the words, all of it side by side, batch norm, a dense layer with ReLU. */

struct read_parts { float *moments, *joined, *normal, *of_rounds; };

static struct read_parts read_parts(float *saved, long groups, long all) {
    float *joined = saved + 2 * all;
    return (struct read_parts){saved, joined, joined + groups * all, joined + 2 * groups * all};
}

struct reading_parts { float *y, *score, *pooled, *mapped; };

static struct reading_parts reading_parts(float *of_rounds, long round, long words, long groups, long d) {
    float *y = of_rounds + round * (words * (d + 1) + 2 * groups * d), *score = y + words * d, *pooled = score + words;
    return (struct reading_parts){y, score, pooled, pooled + groups * d};
}

void mpad_readouts(const struct readouts *of, long threads) {
    const long words = of->words, groups = of->groups, d = of->width, each = of->behind ? 2 * d : d, all = of->n * each;
    const struct read_parts whole = read_parts(of->saved, groups, all);
    for (long t = 0; t < of->n; t++) {
        const struct reading *by = of->rounds + t;
        const struct reading_parts at = reading_parts(whole.of_rounds, t, words, groups, d);
        float *to = whole.joined + t * each;
        mpad_attention(&(struct attention){of->size, by->h, by->a, by->b, by->v, of->scratch, at.y, at.score, by->alpha,
                                           at.pooled, by->h_row, words, groups, d, of->bounded}, threads);
        if (by->dense)
            mpad_linear(&(struct linear){at.pooled, by->dense, by->dense_b, of->scratch, at.mapped, d, groups, d, d, 1}, threads);
        copy_rows(to, all, by->dense ? at.mapped : at.pooled, d, groups, d);
        if (of->behind) copy_rows(to + d, all, by->h + words * by->h_row, by->h_row, groups, d);
    }
    mpad_norm(&(struct norm){whole.joined, of->norm.gamma, of->norm.beta, 0, of->norm.running_mean, of->norm.running_var,
                             whole.moments, whole.moments + all, of->scratch, whole.normal, all, groups, all, 0, of->by_batch,
                             of->momentum, of->eps}, threads);
    mpad_linear(&(struct linear){whole.normal, of->dense, of->dense_b, of->scratch, of->out, all, groups, all, d, 1}, threads);
}

/* `grads`: the dense layer's weights and biases, gamma, beta; of each round [the dense layer's weights and biases,] A, its
 * bias, the context. */
void mpad_readouts_back(const struct readouts_back *of, long threads) {
    const long words = of->words, groups = of->groups, d = of->width, each = of->behind ? 2 * d : d, all = of->n * each;
    const struct read_parts whole = read_parts(of->saved, groups, all);
    float *d_normal = of->scratch, *d_joined = d_normal + groups * all, *d_pooled = d_joined + groups * all;
    float *workspace = d_pooled + groups * d, *grads = of->grads;
    mpad_linear_back(&(struct linear_back){of->g, whole.normal, of->out, of->dense, d_normal, workspace, of->g_row, all, groups, all,
                                           d, d * (all + 1 + BLOCK), 0}, threads);
    grads = keep(grads, workspace, d * (all + 1));
    mpad_norm_back(&(struct norm_back){d_normal, whole.joined, of->norm.gamma, of->norm.beta, whole.moments,
                                       whole.moments + all, d_joined, workspace, all, all, groups, all, 0}, threads);
    grads = keep(grads, workspace, 2 * all);
    for (long t = 0; t < of->n; t++) {
        const struct reading *by = of->rounds + t;
        const struct reading_parts at = reading_parts(whole.of_rounds, t, words, groups, d);
        const float *given = d_joined + t * each;
        if (by->dense) {
            mpad_linear_back(&(struct linear_back){given, at.pooled, at.mapped, by->dense, d_pooled, workspace, all, d, groups, d, d,
                                                   d * (d + 1 + BLOCK), 0}, threads);
            grads = keep(grads, workspace, d * (d + 1));
        }
        mpad_attention_back(&(struct attention_back){of->size, by->dense ? d_pooled : given, by->h, by->a, by->v, at.y, at.score,
                                                     by->alpha, by->d_h, workspace, by->dense ? d : all, by->h_row, words, groups, d,
                                                     of->bounded, d * (d + 2 + BLOCK)}, threads);
        grads = keep(grads, workspace, d * (d + 2));
        if (of->behind) copy_rows(by->d_h + words * d, d, d_joined + t * each + d, all, groups, d);
    }
}
