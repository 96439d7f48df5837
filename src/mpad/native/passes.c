/* The inner loops of answering and of training on a CPU, each in few passes over memory.
 *
 * What `mpad.runtime.compiled` and `mpad.nn.compiled` call where this was built. Rows are float32; widths are multiples
 * of 16 up to WIDEST. Nothing here allocates or fails.
 */
#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

enum { PLAIN, RELU, TANH, SIGMOID };
#define VERSION 15 /* of what stands here for callers: a library that was built before is not used */
#define WIDEST 256
#define STRIP 24  /* rows between two passes: they stay in the first-level cache */
#define BLOCK 96  /* rows that are summed before their sum is added to others: whole strips, fewer than DEPTH */
#define DEPTH 128 /* rows of weights that stay in the first-level cache, beside what they are multiplied with */
#define PANEL 64  /* columns */
#define AHEAD 6   /* rows that are fetched before they are needed */
#define FEW 12288 /* numbers that are not worth a second thread */

static void copy_rows(float *to, long to_row, const float *from, long from_row, long rows, long width) {
    for (long r = 0; r < rows; r++) memcpy(to + r * to_row, from + r * from_row, width * sizeof(float));
}

#include "batches.h"
#include "reading.h"
#include "small.h"
#include "structures.h"

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
#include "answers.h"
#include "training.h"
#include "norm.h"
#include "rows.h"
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
#include "answers.h"
#include "training.h"
#include "norm.h"
#include "rows.h"
#pragma GCC pop_options

static int wide;

/* Whether this processor can run what is here, and the caller knows it; asked once, before anything else. */
int mpad_ready(int version) {
    if (version != VERSION) return 0;
    prepare_reading();
    __builtin_cpu_init();
    wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
    return wide || (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
}

/* Numbers that are computed at once: which instructions of the processor are used. */
int mpad_lanes(void) { return wide ? 16 : 8; }

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

/* Graphs first .. last - 1, as many at a time as `scratch` has room for, and at least one. */
void mpad_answers(const struct answers *of, long first, long last) {
    while (first < last) {
        long end = first + 1;
        while (end < last && of->node_start[end + 1] - of->node_start[first] + end + 1 - first <= of->rows) end++;
        (wide ? answer_512 : answer_256)(of, first, end);
        first = end;
    }
}

#include "threads.h"

static void turn_part(void *data) {
    const struct update *of = ((struct shared *)data)->of;
    const long d = of->width, n_out[] = {3 * d, 2 * d, d, d};
    const float *weights[] = {of->w, of->u, of->v, of->w2};
    float *to = of->turned;
    for (int k = 0; k < 4; to += n_out[k++] * d) {
        long first, last;
        if (!weights[k]) continue;
        part(data, n_out[k] / 16, &first, &last);
        (wide ? turn_512 : turn_256)(weights[k], n_out[k], d, first * 16, last * 16, to);
    }
}

SHARED_OUT(update, update, strips(of->rows), STRIP, of->rows)
void mpad_update(const struct update *of, long threads) {
    parallel(turn_part, of, 8 * of->rows * of->width, threads);
    parallel(update_part, of, 8 * of->rows * of->width, threads);
}

SHARED_OUT_ADDING(update_back, update_back, strips(of->rows), STRIP, of->rows, of->found, of->room)
void mpad_update_back(const struct update_back *of, long threads) {
    const long d = of->width, team = parallel(update_back_part, of, 8 * of->rows * of->width, threads);
    add_up(of->found, 7 * d * d + 5 * d, of->room, team);
}

/* Groups are shared out by their rows: those that begin in a thread's part of the rows are its own. */
static void groups_part(void *data, const long *size, long groups, long rows, long *first, long *last, long *row) {
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

void mpad_mean(const struct mean *of, long threads) { parallel(mean_part, of, of->words * of->width, threads); }

static void attention_part(void *data) {
    const struct attention *of = ((struct shared *)data)->of;
    long first, last, row;
    groups_part(data, of->size, of->groups, of->rows, &first, &last, &row);
    (wide ? attention_512 : attention_256)(of, first, last, row);
}

void mpad_attention(const struct attention *of, long threads) {
    (wide ? turn_512 : turn_256)(of->a, of->width, of->width, 0, of->width, of->turned);
    parallel(attention_part, of, of->rows * of->width, threads);
}

static void attention_back_part(void *data) {
    const struct attention_back *of = ((struct shared *)data)->of;
    long first, last, row;
    groups_part(data, of->size, of->groups, of->rows, &first, &last, &row);
    (wide ? attention_back_512 : attention_back_256)(of, first, last, row, of->found + this_thread(data) * of->room);
}

void mpad_attention_back(const struct attention_back *of, long threads) {
    const long d = of->width, team = parallel(attention_back_part, of, of->rows * of->width, threads);
    add_up(of->found, d * d + 2 * d, of->room, team);
}

SHARED_OUT(linear, linear, strips(of->rows), STRIP, of->rows)
void mpad_linear(const struct linear *of, long threads) {
    (wide ? turn_512 : turn_256)(of->w, of->n_out, of->n_in, 0, of->n_out, of->turned);
    parallel(linear_part, of, of->rows * of->n_in, threads);
}

SHARED_OUT_ADDING(linear_back, linear_back, strips(of->rows), STRIP, of->rows, of->found, of->room)
void mpad_linear_back(const struct linear_back *of, long threads) {
    const long team = parallel(linear_back_part, of, of->rows * of->n_in, threads);
    add_up(of->found, (of->n_in + 1) * of->n_out, of->room, team);
}

SHARED_OUT(embed, dropped, of->n, 1, of->n)
void mpad_embed(const struct dropped *of, long threads) { parallel(embed_part, of, of->n * of->width, threads); }

static void drop_part(void *data) {
    const struct dropped *of = ((struct shared *)data)->of;
    long first, last;
    part(data, (of->n + 7) / 8, &first, &last);
    (wide ? drop_512 : drop_256)(of, of->x + first * 8, first, least(last * 8, of->n) - first * 8, of->y + first * 8);
}

void mpad_drop(const struct dropped *of, long threads) { parallel(drop_part, of, of->n, threads); }

SHARED_OUT(gather, gathered, of->rows, 1, of->rows)
void mpad_gather(const struct gathered *of, long threads) { parallel(gather_part, of, of->rows * of->width, threads); }

SHARED_OUT(scatter, scattered, of->width / 16, 16, of->width)
void mpad_scatter(const struct scattered *of, long threads) { parallel(scatter_part, of, of->rows * of->width, threads); }

static void adam_part(void *data) {
    const struct adam *of = ((struct shared *)data)->of;
    const struct numbers *final = of->parts + of->n - 1;
    long first, last;
    part(data, final->start + final->n, &first, &last);
    (wide ? adam_512 : adam_256)(of, first, last);
}

void mpad_adam(const struct adam *of, long threads) {
    if (of->n) parallel(adam_part, of, of->parts[of->n - 1].start + of->parts[of->n - 1].n, threads);
}

SHARED_OUT_ADDING(norm_moments, norm, of->rows, 1, of->rows, of->room, 2 * of->width)
SHARED_OUT(norm, norm, of->rows, 1, of->rows)
/* A bias `before` the norm, which x lacks, moves the running mean and nothing else. */
void mpad_norm(const struct norm *of, long threads) {
    const long n = of->rows, d = of->width;
    const long team = parallel(norm_moments_part, of, n * d, threads);
    for (long c = 0; c < d; c++) {
        double mean = 0, squares = 0;
        for (long t = 0; t < team; t++) mean += of->room[t * 2 * d + c] * (double)(n * (t + 1) / team - n * t / team) / n;
        for (long t = 0; t < team; t++) {
            const double apart = of->room[t * 2 * d + c] - mean;
            squares += of->room[t * 2 * d + d + c] + apart * apart * (n * (t + 1) / team - n * t / team);
        }
        of->mean[c] = mean, of->scale[c] = 1 / sqrt(squares / n + of->eps);
        of->running_mean[c] += of->momentum * (mean + (of->before ? of->before[c] : 0) - of->running_mean[c]);
        of->running_var[c] += of->momentum * (squares / (n - 1) - of->running_var[c]);
    }
    parallel(norm_part, of, n * d, threads);
}

SHARED_OUT_ADDING(norm_back_sums, norm_back, of->rows, 1, of->rows, of->found, 2 * of->width)
SHARED_OUT(norm_back, norm_back, of->rows, 1, of->rows)
void mpad_norm_back(const struct norm_back *of, long threads) {
    const long numbers = of->rows * of->width;
    add_up(of->found, 2 * of->width, 2 * of->width, parallel(norm_back_sums_part, of, numbers, threads));
    parallel(norm_back_part, of, numbers, threads);
}

#include "rounds.h"
#include "readouts.h"
