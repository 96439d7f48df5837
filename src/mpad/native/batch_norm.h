/* Batch normalization over rows (BatchNorm in mpad/model.py), for one kind of processor; see gemm.h. */

/* Means of rows first .. last - 1 and sums of squared deviations, block by block while a block is in the cache (Chan,
 * Golub and LeVeque, 1979). */
static void NAME(norm_moments)(const struct norm *args, long first, long last, float *mean) {
    const long d = args->width;
    float *squares = mean + d;
    memset(mean, 0, 2 * d * sizeof(float));
    for (long at = first; at < last; at += BLOCK) {
        const long n = last - at < BLOCK ? last - at : BLOCK, seen = at - first;
        for (long c = 0; c < d; c += V) {
            const float *x = args->x + at * args->x_row + c;
            vec sum = NAME(broadcast)(0), sum_of_squares = NAME(broadcast)(0);
            for (long r = 0; r < n; r++) sum += *(const vec *)(x + r * args->x_row);
            const vec middle = sum * (1.0f / n), delta = middle - *(const vec *)(mean + c);
            for (long r = 0; r < n; r++) {
                vec deviation = *(const vec *)(x + r * args->x_row) - middle;
                sum_of_squares += deviation * deviation;
            }
            *(vec *)(squares + c) += sum_of_squares + delta * delta * ((float)seen * n / (seen + n));
            *(vec *)(mean + c) += delta * ((float)n / (seen + n));
        }
    }
}

static inline vec NAME(normal)(const float *x, const float *mean, const float *scale, long c) {
    return (*(const vec *)(x + c) - *(const vec *)(mean + c)) * *(const vec *)(scale + c);
}

static void NAME(norm)(const struct norm *args, long first, long last) {
    for (long r = first; r < last; r++)
        for (long c = 0; c < args->width; c += V) {
            vec y = NAME(normal)(args->x + r * args->x_row, args->mean, args->scale, c) * *(const vec *)(args->gamma + c);
            *(vec *)(args->y + r * args->width + c) = NAME(activated)(y + *(const vec *)(args->beta + c), args->relu ? RELU : PLAIN);
        }
}

/* The upstream gradient behind the ReLU, if one follows: 0 where its output was 0. */
static inline vec NAME(norm_upstream)(const struct norm_back *args, long r, long c, vec normal) {
    vec g = *(const vec *)(args->g + r * args->g_row + c);
    if (!args->relu) return g;
    return NAME(select)(normal * *(const vec *)(args->gamma + c) + *(const vec *)(args->beta + c) <= 0, NAME(broadcast)(0), g);
}

/* Gradients of gamma and beta, of rows first .. last - 1. */
static void NAME(norm_back_sums)(const struct norm_back *args, long first, long last, float *grads) {
    const long d = args->width;
    memset(grads, 0, 2 * d * sizeof(float));
    for (long at = first; at < last; at += BLOCK) {
        const long end = at + BLOCK < last ? at + BLOCK : last;
        for (long c = 0; c < d; c += V) {
            vec d_gamma = NAME(broadcast)(0), d_beta = NAME(broadcast)(0);
            for (long r = at; r < end; r++) {
                vec x = NAME(normal)(args->x + r * args->x_row, args->mean, args->scale, c), g = NAME(norm_upstream)(args, r, c, x);
                d_gamma += g * x, d_beta += g;
            }
            *(vec *)(grads + c) += d_gamma;
            *(vec *)(grads + d + c) += d_beta;
        }
    }
}

/* Gradients of rows first .. last - 1, from those of gamma and beta in `grads`. */
static void NAME(norm_back)(const struct norm_back *args, long first, long last) {
    const float share = 1.0f / args->rows;
    for (long r = first; r < last; r++)
        for (long c = 0; c < args->width; c += V) {
            vec x = NAME(normal)(args->x + r * args->x_row, args->mean, args->scale, c), g = NAME(norm_upstream)(args, r, c, x);
            vec d_gamma = *(const vec *)(args->grads + c), d_beta = *(const vec *)(args->grads + args->width + c);
            *(vec *)(args->d_x + r * args->width + c) =
                *(const vec *)(args->scale + c) * *(const vec *)(args->gamma + c) * (g - (d_beta + x * d_gamma) * share);
        }
}
