/* The NumPy runtime's inner loops, each in one pass over memory: what `mpad.runtime.passes` calls where this was built.
 *
 * Rows are float32, end to end; widths are multiples of 16 up to WIDEST. Nothing here allocates or fails.
 */
#include <immintrin.h>
#include <math.h>

enum { PLAIN, RELU, TANH };
#define WIDEST 256
#define STRIP 24 /* rows between two passes: they stay in the first-level cache */
#define BLOCK 128 /* rows that are summed before their sum is added to others */

struct combine {
    const long *own, *told;
    const float *states, *gates, *told_gates, *told_new, *rest_gates, *rest_new, *u;
};

struct graphs {
    const long *node_start, *edge_start;
    const int *source, *target;
    const float *weight;
    long n, master, mean;
};

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,fma")
#define V 16
#define TALL 6
#define WIDE 4
#define NAME(f) f##_512
#include "kernels.h"
#undef V
#undef TALL
#undef WIDE
#undef NAME
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define V 8
#define TALL 6
#define WIDE 2
#define NAME(f) f##_256
#include "kernels.h"
#pragma GCC pop_options

static int wide;

/* Whether this processor can run what is here; asked once, before anything else. */
int mpad_ready(void) {
    __builtin_cpu_init();
    wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
    return wide || (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
}

void mpad_affine(const float *x, long rows, long n_in, const float *w, long n_out, const float *b, float *y, int how) {
    (wide ? affine_512 : affine_256)(x, rows, n_in, w, n_out, b, 0, y, how);
}

void mpad_combine(const struct combine *of, long rows, long width, float *out) {
    (wide ? combine_512 : combine_256)(of, rows, width, out);
}

void mpad_attend(const float *h, const long *start, long groups, long width, const float *align, const float *bias,
                 const float *context, int bounded, float *alpha, float *pooled, long pooled_row) {
    (wide ? attend_512 : attend_256)(h, start, groups, width, align, bias, context, bounded, alpha, pooled, pooled_row);
}

void mpad_hear(const struct graphs *of, const float *x, long width, const float *bias, float *y) {
    (wide ? hear_512 : hear_256)(of, x, width, bias, y);
}
