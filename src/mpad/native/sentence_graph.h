/* The graphs over the sentences of each document: mpad/ops/message_passing.py. */

/* What each sentence receives: the others' sum or mean, or the one before it (after it); with a bias, ReLU of that and it. */
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
