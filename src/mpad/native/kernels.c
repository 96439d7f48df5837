/* The inner loops of answering and of training on a CPU, each in few passes over memory.
 *
 * What `mpad.inference` and `mpad.ops.cpu` call where this was built. Rows are float32; widths are multiples
 * of 16 up to WIDEST. Nothing here allocates or fails.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { PLAIN, RELU, TANH, SIGMOID };
#define VERSION 17 /* of what stands here for callers: a library that was built before is not used */
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

#include "abi.h"
#include "batch.h"
#include "tokenize.h"
#include "sentence_graph.h"

/* What is worth it is compiled once for each kind of processor, in the vector extensions of GCC and Clang. */
#if defined(__clang__)
#define FOR_PROCESSOR(kind) _Pragma(kind)
#define END_PROCESSOR _Pragma("clang attribute pop")
#define AVX512 "clang attribute push(__attribute__((target(\"avx512f,avx512dq,fma\"))), apply_to = function)"
#define AVX2 "clang attribute push(__attribute__((target(\"avx2,fma\"))), apply_to = function)"
#else
#define FOR_PROCESSOR(kind) _Pragma("GCC push_options") _Pragma(kind)
#define END_PROCESSOR _Pragma("GCC pop_options")
#define AVX512 "GCC target(\"avx512f,avx512dq,fma\")"
#define AVX2 "GCC target(\"avx2,fma\")"
#endif

#ifdef __x86_64__
FOR_PROCESSOR(AVX512)
#define V 16
#define TALL 6
#define WIDE 4
#define NAME(f) f##_512
#define vec vec_512
#define ints ints_512
#include "processor.h"
#undef V
#undef TALL
#undef WIDE
#undef NAME
#undef vec
#undef ints
END_PROCESSOR

FOR_PROCESSOR(AVX2)
#define V 8
#define TALL 6
#define WIDE 2
#define NAME(f) f##_256
#define vec vec_256
#define ints ints_256
#include "processor.h"
END_PROCESSOR

static int wide;
#define PICK(f) (wide ? f##_512 : f##_256)

static int processor_fits(void) {
    __builtin_cpu_init();
    wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
    return wide || (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
}

/* Numbers that are computed at once: which instructions of the processor are used. */
int mpad_lanes(void) { return wide ? 16 : 8; }
#else /* four numbers at once, which every 64-bit processor has instructions for (NEON, on ARM) */
#define V 4
#define TALL 6
#define WIDE 4
#define NAME(f) f##_128
#define vec vec_128
#define ints ints_128
#include "processor.h"
#define PICK(f) f##_128
static int processor_fits(void) { return 1; }
int mpad_lanes(void) { return 4; }
#endif

/* Whether this processor can run what is here, and the caller knows it; asked once, before anything else. */
int mpad_ready(int version) {
    if (version != VERSION) return 0;
    prepare_reading();
    return processor_fits();
}

/* How large the compiler made each structure of abi.h. */
#define SIZE(name) {#name, sizeof(struct name)}
const struct { const char *name; long size; } mpad_sizes[] = {
    SIZE(combine), SIZE(graphs), SIZE(answer_step), SIZE(answer_read), SIZE(answers), SIZE(update),
    SIZE(update_back), SIZE(mean), SIZE(attention), SIZE(attention_back), SIZE(linear), SIZE(linear_back),
    SIZE(dropped), SIZE(gathered), SIZE(scattered), SIZE(norm), SIZE(norm_back), SIZE(numbers),
    SIZE(adam), SIZE(among), SIZE(corpus), SIZE(batch), SIZE(shares), SIZE(words),
    SIZE(graph), SIZE(round), SIZE(round_back), SIZE(normed), SIZE(normed_round), SIZE(normed_round_back),
    SIZE(reading), SIZE(readouts), SIZE(readouts_back),
    {0, 0}};

/* Graphs first .. last - 1, as many at a time as `scratch` has workspace for, and at least one. */
void mpad_answers(const struct answers *of, long first, long last) {
    while (first < last) {
        long end = first + 1;
        while (end < last && of->node_start[end + 1] - of->node_start[first] + end + 1 - first <= of->rows) end++;
        PICK(answer)(of, first, end);
        first = end;
    }
}

#include "threads.h"

static void transpose_part(void *data) {
    const struct update *of = ((struct shared *)data)->of;
    const long d = of->width, n_out[] = {3 * d, 2 * d, d, d};
    const float *weights[] = {of->w, of->u, of->v, of->w2};
    float *to = of->w_t;
    for (int k = 0; k < 4; to += n_out[k++] * d) {
        long first, last;
        if (!weights[k]) continue;
        part(data, n_out[k] / 16, &first, &last);
        PICK(transpose)(weights[k], n_out[k], d, first * 16, last * 16, to);
    }
}

SHARED_OUT(update, update, strips(of->rows), STRIP, of->rows)
void mpad_update(const struct update *of, long threads) {
    parallel(transpose_part, of, 8 * of->rows * of->width, threads);
    parallel(update_part, of, 8 * of->rows * of->width, threads);
}

SHARED_OUT_ADDING(update_back, update_back, strips(of->rows), STRIP, of->rows, of->grads, of->workspace)
void mpad_update_back(const struct update_back *of, long threads) {
    const long d = of->width, team = parallel(update_back_part, of, 8 * of->rows * of->width, threads);
    add_up(of->grads, 7 * d * d + 5 * d, of->workspace, team);
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
    PICK(mean)(of, first, last, row, low);
}

void mpad_mean(const struct mean *of, long threads) { parallel(mean_part, of, of->words * of->width, threads); }

static void attention_part(void *data) {
    const struct attention *of = ((struct shared *)data)->of;
    long first, last, row;
    groups_part(data, of->size, of->groups, of->rows, &first, &last, &row);
    PICK(attention)(of, first, last, row);
}

void mpad_attention(const struct attention *of, long threads) {
    PICK(transpose)(of->a, of->width, of->width, 0, of->width, of->w_t);
    parallel(attention_part, of, of->rows * of->width, threads);
}

static void attention_back_part(void *data) {
    const struct attention_back *of = ((struct shared *)data)->of;
    long first, last, row;
    groups_part(data, of->size, of->groups, of->rows, &first, &last, &row);
    PICK(attention_back)(of, first, last, row, of->grads + this_thread(data) * of->workspace);
}

void mpad_attention_back(const struct attention_back *of, long threads) {
    const long d = of->width, team = parallel(attention_back_part, of, of->rows * of->width, threads);
    add_up(of->grads, d * d + 2 * d, of->workspace, team);
}

SHARED_OUT(linear, linear, strips(of->rows), STRIP, of->rows)
void mpad_linear(const struct linear *of, long threads) {
    PICK(transpose)(of->w, of->n_out, of->n_in, 0, of->n_out, of->w_t);
    parallel(linear_part, of, of->rows * of->n_in, threads);
}

SHARED_OUT_ADDING(linear_back, linear_back, strips(of->rows), STRIP, of->rows, of->grads, of->workspace)
void mpad_linear_back(const struct linear_back *of, long threads) {
    const long team = parallel(linear_back_part, of, of->rows * of->n_in, threads);
    add_up(of->grads, (of->n_in + 1) * of->n_out, of->workspace, team);
}

SHARED_OUT(embed, dropped, of->n, 1, of->n)
void mpad_embed(const struct dropped *of, long threads) { parallel(embed_part, of, of->n * of->width, threads); }

static void drop_part(void *data) {
    const struct dropped *of = ((struct shared *)data)->of;
    long first, last;
    part(data, (of->n + 7) / 8, &first, &last);
    PICK(drop)(of, of->x + first * 8, first, least(last * 8, of->n) - first * 8, of->y + first * 8);
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
    PICK(adam)(of, first, last);
}

void mpad_adam(const struct adam *of, long threads) {
    if (of->n) parallel(adam_part, of, of->parts[of->n - 1].start + of->parts[of->n - 1].n, threads);
}

SHARED_OUT_ADDING(norm_moments, norm, of->rows, 1, of->rows, of->workspace, 2 * of->width)
SHARED_OUT(norm, norm, of->rows, 1, of->rows)
/* A bias `before` the norm, which x lacks, moves the running mean and nothing else. */
void mpad_norm(const struct norm *of, long threads) {
    const long n = of->rows, d = of->width;
    const long team = of->by_batch ? parallel(norm_moments_part, of, n * d, threads) : 0;
    for (long c = 0; c < d; c++) {
        const float before = of->before ? of->before[c] : 0;
        if (!of->by_batch) {
            of->mean[c] = of->running_mean[c] - before, of->scale[c] = 1 / sqrtf(of->running_var[c] + of->eps);
            continue;
        }
        double mean = 0, squares = 0;
        for (long t = 0; t < team; t++) mean += of->workspace[t * 2 * d + c] * (double)(n * (t + 1) / team - n * t / team) / n;
        for (long t = 0; t < team; t++) {
            const double apart = of->workspace[t * 2 * d + c] - mean;
            squares += of->workspace[t * 2 * d + d + c] + apart * apart * (n * (t + 1) / team - n * t / team);
        }
        of->mean[c] = mean, of->scale[c] = 1 / sqrt(squares / n + of->eps);
        of->running_mean[c] += of->momentum * (mean + before - of->running_mean[c]);
        of->running_var[c] += of->momentum * (squares / (n - 1) - of->running_var[c]);
    }
    parallel(norm_part, of, n * d, threads);
}

SHARED_OUT_ADDING(norm_back_sums, norm_back, of->rows, 1, of->rows, of->grads, 2 * of->width)
SHARED_OUT(norm_back, norm_back, of->rows, 1, of->rows)
void mpad_norm_back(const struct norm_back *of, long threads) {
    const long numbers = of->rows * of->width;
    add_up(of->grads, 2 * of->width, 2 * of->width, parallel(norm_back_sums_part, of, numbers, threads));
    parallel(norm_back_part, of, numbers, threads);
}

#include "message_round.h"
#include "readout.h"
