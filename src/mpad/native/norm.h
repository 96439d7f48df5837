/* Batch normalisation over rows (nn/norm.py), for one kind of processor; see maps.h. */

/* Sums of rows first .. last - 1, or of squared distances from `centre`, block by block: long sums lose less. */
static void NAME(norm_sums)(const struct norm *of, const float *centre, long first, long last, float *sums) {
    for (long c = 0; c < of->width; c += V) {
        vec middle = centre ? *(const vec *)(centre + c) : NAME(all)(0), total = NAME(all)(0);
        for (long r = first; r < last;) {
            vec some = NAME(all)(0);
            for (long end = r + BLOCK < last ? r + BLOCK : last; r < end; r++) {
                vec x = *(const vec *)(of->x + r * of->x_row + c) - middle;
                some += centre ? (vec)(x * x) : x;
            }
            total += some;
        }
        *(vec *)(sums + c) = total;
    }
}

static void NAME(norm)(const struct norm *of, long first, long last) {
    for (long r = first; r < last; r++)
        for (long c = 0; c < of->width; c += V) {
            vec x = (*(const vec *)(of->x + r * of->x_row + c) - *(const vec *)(of->mean + c)) * *(const vec *)(of->scale + c);
            x = x * *(const vec *)(of->gamma + c) + *(const vec *)(of->beta + c);
            *(vec *)(of->y + r * of->width + c) = NAME(activated)(x, of->relu ? RELU : PLAIN);
        }
}

/* Gradients of gamma and beta, of rows first .. last - 1. */
static void NAME(norm_back_sums)(const struct norm_back *of, long first, long last, float *found) {
    for (long c = 0; c < of->width; c += V) {
        vec mean = *(const vec *)(of->mean + c), d_gamma = NAME(all)(0), d_beta = NAME(all)(0);
        for (long r = first; r < last;) {
            vec some_gamma = NAME(all)(0), some_beta = NAME(all)(0);
            for (long end = r + BLOCK < last ? r + BLOCK : last; r < end; r++) {
                vec g = *(const vec *)(of->g + r * of->g_row + c);
                if (of->relu) g = NAME(choose)(*(const vec *)(of->y + r * of->width + c) > 0, g, NAME(all)(0));
                some_gamma += g * (*(const vec *)(of->x + r * of->x_row + c) - mean);
                some_beta += g;
            }
            d_gamma += some_gamma, d_beta += some_beta;
        }
        *(vec *)(found + c) = d_gamma * *(const vec *)(of->scale + c);
        *(vec *)(found + of->width + c) = d_beta;
    }
}

/* Gradients of rows first .. last - 1; `found` has those of gamma and beta. */
static void NAME(norm_back)(const struct norm_back *of, long first, long last) {
    const float share = 1.0f / of->rows;
    for (long r = first; r < last; r++)
        for (long c = 0; c < of->width; c += V) {
            vec g = *(const vec *)(of->g + r * of->g_row + c), scale = *(const vec *)(of->scale + c);
            if (of->relu) g = NAME(choose)(*(const vec *)(of->y + r * of->width + c) > 0, g, NAME(all)(0));
            vec x = (*(const vec *)(of->x + r * of->x_row + c) - *(const vec *)(of->mean + c)) * scale;
            vec d_gamma = *(const vec *)(of->found + c), d_beta = *(const vec *)(of->found + of->width + c);
            *(vec *)(of->d_x + r * of->width + c) = scale * *(const vec *)(of->gamma + c) * (g - (d_beta + x * d_gamma) * share);
        }
}
