/* Runs the kernels on synthetic numbers and prints what comes out, so that one build can be compared with another. */
#include <stdio.h>
#include <stdlib.h>

#include "../../src/mpad/native/kernels.c"

static unsigned long seed = 1;
static float number(void) { return (float)((seed = seed * 6364136223846793005UL + 1442695040888963407UL) >> 40) / (1 << 23) - 1; }

static float *numbers(long n) {
    float *x = aligned_alloc(64, (n + 16) * sizeof(float) / 64 * 64 + 64);
    for (long k = 0; k < n; k++) x[k] = number() * 0.5f;
    return x;
}

static void print(const char *name, const float *x, long n) {
    printf("%s", name);
    for (long k = 0; k < n; k += n / 40 + 1) printf(" %.6g", x[k]);
    printf("\n");
}

int main(void) {
    if (!mpad_ready(VERSION)) return 2;
    printf("lanes %d\n", mpad_lanes());
    const long d = 64, size[] = {3, 0, 5, 1}, source[] = {1, 2, 4, 5, 3}, target[] = {0, 1, 3, 4, 7}, graphs = 4, words = 9;
    const long rows = words + graphs, every = 4 * d;
    float *weight = numbers(5), *share = numbers(words), *part = numbers(graphs), *h = numbers(rows * d), *g = numbers(rows * d);
    float *w1 = numbers(d * d), *b1 = numbers(d), *w2 = numbers(d * d), *b2 = numbers(d), *bias = numbers(3 * d);
    float *w = numbers(3 * d * d), *u = numbers(2 * d * d), *v = numbers(d * d), *gamma = numbers(d), *beta = numbers(d);
    float *mean = numbers(every), *var = numbers(every), *saved = numbers(20 * rows * d + 4 * d * d + 99 * d), *out = numbers(rows * d);
    float *scratch = numbers(20 * rows * d + 30 * d * d + 900 * d + 4 * d * every), *d_h = numbers(rows * d), *grads = numbers(20 * d * d);
    for (long k = 0; k < every; k++) var[k] = var[k] * var[k] + 0.5f;
    const struct graph graph = {size, source, target, weight, share, part, 0, 0, 0, d, words, 5, graphs, d, 1, 0, WORDS, 1};
    struct batch_norm norm = {gamma, beta, b1, mean, var};
    struct round round = {.graph = graph, .h = h, .w1 = w1, .b1 = b1, .w2 = w2, .b2 = b2, .bias = bias, .w = w, .u = u, .v = v,
                          .g = g, .d_h = d_h, .grads = grads, .saved = saved, .out = out, .scratch = scratch, .h_row = d,
                          .g_row = d, .rows = rows, .width = d, .by_batch = 1, .momentum = 0.1f, .eps = 1e-5f};
    mpad_round(&round, 1);
    print("round", out, rows * d);
    mpad_round_back(&round, 1);
    print("round back", d_h, rows * d), print("round weights", grads, 8 * d * d + 5 * d);
    round.before_norm = round.norm = norm, round.v1 = w1, round.v2 = w2, round.c2 = b2, round.w1 = v, round.w2 = w2, round.b2 = b1;
    mpad_round(&round, 1);
    print("normed round", out, rows * d), print("averages", mean, d);
    mpad_round_back(&round, 1);
    print("normed back", d_h, rows * d), print("normed weights", grads, 10 * d * d);
    float *alpha = numbers(2 * words), *dense = numbers(d * every), *wide = numbers(every), *d_first = numbers(rows * d);
    struct readout_round rounds[] = {{h, w2, b1, w1, b1, b2, alpha, d_first, d}, {g, v, b2, w2, b2, b1, alpha + words, d_h, d}};
    struct batch_norm last = {wide, wide, 0, mean, var};
    struct readout readout = {size, rounds, last, dense, b1, g, grads, saved, out, scratch, d, 2, words, 1, graphs, d, 1, 1, 0.1f, 1e-5f};
    mpad_readout(&readout, 1);
    print("readout", out, graphs * d), print("attention", alpha, 2 * words);
    mpad_readout_back(&readout, 1);
    print("readout back", d_first, rows * d), print("readout weights", grads, d * every + 4 * d * d);
    const long which[] = {2, 0, 7};
    mpad_embed(&(struct dropout){h, which, out, 3, d, 0, 12345, 128, 2}, 1);
    print("dropout", out, 3 * d);
    return 0;
}
