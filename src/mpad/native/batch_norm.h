/* Batch normalisation over rows (mpad/ops/batch_norm.py), for one kind of processor; see gemm.h. */

/* Means of rows first .. last - 1, then sums of squared distances from them: block by block, while a block is in the cache. */
static void NAME(norm_moments)(const struct norm *of, long first, long last, float *mean) {
    const long d = of->width;
    float *squares = mean + d;
    memset(mean, 0, 2 * d * sizeof(float));
    for (long at = first; at < last; at += BLOCK) {
        const long n = last - at < BLOCK ? last - at : BLOCK, before = at - first;
        for (long c = 0; c < d; c += V) {
            const float *x = of->x + at * of->x_row + c;
            vec sum = NAME(all)(0), some = NAME(all)(0);
            for (long r = 0; r < n; r++) sum += *(const vec *)(x + r * of->x_row);
            const vec middle = sum * (1.0f / n), apart = middle - *(const vec *)(mean + c);
            for (long r = 0; r < n; r++) {
                vec away = *(const vec *)(x + r * of->x_row) - middle;
                some += away * away;
            }
            *(vec *)(squares + c) += some + apart * apart * ((float)before * n / (before + n));
            *(vec *)(mean + c) += apart * ((float)n / (before + n));
        }
    }
}

static inline vec NAME(normal)(const float *x, const float *mean, const float *scale, long c) {
    return (*(const vec *)(x + c) - *(const vec *)(mean + c)) * *(const vec *)(scale + c);
}

static void NAME(norm)(const struct norm *of, long first, long last) {
    for (long r = first; r < last; r++)
        for (long c = 0; c < of->width; c += V) {
            vec y = NAME(normal)(of->x + r * of->x_row, of->mean, of->scale, c) * *(const vec *)(of->gamma + c);
            *(vec *)(of->y + r * of->width + c) = NAME(activated)(y + *(const vec *)(of->beta + c), of->relu ? RELU : PLAIN);
        }
}

/* What reaches the norm of its gradient: nothing where a ReLU followed and gave 0. */
static inline vec NAME(norm_given)(const struct norm_back *of, long r, long c, vec normal) {
    vec g = *(const vec *)(of->g + r * of->g_row + c);
    if (!of->relu) return g;
    return NAME(choose)(normal * *(const vec *)(of->gamma + c) + *(const vec *)(of->beta + c) <= 0, NAME(all)(0), g);
}

/* Gradients of gamma and beta, of rows first .. last - 1. */
static void NAME(norm_back_sums)(const struct norm_back *of, long first, long last, float *grads) {
    const long d = of->width;
    memset(grads, 0, 2 * d * sizeof(float));
    for (long at = first; at < last; at += BLOCK) {
        const long end = at + BLOCK < last ? at + BLOCK : last;
        for (long c = 0; c < d; c += V) {
            vec d_gamma = NAME(all)(0), d_beta = NAME(all)(0);
            for (long r = at; r < end; r++) {
                vec x = NAME(normal)(of->x + r * of->x_row, of->mean, of->scale, c), g = NAME(norm_given)(of, r, c, x);
                d_gamma += g * x, d_beta += g;
            }
            *(vec *)(grads + c) += d_gamma;
            *(vec *)(grads + d + c) += d_beta;
        }
    }
}

/* Gradients of rows first .. last - 1; `grads` has those of gamma and beta. */
static void NAME(norm_back)(const struct norm_back *of, long first, long last) {
    const float share = 1.0f / of->rows;
    for (long r = first; r < last; r++)
        for (long c = 0; c < of->width; c += V) {
            vec x = NAME(normal)(of->x + r * of->x_row, of->mean, of->scale, c), g = NAME(norm_given)(of, r, c, x);
            vec d_gamma = *(const vec *)(of->grads + c), d_beta = *(const vec *)(of->grads + of->width + c);
            *(vec *)(of->d_x + r * of->width + c) =
                *(const vec *)(of->scale + c) * *(const vec *)(of->gamma + c) * (g - (d_beta + x * d_gamma) * share);
        }
}
