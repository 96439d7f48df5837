/* The passes of passes.c for one kind of processor. Included once for each, with
 *   V     numbers in a register        NAME(f)  this kind's name of a function
 *   WIDE  registers across a tile      TALL     rows of a tile
 * so that a tile of TALL x WIDE sums, a row of weights and a number fit into the registers there are.
 */

typedef float NAME(vec) __attribute__((vector_size(4 * V), aligned(4), may_alias));
typedef int NAME(ints) __attribute__((vector_size(4 * V), aligned(4), may_alias));
#define vec NAME(vec)
#define ints NAME(ints)

static inline vec NAME(all)(float x) {
    vec v = {0};
    return v + x;
}

static inline vec NAME(choose)(ints which, vec yes, vec no) {
    return (vec)(((ints)yes & which) | ((ints)no & ~which));
}

/* tanh as a quotient of polynomials, within 4e-7 (the one that Eigen and others use). */
static inline vec NAME(tanh)(vec x) {
    const vec top = NAME(all)(7.90531110763549805f);
    x = NAME(choose)(x > top, top, x);
    x = NAME(choose)(x < -top, -top, x);
    vec s = x * x;
    vec p = s * -2.76076847742355e-16f + 2.00018790482477e-13f;
    p = p * s + -8.60467152213735e-11f;
    p = p * s + 5.12229709037114e-08f;
    p = p * s + 1.48572235717979e-05f;
    p = p * s + 6.37261928875436e-04f;
    p = p * s + 4.89352455891786e-03f;
    vec q = s * 1.19825839466702e-06f + 1.18534705686654e-04f;
    q = q * s + 2.26843463243900e-03f;
    q = q * s + 4.89352518554385e-03f;
#if V == 16 /* half the time of a division */
    vec r = (vec)_mm512_rcp14_ps((__m512)q);
    return x * p * r * (2 - q * r);
#else
    return x * p / q;
#endif
}

static inline vec NAME(activated)(vec x, int how) {
    if (how == RELU) return NAME(choose)(x > 0, x, NAME(all)(0));
    if (how == TANH) return NAME(tanh)(x);
    return x;
}

/* A tile of y = how(x w + b): `tall` rows by `wide` registers; with `onto`, b is what y holds already. */
static inline __attribute__((always_inline)) void NAME(tile)(
    const float *x, long x_row, long n_in, const float *w, long w_row, const float *b, int onto, float *y, long y_row,
    int how, const int tall, const int wide) {
    vec sum[TALL][WIDE];
    for (int r = 0; r < tall; r++)
        for (int c = 0; c < wide; c++)
            sum[r][c] = onto ? *(const vec *)(y + r * y_row + c * V) : b ? *(const vec *)(b + c * V) : NAME(all)(0);
    for (long k = 0; k < n_in; k++) {
        vec row[WIDE];
        for (int c = 0; c < wide; c++) row[c] = *(const vec *)(w + k * w_row + c * V);
        for (int r = 0; r < tall; r++) {
            float one = x[r * x_row + k];
            for (int c = 0; c < wide; c++) sum[r][c] += one * row[c];
        }
    }
    for (int r = 0; r < tall; r++)
        for (int c = 0; c < wide; c++) *(vec *)(y + r * y_row + c * V) = NAME(activated)(sum[r][c], how);
}

/* y = how(x w + b): (rows, n_in) x (n_in, n_out) -> (rows, n_out); n_out is a multiple of 16. */
static void NAME(affine)(const float *x, long rows, long n_in, const float *w, long n_out, const float *b, int onto,
                         float *y, int how) {
    long c = 0;
    for (; c + WIDE * V <= n_out; c += WIDE * V) {
        long r = 0;
        const float *bias = b ? b + c : 0;
        for (; r + TALL <= rows; r += TALL)
            NAME(tile)(x + r * n_in, n_in, n_in, w + c, n_out, bias, onto, y + r * n_out + c, n_out, how, TALL, WIDE);
        for (; r < rows; r++)
            NAME(tile)(x + r * n_in, n_in, n_in, w + c, n_out, bias, onto, y + r * n_out + c, n_out, how, 1, WIDE);
    }
    for (; c < n_out; c += V)
        for (long r = 0; r < rows; r++)
            NAME(tile)(x + r * n_in, n_in, n_in, w + c, n_out, b ? b + c : 0, onto, y + r * n_out + c, n_out, how, 1, 1);
}

/* COMBINE of equation 6. Of row i: its state and what that adds to the gates are rows own[i] of `states` and `gates`,
 * what it was told are rows told[i] of `told_gates` and `told_new`, or, where told[i] < 0, rows -1 - told[i] of the
 * `rest`; without indices, rows i. Gates are halved: sigma(2 g) = (1 + tanh g) / 2; `u` is halved too. */
static void NAME(combine)(const struct combine *of, long rows, long width, float *out) {
    float reset[STRIP * WIDEST] __attribute__((aligned(64)));
    float update[STRIP * WIDEST] __attribute__((aligned(64)));
    for (long first = 0; first < rows; first += STRIP) {
        long n = rows - first < STRIP ? rows - first : STRIP;
        for (long r = 0; r < n; r++) {
            long i = of->own ? of->own[first + r] : first + r, j = of->told ? of->told[first + r] : first + r;
            const float *state = of->states + i * width, *gates = of->gates + i * 2 * width;
            const float *told = j < 0 ? of->rest_gates + (-1 - j) * 2 * width : of->told_gates + j * 2 * width;
            const float *new = j < 0 ? of->rest_new + (-1 - j) * width : of->told_new + j * width;
            for (long c = 0; c < width; c += V) {
                vec g = NAME(tanh)(*(const vec *)(gates + c) + *(const vec *)(told + c)) + 1;
                vec z = NAME(tanh)(*(const vec *)(gates + width + c) + *(const vec *)(told + width + c)) + 1;
                *(vec *)(reset + r * width + c) = g * *(const vec *)(state + c);
                *(vec *)(update + r * width + c) = z * 0.5f;
                *(vec *)(out + (first + r) * width + c) = *(const vec *)(new + c);
            }
        }
        NAME(affine)(reset, n, width, of->u, width, 0, 1, out + first * width, TANH);
        for (long r = 0; r < n; r++) {
            long i = of->own ? of->own[first + r] : first + r;
            for (long c = 0; c < width; c += V) {
                vec *h = (vec *)(out + (first + r) * width + c), s = *(const vec *)(of->states + i * width + c);
                *h = s + *(const vec *)(update + r * width + c) * (*h - s);
            }
        }
    }
}

/* READOUT of equation 7: attention over rows start[g] .. start[g + 1] of each group, and their weighted sum. */
static void NAME(attend)(const float *h, const long *start, long groups, long width, const float *align,
                         const float *bias, const float *context, int bounded, float *alpha, float *pooled,
                         long pooled_row) {
    float aligned[STRIP * WIDEST] __attribute__((aligned(64)));
    long rows = start[groups] - start[0];
    for (long first = 0; first < rows; first += STRIP) {
        long n = rows - first < STRIP ? rows - first : STRIP;
        NAME(affine)(h + first * width, n, width, align, width, bias, 0, aligned, TANH);
        for (long r = 0; r < n; r++) {
            vec sum = NAME(all)(0);
            for (long c = 0; c < width; c += V) sum += *(const vec *)(aligned + r * width + c) * *(const vec *)(context + c);
            float score = 0;
            for (int c = 0; c < V; c++) score += sum[c];
            alpha[first + r] = bounded ? tanhf(score) : score;
        }
    }
    for (long g = 0; g < groups; g++) {
        long begin = start[g] - start[0], end = start[g + 1] - start[0];
        float top = -INFINITY;
        double total = 0;
        for (long r = begin; r < end; r++) top = alpha[r] > top ? alpha[r] : top;
        for (long r = begin; r < end; r++) total += alpha[r] = expf(alpha[r] - top);
        float *to = pooled + g * pooled_row, scale = begin < end ? (float)(1 / total) : 0;
        for (long c = 0; c < width; c += V) {
            vec sum = NAME(all)(0);
            for (long r = begin; r < end;) { /* block by block: long sums lose less */
                vec part = NAME(all)(0);
                for (long last = r + BLOCK < end ? r + BLOCK : end; r < last; r++)
                    part += alpha[r] * *(const vec *)(h + r * width + c);
                sum += part;
            }
            *(vec *)(to + c) = sum * scale;
        }
        for (long r = begin; r < end; r++) alpha[r] *= scale;
    }
}

/* AGGREGATE's mean, with a bias and ReLU: what each word hears of its neighbours and its master, and each master of
 * its words. Rows: all words of the graphs, then a master for each where there are any. */
static void NAME(hear)(const struct graphs *of, const float *x, long width, const float *bias, float *y) {
    long begin = of->node_start[0], words = of->node_start[of->n] - begin;
    for (long g = 0; g < of->n; g++) {
        long first = of->node_start[g] - begin, last = of->node_start[g + 1] - begin;
        const float *master = x + (words + g) * width;
        long e = of->edge_start[g], end = of->edge_start[g + 1];
        for (long v = first; v < last; v++) {
            float *to = y + v * width, degree = of->master ? 1 : 0;
            long from = e;
            for (; e < end && of->target[e] == v - first; e++) degree += of->weight[e];
            float share = !of->mean ? 1 : degree > 0 ? 1 / degree : 0;
            for (long c = 0; c < width; c += V) {
                vec sum = of->master ? *(const vec *)(master + c) : NAME(all)(0);
                for (long k = from; k < e; k++)
                    sum += of->weight[k] * *(const vec *)(x + (first + of->source[k]) * width + c);
                *(vec *)(to + c) = NAME(activated)(sum * share + *(const vec *)(bias + c), RELU);
            }
        }
        if (!of->master) continue;
        float part = of->mean && last > first ? 1.0f / (last - first) : 1;
        for (long c = 0; c < width; c += V) {
            vec sum = NAME(all)(0);
            for (long v = first; v < last;) {
                vec some = NAME(all)(0);
                for (long stop = v + BLOCK < last ? v + BLOCK : last; v < stop; v++)
                    some += *(const vec *)(x + v * width + c);
                sum += some;
            }
            *(vec *)(y + (words + g) * width + c) = NAME(activated)(sum * part + *(const vec *)(bias + c), RELU);
        }
    }
}

#undef vec
#undef ints
