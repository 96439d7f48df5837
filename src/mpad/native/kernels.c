/* The C kernels: training (mpad/kernels/cpu.py) and inference (mpad/inference/fused.py) on a CPU, batches (mpad/graph/batch.py)
 * and tokenization (mpad/text/vocabulary.py).
 *
 * Rows are float32; widths are multiples of 16 up to WIDEST. Nothing here allocates memory or reports errors: Python checks
 * the arguments.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { PLAIN, RELU, TANH };
enum { WORDS, CLIQUE, PATH };
#define VERSION 21 /* of the interface: Python does not load a library of another version */
#define WIDEST 256         /* columns */
#define STRIP 24           /* rows that layers pass to each other: they stay in the first-level cache */
#define BLOCK 96           /* rows per partial sum: a multiple of STRIP, less than DEPTH */
#define DEPTH 128          /* rows of weights that fit into the first-level cache along with their input */
#define PANEL 64           /* columns */
#define PREFETCH 6         /* rows between a prefetch and its use */
#define PARALLEL_MIN 12288 /* numbers; fewer are not worth a second thread */

static void copy_rows(float *to, long to_row, const float *from, long from_row, long rows, long width) {
    for (long r = 0; r < rows; r++) memcpy(to + r * to_row, from + r * from_row, width * sizeof(float));
}

#include "abi.h"

/* Arguments of the layers, which only C fills in. */

struct update { /* weights are (out, in); `w_t` has room for the transposes of W, U, V and W2, in this order */
    const float *h, *x, *w2, *b2, *bias, *w, *u, *v;
    float *w_t, *message, *rzc, *out; /* message and rzc, which the backward needs, may be NULL */
    long h_row, x_row, rows, width, relu;
};

struct update_back { /* rows of x are contiguous; `grads` has `workspace` numbers per thread, thread 0's has the sum in the end */
    const float *g, *h, *x, *message, *rzc, *w2, *w, *u, *v;
    float *d_h, *d_x, *grads;
    long g_row, h_row, rows, width, relu, before, workspace;
};

struct attention { /* a and dense are (out, in), `w_t` has room for their transposes; y, which the backward needs, may be NULL */
    const long *size;
    const float *h, *a, *b, *v, *dense, *dense_b;
    float *w_t, *y, *score, *alpha, *pooled, *mapped, *to;
    long h_row, to_row, rows, groups, width, bounded, master;
};

struct attention_back { /* `grads` as in `update_back` */
    const long *size;
    const float *g, *h, *a, *v, *y, *score, *alpha;
    float *d_h, *grads;
    long g_row, h_row, rows, groups, width, bounded, workspace;
};

struct linear { /* y = x w^T + b [ReLU]; w is (out, in), `w_t` has room for its transpose */
    const float *x, *w, *b;
    float *w_t, *y;
    long x_row, rows, n_in, n_out, relu;
};

struct linear_back { /* y: the output of the ReLU, or NULL; `grads` as in `update_back`; `accumulate`: add to d_x */
    const float *g, *x, *y, *w;
    float *d_x, *grads;
    long g_row, x_row, rows, n_in, n_out, workspace, accumulate;
};

struct norm { /* mean and scale, 1 / sqrt(variance + eps): of the batch or running. `workspace`: 2 * width numbers per thread */
    const float *x, *gamma, *beta, *before;
    float *running_mean, *running_var, *mean, *scale, *workspace, *y;
    long x_row, rows, width, relu, by_batch;
    float momentum, eps;
};

struct norm_back { /* `grads`, per thread: gradients of gamma, then of beta; thread 0's has the sum in the end */
    const float *g, *x, *gamma, *beta, *mean, *scale;
    float *d_x, *grads;
    long g_row, x_row, rows, width, relu;
};

#include "batch.h"
#include "tokenize.h"

/* processor.h is compiled once for each kind of processor, with the vector extensions of GCC and Clang. */
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

static int has_avx512;
#define PICK(f) (has_avx512 ? f##_512 : f##_256)

static int processor_fits(void) {
    __builtin_cpu_init();
    has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
    return has_avx512 || (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
}

/* Numbers per vector register. */
int mpad_lanes(void) { return has_avx512 ? 16 : 8; }
#else /* four numbers per register, which every 64-bit processor has (NEON on ARM) */
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

/* Return 1 if the caller expects this version and the processor can run it. Call this first. */
int mpad_ready(int version) {
    if (version != VERSION) return 0;
    prepare_tokenizer();
    return processor_fits();
}

/* The size of each structure of abi.h. */
#define SIZE(name) {#name, sizeof(struct name)}
const struct { const char *name; long size; } mpad_sizes[] = {
    SIZE(inference_step), SIZE(inference_attention), SIZE(inference), SIZE(graph), SIZE(dropout), SIZE(scatter), SIZE(corpus), SIZE(batch),
    SIZE(words), SIZE(batch_norm), SIZE(round), SIZE(readout_round), SIZE(readout),
    {0, 0}};

/* Infer graphs first .. last - 1, in chunks that fit into `scratch`, of at least one graph. */
void mpad_infer(const struct inference *args, long first, long last) {
    while (first < last) {
        long end = first + 1;
        while (end < last && args->node_start[end + 1] - args->node_start[first] + end + 1 - first <= args->rows &&
               args->edge_start[end + 1] - args->edge_start[first] <= args->edges)
            end++;
        PICK(infer)(args, first, end);
        first = end;
    }
}

#include "threads.h"

static void transpose_part(void *data) {
    const struct update *args = ((struct shared *)data)->args;
    const long d = args->width, n_out[] = {3 * d, 2 * d, d, d};
    const float *weights[] = {args->w, args->u, args->v, args->w2};
    float *to = args->w_t;
    for (int k = 0; k < 4; to += n_out[k++] * d) {
        long first, last;
        if (!weights[k]) continue;
        part(data, n_out[k] / 16, &first, &last);
        PICK(transpose)(weights[k], n_out[k], d, first * 16, last * 16, to);
    }
}

PARALLEL(update, update, strips(args->rows), STRIP, args->rows)
static void run_update(const struct update *args, long threads) {
    parallel(transpose_part, args, 8 * args->rows * args->width, threads);
    parallel(update_part, args, 8 * args->rows * args->width, threads);
}

PARALLEL(update_back, update_back, strips(args->rows), STRIP, args->rows, OWN(args->grads, args->workspace))
static void run_update_back(const struct update_back *args, long threads) {
    const long d = args->width, team = parallel(update_back_part, args, 8 * args->rows * args->width, threads);
    reduce_grads(args->grads, 7 * d * d + 5 * d, args->workspace, team);
}

/* A thread's groups: those that begin in its part of the rows. */
static void groups_part(void *data, const long *size, long groups, long rows, long *first, long *last, long *row) {
    long begin, end;
    part(data, rows, &begin, &end);
    const int final = end == rows;
    *first = *row = 0;
    while (*first < groups && *row < begin) *row += size[(*first)++];
    *last = *first;
    for (long at = *row; *last < groups && (final || at < end); (*last)++) at += size[*last];
}

static void aggregate_words_part(void *data) {
    const struct graph *args = ((struct shared *)data)->args;
    long first, last, row, low = 0, high = args->edges;
    groups_part(data, args->size, args->groups, args->rows, &first, &last, &row);
    while (low < high) { /* the first edge into these rows */
        long middle = (low + high) / 2;
        if (args->target[middle] < row) low = middle + 1;
        else high = middle;
    }
    PICK(aggregate_words)(args, first, last, row, low, 0, 0, 0);
}

static void attention_part(void *data) {
    const struct attention *args = ((struct shared *)data)->args;
    long first, last, row;
    groups_part(data, args->size, args->groups, args->rows, &first, &last, &row);
    PICK(attention)(args, first, last, row);
}

static void run_attention(const struct attention *args, long threads) {
    const long d = args->width;
    PICK(transpose)(args->a, d, d, 0, d, args->w_t);
    if (args->dense) PICK(transpose)(args->dense, d, d, 0, d, args->w_t + d * d);
    parallel(attention_part, args, args->rows * d, threads);
}

static void attention_back_part(void *data) {
    const struct attention_back *args = ((struct shared *)data)->args;
    long first, last, row;
    groups_part(data, args->size, args->groups, args->rows, &first, &last, &row);
    PICK(attention_back)(args, first, last, row, args->grads + this_thread(data) * args->workspace);
}

static void run_attention_back(const struct attention_back *args, long threads) {
    const long d = args->width, team = parallel(attention_back_part, args, args->rows * args->width, threads);
    reduce_grads(args->grads, d * d + 2 * d, args->workspace, team);
}

PARALLEL(linear, linear, strips(args->rows), STRIP, args->rows)
static void run_linear(const struct linear *args, long threads) {
    PICK(transpose)(args->w, args->n_out, args->n_in, 0, args->n_out, args->w_t);
    parallel(linear_part, args, args->rows * args->n_in, threads);
}

PARALLEL(linear_back, linear_back, strips(args->rows), STRIP, args->rows, OWN(args->grads, args->workspace))
static void run_linear_back(const struct linear_back *args, long threads) {
    const long team = parallel(linear_back_part, args, args->rows * args->n_in, threads);
    reduce_grads(args->grads, (args->n_in + 1) * args->n_out, args->workspace, team);
}

PARALLEL(embed, dropout, args->n, 1, args->n)
void mpad_embed(const struct dropout *args, long threads) { parallel(embed_part, args, args->n * args->width, threads); }

PARALLEL(scatter, scatter, args->width / 16, 16, args->width)
void mpad_scatter(const struct scatter *args, long threads) { parallel(scatter_part, args, args->rows * args->width, threads); }

PARALLEL(norm_moments, norm, args->rows, 1, args->rows, OWN(args->workspace, 2 * args->width))
PARALLEL(norm, norm, args->rows, 1, args->rows)
/* A bias `before` the norm, which x lacks, affects the running mean alone. */
static void run_norm(const struct norm *args, long threads) {
    const long n = args->rows, d = args->width;
    const long team = args->by_batch ? parallel(norm_moments_part, args, n * d, threads) : 0;
    for (long c = 0; c < d; c++) {
        const float before = args->before ? args->before[c] : 0;
        if (!args->by_batch) {
            args->mean[c] = args->running_mean[c] - before, args->scale[c] = 1 / sqrtf(args->running_var[c] + args->eps);
            continue;
        }
        double mean = 0, squares = 0;
        for (long t = 0; t < team; t++) mean += args->workspace[t * 2 * d + c] * (double)(n * (t + 1) / team - n * t / team) / n;
        for (long t = 0; t < team; t++) {
            const double delta = args->workspace[t * 2 * d + c] - mean;
            squares += args->workspace[t * 2 * d + d + c] + delta * delta * (n * (t + 1) / team - n * t / team);
        }
        args->mean[c] = mean, args->scale[c] = 1 / sqrt(squares / n + args->eps);
        args->running_mean[c] += args->momentum * (mean + before - args->running_mean[c]);
        args->running_var[c] += args->momentum * (squares / (n - 1) - args->running_var[c]);
    }
    parallel(norm_part, args, n * d, threads);
}

PARALLEL(norm_back_sums, norm_back, args->rows, 1, args->rows, OWN(args->grads, 2 * args->width))
PARALLEL(norm_back, norm_back, args->rows, 1, args->rows)
static void run_norm_back(const struct norm_back *args, long threads) {
    const long numbers = args->rows * args->width;
    reduce_grads(args->grads, 2 * args->width, 2 * args->width, parallel(norm_back_sums_part, args, numbers, threads));
    parallel(norm_back_part, args, numbers, threads);
}

#include "message_round.h"
#include "readout.h"
