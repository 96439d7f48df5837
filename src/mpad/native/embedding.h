/* What a step does with rows and numbers one by one, for one kind of processor; see gemm.h. */

/* 64 random bits: SplitMix64 of a key and a counter. */
static inline unsigned long NAME(bits)(unsigned long key, unsigned long at) {
    unsigned long z = key + at * 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

/* Numbers first .. last - 1, multiplied by `scale` or, where their random byte is below `dropped`, by 0. */
static void NAME(drop)(const struct dropped *of, const float *x, unsigned long from, long n, float *y) {
    unsigned long eights[64];
    const unsigned char *bytes = (const unsigned char *)eights, dropped = of->dropped;
    const float scale = of->scale;
    for (long start = 0; start < n; start += 512) {
        const long some = n - start < 512 ? n - start : 512;
        for (long k = 0; k < (some + 7) / 8; k++) eights[k] = NAME(bits)(of->key, from + start / 8 + k);
        for (long k = 0; k < some; k++) y[start + k] = bytes[k] >= dropped ? x[start + k] * scale : 0;
    }
}

/* Rows first .. last - 1 of those asked for, out of a table or, of gradients, as they stand, dropped: the bytes of a row
 * hang on its number alone. */
static void NAME(embed)(const struct dropped *of, long first, long last) {
    const long width = of->width, eights = (width + 7) / 8;
    for (long r = first; r < last; r++) {
        const float *x = of->x + (of->as_they_stand ? r : of->which[r]) * width;
        if (of->dropped) NAME(drop)(of, x, of->which[r] * eights, width, of->y + r * width);
        else memcpy(of->y + r * width, x, width * sizeof(float));
    }
}

/* Rows first .. last - 1: those of x that `index` names, zeros where it names none. */
static void NAME(gather)(const struct gathered *of, long first, long last) {
    for (long r = first; r < last; r++)
        if (of->index[r] < of->n) memcpy(of->y + r * of->width, of->x + of->index[r] * of->width, of->width * sizeof(float));
        else memset(of->y + r * of->width, 0, of->width * sizeof(float));
}

/* Its derivative, of columns first .. last - 1, which are whole sixteens; gradients come in slices of `slice` columns. */
static void NAME(scatter)(const struct scattered *of, long first, long last) {
    for (long r = 0; r < of->n; r++) memset(of->y + r * of->width + first, 0, (last - first) * sizeof(float));
    if (!of->rows) return; /* without rows there may be no gradients to point to */
    for (long c = first; c < last;) {
        const long number = c / of->slice, end = (number + 1) * of->slice < last ? (number + 1) * of->slice : last;
        const float *g = (number ? of->second : of->first) - number * of->slice;
        const long row = number ? of->second_row : of->first_row;
        for (long r = 0; r < of->rows; r++) {
            if (of->index[r] >= of->n) continue;
            float *to = of->y + of->index[r] * of->width;
            for (long k = c; k < end; k += V) *(vec *)(to + k) += *(const vec *)(g + r * row + k);
        }
        c = end;
    }
}

/* Adam over numbers first .. last - 1. */
static void NAME(adam)(const struct adam *of, long first, long last) {
    const float b1 = of->b1, b2 = of->b2, rate = of->rate, scale = of->scale, eps = of->eps;
    for (long p = 0; p < of->n; p++) {
        const struct numbers *part = of->parts + p;
        const long from = part->start > first ? part->start : first, end = part->start + part->n;
        const long to = end < last ? end : last;
        float *restrict x = part->x, *restrict m = part->m, *restrict v = part->v;
        const float *restrict g = part->g;
        for (long k = from - part->start; k < to - part->start; k++) {
            const float given = g ? g[k] : 0;
            m[k] += (1 - b1) * (given - m[k]);
            v[k] = b2 * v[k] + (1 - b2) * given * given;
            x[k] -= rate * m[k] / (sqrtf(v[k]) * scale + eps);
        }
    }
}
