/* The graphs over the sentences of each document (SentenceGraph in mpad/model.py). */

/* AGGREGATE over sentences: the sum or mean of the others (clique), or the previous one (path; the next one in its
 * derivative). With a bias, ReLU(y + bias). */
static void aggregate_sentences(const struct sentence_graph *args) {
    const float *x = args->x;
    float *y = args->y, sum[WIDEST];
    for (long k = 0; k < args->documents; k++) {
        const long n = args->size[k];
        const float share = args->mean && n > 2 ? 1.0f / (n - 1) : 1;
        for (long first = 0; first < args->width; first += WIDEST) { /* columns */
            const long d = args->width - first < WIDEST ? args->width - first : WIDEST;
            for (long c = 0; c < d; c++) sum[c] = 0;
            for (long r = 0; args->kind == 0 && r < n; r++)
                for (long c = 0; c < d; c++) sum[c] += x[r * args->x_row + first + c];
            for (long r = 0; r < n; r++) {
                const float *own = x + r * args->x_row + first, *bias = args->bias ? args->bias + first : 0;
                float *to = y + r * args->width + first;
                if (args->kind == 0 && n > 1)
                    for (long c = 0; c < d; c++) to[c] = (sum[c] - own[c]) * share;
                else if ((args->kind == 1 && r > 0) || (args->kind == 2 && r < n - 1))
                    memcpy(to, args->kind == 1 ? own - args->x_row : own + args->x_row, d * sizeof(float));
                else
                    memset(to, 0, d * sizeof(float));
                for (long c = 0; bias && c < d; c++) to[c] += bias[c], to[c] = to[c] < 0 ? 0 : to[c];
            }
        }
        x += n * args->x_row, y += n * args->width;
    }
}
