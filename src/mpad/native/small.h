/* What has few rows: sentences that hear each other (nn/neighbours.py), and the loss (training/loss.py). */

struct among { /* rows x of documents with `size` sentences each; kinds: 0 clique, 1 path, 2 the path's derivative */
    const long *size;
    const float *x, *bias;
    float *y;
    long x_row, documents, width, kind, mean;
};

/* What each sentence hears: the others' sum or mean, or the one before it (after it); with a bias, ReLU of that and it. */
void mpad_among(const struct among *of) {
    const float *x = of->x;
    float *y = of->y, sum[WIDEST];
    for (long k = 0; k < of->documents; k++) {
        const long n = of->size[k];
        const float share = of->mean && n > 2 ? 1.0f / (n - 1) : 1;
        for (long first = 0; first < of->width; first += WIDEST) { /* columns */
            const long d = of->width - first < WIDEST ? of->width - first : WIDEST;
            for (long c = 0; c < d; c++) sum[c] = 0;
            for (long r = 0; of->kind == 0 && r < n; r++)
                for (long c = 0; c < d; c++) sum[c] += x[r * of->x_row + first + c];
            for (long r = 0; r < n; r++) {
                const float *own = x + r * of->x_row + first, *bias = of->bias ? of->bias + first : 0;
                float *to = y + r * of->width + first;
                if (of->kind == 0 && n > 1)
                    for (long c = 0; c < d; c++) to[c] = (sum[c] - own[c]) * share;
                else if ((of->kind == 1 && r > 0) || (of->kind == 2 && r < n - 1))
                    memcpy(to, of->kind == 1 ? own - of->x_row : own + of->x_row, d * sizeof(float));
                else
                    memset(to, 0, d * sizeof(float));
                for (long c = 0; bias && c < d; c++) to[c] += bias[c], to[c] = to[c] < 0 ? 0 : to[c];
            }
        }
        x += n * of->x_row, y += n * of->width;
    }
}

struct loss {
    const float *logits, *weights;
    const long *targets;
    float *loss, *d_logits;
    long n, classes;
};

/* The weighted mean of documents' cross-entropies, and its gradient; false if a target is no class. */
int mpad_loss(const struct loss *of) {
    double total = 0, sum = 0;
    for (long i = 0; i < of->n; i++) total += of->weights[i];
    for (long i = 0; i < of->n; i++) {
        const float *row = of->logits + i * of->classes;
        float *to = of->d_logits + i * of->classes, top = row[0];
        const double share = total > 0 ? of->weights[i] / total : 0;
        double all = 0;
        if (of->targets[i] < 0 || of->targets[i] >= of->classes) return 0;
        for (long c = 1; c < of->classes; c++) top = row[c] > top ? row[c] : top;
        for (long c = 0; c < of->classes; c++) all += to[c] = expf(row[c] - top);
        sum += share * (log(all) + top - row[of->targets[i]]);
        for (long c = 0; c < of->classes; c++) to[c] = (float)(share * (to[c] / all - (c == of->targets[i])));
    }
    *of->loss = (float)sum;
    return 1;
}
