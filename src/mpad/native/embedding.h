/* Rows of word vectors with dropout (mpad/dropout.py), for one kind of processor; see gemm.h. */

/* 64 random bits: SplitMix64 of a key and a counter. */
static inline unsigned long NAME(bits)(unsigned long key, unsigned long at) {
    unsigned long z = key + at * 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

/* Multiply a row by `scale`, or by 0 where the random byte is below the threshold. `from`: index of the first random word. */
static void NAME(drop)(const struct dropout *args, const float *x, unsigned long from, float *y) {
    unsigned long words[64];
    const unsigned char *bytes = (const unsigned char *)words, threshold = args->threshold;
    const float scale = args->scale;
    for (long start = 0; start < args->width; start += 512) {
        const long count = args->width - start < 512 ? args->width - start : 512;
        for (long k = 0; k < (count + 7) / 8; k++) words[k] = NAME(bits)(args->key, from + start / 8 + k);
        for (long k = 0; k < count; k++) y[start + k] = bytes[k] >= threshold ? x[start + k] * scale : 0;
    }
}

/* Gather rows first .. last - 1 (or take gradients in place) and apply dropout. A row's mask depends on its index in the
 * table alone. */
static void NAME(embed)(const struct dropout *args, long first, long last) {
    const long width = args->width, words_per_row = (width + 7) / 8;
    for (long r = first; r < last; r++) {
        const float *x = args->x + (args->in_place ? r : args->which[r]) * width;
        if (args->threshold) NAME(drop)(args, x, args->which[r] * words_per_row, args->y + r * width);
        else memcpy(args->y + r * width, x, width * sizeof(float));
    }
}

/* Sum the gradients of rows index[r] of y, except n, for columns first .. last - 1, both multiples of 16; they come in slices of
 * `slice` columns. */
static void NAME(scatter)(const struct scatter *args, long first, long last) {
    for (long r = 0; r < args->n; r++) memset(args->y + r * args->width + first, 0, (last - first) * sizeof(float));
    if (!args->rows) return; /* without rows the gradients may be NULL */
    for (long c = first; c < last;) {
        const long number = c / args->slice, end = (number + 1) * args->slice < last ? (number + 1) * args->slice : last;
        const float *g = (number ? args->second : args->first) - number * args->slice;
        const long row = number ? args->second_row : args->first_row;
        for (long r = 0; r < args->rows; r++) {
            if (args->index[r] >= args->n) continue;
            float *to = args->y + args->index[r] * args->width;
            for (long k = c; k < end; k += V) *(vec *)(to + k) += *(const vec *)(g + r * row + k);
        }
        c = end;
    }
}
