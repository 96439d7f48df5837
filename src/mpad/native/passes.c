/* The inner loops of answering and of training on a CPU, each in few passes over memory.
 *
 * What `mpad.runtime.compiled` and `mpad.nn.compiled` call where this was built. Rows are float32; widths are multiples
 * of 16 up to WIDEST. Nothing here allocates or fails.
 */
#include <immintrin.h>
#include <math.h>
#include <stddef.h>

enum { PLAIN, RELU, TANH, SIGMOID };
#define VERSION 3 /* of what stands here for callers: a library that was built before is not used */
#define WIDEST 256
#define STRIP 24  /* rows between two passes: they stay in the first-level cache */
#define BLOCK 128 /* rows that are summed before their sum is added to others */
#define DEPTH 128 /* rows of weights that stay in the first-level cache, beside what they are multiplied with */
#define PANEL 64  /* columns */

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

struct update { /* weights here are (in, out), in panels of 64 columns where the width allows it */
    const float *h, *x, *w2, *b2, *bias, *w, *u, *v;
    float *message, *rzc, *reset_h, *out;
    long h_row, x_row, rows, width, relu;
};

struct update_back { /* weights here are (out, in); rows of x lie end to end */
    const float *g, *h, *x, *message, *rzc, *w2, *w, *u, *v;
    float *d_rzc, *d_h, *d_m, *d_x, *sums; /* sums: a row for each thread */
    long g_row, h_row, rows, width, relu, before;
};

struct mean {
    const long *size, *source, *target; /* of each graph its words; of each edge its ends */
    const float *weight, *share, *part, *bias, *x;
    float *y;
    long x_row, words, edges, graphs, width, master, back;
};

struct attention { /* a is (in, out), as in `update` */
    const long *size;
    const float *h, *a, *b, *v;
    float *y, *score, *alpha, *pooled;
    long h_row, rows, groups, width, bounded;
};

struct attention_back { /* a is (out, in) */
    const long *size;
    const float *g, *h, *a, *v, *y, *score, *alpha;
    float *d_h, *d_y, *d_v; /* d_v: a row for each thread */
    long g_row, h_row, rows, groups, width, bounded;
};

struct outer { /* d_w = g^T x, d_b = the sum of g's rows */
    const float *g, *x;
    float *d_w, *d_b;
    long g_row, x_row, rows, n_out, n_in;
};

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,fma")
#define V 16
#define TALL 6
#define WIDE 4
#define NAME(f) f##_512
#define vec vec_512
#define ints ints_512
#include "maps.h"
#include "answering.h"
#include "training.h"
#undef V
#undef TALL
#undef WIDE
#undef NAME
#undef vec
#undef ints
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define V 8
#define TALL 6
#define WIDE 2
#define NAME(f) f##_256
#define vec vec_256
#define ints ints_256
#include "maps.h"
#include "answering.h"
#include "training.h"
#pragma GCC pop_options

static int wide;

/* Whether this processor can run what is here, and the caller knows it; asked once, before anything else. */
int mpad_ready(int version) {
    if (version != VERSION) return 0;
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
                 const float *context, int bounded, float *alpha, float *pooled) {
    (wide ? attend_512 : attend_256)(h, start, groups, width, align, bias, context, bounded, alpha, pooled);
}

void mpad_hear(const struct graphs *of, const float *x, long width, const float *bias, float *y) {
    (wide ? hear_512 : hear_256)(of, x, width, bias, y);
}

/* Threads: those of the OpenMP that the process has already (torch's), so that two pools do not fight for the cores. */
static void (*run_parallel)(void (*)(void *), void *, unsigned, unsigned);
static int (*thread_number)(void), (*team_size)(void);

void mpad_threads(void *parallel, void *number, void *size) {
    run_parallel = (void (*)(void (*)(void *), void *, unsigned, unsigned))parallel;
    thread_number = (int (*)(void))number;
    team_size = (int (*)(void))size;
}

struct shared {
    const void *of;
    long threads;
};

static void parallel(void (*work)(void *), const void *of, long threads) {
    struct shared data = {of, threads};
    if (threads > 1 && run_parallel)
        run_parallel(work, &data, threads, 0);
    else
        data.threads = 1, work(&data);
}

/* This thread's number, and its part of n pieces: of as many threads as there are, which may be fewer than asked for. */
static long this_thread(const struct shared *data) { return data->threads > 1 ? thread_number() : 0; }

static void part(const struct shared *data, long n, long *first, long *last) {
    const long me = this_thread(data), team = data->threads > 1 ? team_size() : 1;
    *first = n * me / team, *last = n * (me + 1) / team;
}

static long strips(long rows) { return (rows + STRIP - 1) / STRIP; }
static long least(long a, long b) { return a < b ? a : b; }

static void update_part(void *data) {
    const struct update *of = ((struct shared *)data)->of;
    long first, last;
    part(data, strips(of->rows), &first, &last);
    (wide ? update_512 : update_256)(of, first * STRIP, least(last * STRIP, of->rows));
}

void mpad_update(const struct update *of, long threads) { parallel(update_part, of, threads); }

static void update_back_part(void *data) {
    const struct shared *shared = data;
    const struct update_back *of = shared->of;
    long first, last, me = this_thread(shared);
    part(data, strips(of->rows), &first, &last);
    (wide ? update_back_512 : update_back_256)(of, first * STRIP, least(last * STRIP, of->rows), of->sums + me * of->width);
}

void mpad_update_back(const struct update_back *of, long threads) { parallel(update_back_part, of, threads); }

/* Groups are shared out by their rows: those that begin in a thread's part of the rows are its own. */
static void groups_part(const void *data, const long *size, long groups, long rows, long *first, long *last, long *row) {
    long begin, end;
    part(data, rows, &begin, &end);
    const int final = end == rows;
    *first = *row = 0;
    while (*first < groups && *row < begin) *row += size[(*first)++];
    *last = *first;
    for (long at = *row; *last < groups && (final || at < end); (*last)++) at += size[*last];
}

static void mean_part(void *data) {
    const struct mean *of = ((struct shared *)data)->of;
    long first, last, row, low = 0, high = of->edges;
    groups_part(data, of->size, of->graphs, of->words, &first, &last, &row);
    while (low < high) { /* the first edge into these rows */
        long middle = (low + high) / 2;
        if (of->target[middle] < row) low = middle + 1;
        else high = middle;
    }
    (wide ? mean_512 : mean_256)(of, first, last, row, low);
}

void mpad_mean(const struct mean *of, long threads) { parallel(mean_part, of, threads); }

static void attention_part(void *data) {
    const struct attention *of = ((struct shared *)data)->of;
    long first, last, row;
    groups_part(data, of->size, of->groups, of->rows, &first, &last, &row);
    (wide ? attention_512 : attention_256)(of, first, last, row);
}

void mpad_attention(const struct attention *of, long threads) { parallel(attention_part, of, threads); }

static void attention_back_part(void *data) {
    const struct shared *shared = data;
    const struct attention_back *of = shared->of;
    long first, last, row, me = this_thread(shared);
    groups_part(data, of->size, of->groups, of->rows, &first, &last, &row);
    (wide ? attention_back_512 : attention_back_256)(of, first, last, row, of->d_v + me * of->width);
}

void mpad_attention_back(const struct attention_back *of, long threads) { parallel(attention_back_part, of, threads); }

struct outers {
    const struct outer *of;
    long n;
};

/* The columns of all products, in tiles of 6 (whole registers for their sums: 48), shared out among threads. */
#define COLUMNS 48

static void outer_part(void *data) {
    const struct outers *all = ((struct shared *)data)->of;
    long tiles = 0, first, last;
    for (long k = 0; k < all->n; k++) tiles += (all->of[k].n_out + COLUMNS - 1) / COLUMNS;
    part(data, tiles, &first, &last);
    for (long k = 0, at = 0; k < all->n; k++) {
        const struct outer *one = all->of + k;
        for (long column = 0; column < one->n_out; column += COLUMNS, at++)
            if (first <= at && at < last)
                (wide ? outer_512 : outer_256)(one->g, one->g_row, one->x, one->x_row, one->rows, one->n_in, column,
                                               least(column + COLUMNS, one->n_out), one->d_w, one->d_b);
    }
}

void mpad_outer(const struct outer *of, long n, long threads) {
    struct outers all = {of, n};
    parallel(outer_part, &all, threads);
}
