/* Linear maps over rows, for one kind of processor. Included once for each, with
 *   V     numbers in a register, a vec NAME(f)  this kind's name of a function
 *   WIDE  registers across a tile      TALL     rows of a tile
 * so that a tile of TALL x WIDE sums, a row of weights and one number fit into the registers.
 */

typedef float vec __attribute__((vector_size(4 * V), aligned(4), may_alias));
typedef int ints __attribute__((vector_size(4 * V), aligned(4), may_alias));

static inline vec NAME(broadcast)(float x) {
    vec v = {0};
    return v + x;
}

static inline vec NAME(select)(ints which, vec yes, vec no) {
    return (vec)(((ints)yes & which) | ((ints)no & ~which));
}

/* tanh as a quotient of polynomials, within 4e-7 (the one that Eigen and others use). */
static inline vec NAME(tanh)(vec x) {
    const vec top = NAME(broadcast)(7.90531110763549805f);
    x = NAME(select)(x > top, top, x);
    x = NAME(select)(x < -top, -top, x);
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

static inline vec NAME(activated)(vec x, int activation) {
    if (activation == RELU) return NAME(select)(x < 0, NAME(broadcast)(0), x); /* keeps NaN */
    if (activation == TANH) return NAME(tanh)(x);
    return x;
}

/* A tile of y = activation(x w + b): `tall` rows by `wide` registers. Number k of row r is x[r * x_row + k * x_next].
 * `accumulate`: add to y instead of b. */
static inline __attribute__((always_inline)) void NAME(tile)(
    const float *x, long x_row, long x_next, long n_in, const float *w, long w_row, const float *b, int accumulate, float *y,
    long y_row, int activation, const int tall, const int wide) {
    vec sum[TALL][WIDE]; /* stays in registers as long as every loop over it is unrolled */
#pragma GCC unroll 8
    for (int r = 0; r < tall; r++)
#pragma GCC unroll 8
        for (int c = 0; c < wide; c++) {
            const float *from = accumulate ? y + r * y_row : b;
            sum[r][c] = from ? *(const vec *)(from + c * V) : NAME(broadcast)(0);
        }
    for (long k = 0; k < n_in; k++) {
        vec row[WIDE];
#pragma GCC unroll 8
        for (int c = 0; c < wide; c++) row[c] = *(const vec *)(w + k * w_row + c * V);
#pragma GCC unroll 8
        for (int r = 0; r < tall; r++) {
            float one = x[r * x_row + k * x_next];
#pragma GCC unroll 8
            for (int c = 0; c < wide; c++) sum[r][c] += one * row[c];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < tall; r++)
#pragma GCC unroll 8
        for (int c = 0; c < wide; c++) *(vec *)(y + r * y_row + c * V) = sum[r][c];
    if (activation == PLAIN) return;
    for (int r = 0; r < tall; r++)
        for (int c = 0; c < wide; c++) {
            vec *at = (vec *)(y + r * y_row + c * V);
            *at = NAME(activated)(*at, activation);
        }
}

/* y = activation(x w + b): (rows, n_in) x (n_in, n_out) -> (rows, n_out); n_out is a multiple of 16.
 *
 * Weights are read DEPTH rows by one tile's columns at a time, which stay in the first-level cache for all tiles below.
 * w_row = 0: they are stored in panels of 64 columns, one after another. */
static inline __attribute__((always_inline)) void NAME(tiles)(
    const float *x, long x_row, long x_next, long rows, long n_in, const float *w, long w_row, long n_out,
    const float *b, int accumulate, float *y, long y_row, int activation) {
    const long next = w_row ? w_row : PANEL;
    for (long c = 0; c < n_out; c += WIDE * V) {
        const float *column = w_row ? w + c : w + c / PANEL * PANEL * n_in + c % PANEL, *bias = b ? b + c : 0;
        for (long k = 0; k == 0 || k < n_in; k += DEPTH) { /* once even if n_in is 0: y = activation(b) */
            const long depth = n_in - k < DEPTH ? n_in - k : DEPTH;
            const int add = accumulate || k > 0, then = k + depth < n_in ? PLAIN : activation;
            const float *from = x + k * x_next, *weights = column + k * next;
            long r = 0;
            if (c + WIDE * V <= n_out) {
                for (; r + TALL <= rows; r += TALL)
                    NAME(tile)(from + r * x_row, x_row, x_next, depth, weights, next, bias, add, y + r * y_row + c,
                               y_row, then, TALL, WIDE);
                for (; r + 2 <= rows; r += 2)
                    NAME(tile)(from + r * x_row, x_row, x_next, depth, weights, next, bias, add, y + r * y_row + c,
                               y_row, then, 2, WIDE);
                for (; r < rows; r++)
                    NAME(tile)(from + r * x_row, x_row, x_next, depth, weights, next, bias, add, y + r * y_row + c,
                               y_row, then, 1, WIDE);
                continue;
            }
            for (long d = 0; c + d < n_out; d += V)
                for (r = 0; r < rows; r++)
                    NAME(tile)(from + r * x_row, x_row, x_next, depth, weights + d, next, bias ? bias + d : 0, add,
                               y + r * y_row + c + d, y_row, then, 1, 1);
        }
    }
}

/* `tiles` compiled for contiguous rows. */
static void NAME(map)(const float *x, long x_row, long rows, long n_in, const float *w, long w_row, long n_out,
                      const float *b, int accumulate, float *y, long y_row, int activation) {
    NAME(tiles)(x, x_row, 1, rows, n_in, w, w_row, n_out, b, accumulate, y, y_row, activation);
}

/* Backward of y = ReLU(x): zero the gradients where y is 0. */
static void NAME(relu_backward)(float *g, const float *y, long n) {
    for (long c = 0; c < n; c += V)
        *(vec *)(g + c) = NAME(select)(*(const vec *)(y + c) <= 0, NAME(broadcast)(0), *(const vec *)(g + c));
}

/* Add the sum of rows to `sums`. */
static void NAME(add_columns)(const float *x, long x_row, long rows, long width, float *sums) {
    for (long c = 0; c < width; c += V) {
        vec sum = *(const vec *)(sums + c);
        for (long r = 0; r < rows; r++) sum += *(const vec *)(x + r * x_row + c);
        *(vec *)(sums + c) = sum;
    }
}

/* Add g^T x to d_w: (rows, n_out), (rows, n_in) -> (n_out, n_in). */
static void NAME(add_outer)(const float *g, long g_row, const float *x, long x_row, long rows, long n_out, long n_in,
                            float *d_w) {
    /* the stride of a single row may be 0, which would mean panels */
    NAME(tiles)(g, 1, g_row, n_out, rows, x, x_row ? x_row : n_in, n_in, 0, 1, d_w, n_in, PLAIN);
}

/* Weights (n_out, n_in) -> (n_in, n_out), in panels of 64 columns if n_in is a multiple of 64: columns first .. last - 1,
 * both multiples of 16. */
static void NAME(transpose)(const float *w, long n_out, long n_in, long first, long last, float *to) {
    const long panels = n_in % PANEL == 0, next = panels ? PANEL : n_out;
    for (long o = first; o < last; o += 16) {
        float *column = panels ? to + o / PANEL * PANEL * n_in + o % PANEL : to + o;
        for (long k = 0; k < n_in; k++)
            for (long c = 0; c < 16; c++) column[k * next + c] = w[(o + c) * n_in + k];
    }
}
