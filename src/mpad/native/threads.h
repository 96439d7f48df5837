/* Threads of the OpenMP that the process has loaded (torch's): a second pool would compete for the cores. */
static void (*run_parallel)(void (*)(void *), void *, unsigned, unsigned);
static int (*thread_number)(void), (*team_size)(void);

void mpad_threads(void *parallel, void *number, void *size) {
    run_parallel = (void (*)(void (*)(void *), void *, unsigned, unsigned))parallel;
    thread_number = (int (*)(void))number;
    team_size = (int (*)(void))size;
}

struct shared {
    const void *args;
    long threads, team; /* requested, running */
};

/* Run `work` on `threads` threads, or on one for few numbers. Returns how many ran. */
static long parallel(void (*work)(void *), const void *args, long numbers, long threads) {
    struct shared data = {args, 1, 1};
    if (numbers < PARALLEL_MIN) threads = 1;
    if (threads > 1 && run_parallel)
        data.threads = threads, run_parallel(work, &data, threads, 0);
    else
        work(&data);
    return data.team;
}

/* The index of this thread. */
static long this_thread(const struct shared *data) { return data->threads > 1 ? thread_number() : 0; }

/* This thread's part of n pieces; fewer threads may run than were requested. */
static void part(struct shared *data, long n, long *first, long *last) {
    const long me = this_thread(data), team = data->threads > 1 ? team_size() : 1;
    if (me == 0) data->team = team;
    *first = n * me / team, *last = n * (me + 1) / team;
}

/* Reduce the per-thread gradients, n numbers every `workspace`, into thread 0's buffer. */
static void reduce_grads(float *grads, long n, long workspace, long team) {
    for (long t = 1; t < team; t++)
        for (long k = 0; k < n; k++) grads[k] += grads[t * workspace + k];
}

static long strips(long rows) { return (rows + STRIP - 1) / STRIP; }
static long least(long a, long b) { return a < b ? a : b; }

/* Define name_part: run `name` on a thread's part of `pieces` pieces of `size` rows, `total` rows in all; what follows are further
 * arguments. */
#define PARALLEL(name, kind, pieces, size, total, ...)                                                  \
    static void name##_part(void *data) {                                                               \
        const struct kind *args = ((struct shared *)data)->args;                                        \
        long first, last;                                                                               \
        part(data, pieces, &first, &last);                                                              \
        PICK(name)(args, first * size, least(last * size, total), ##__VA_ARGS__);                       \
    }
#define OWN(buffers, n) (buffers) + this_thread(data) * (n) /* one of n numbers per thread */
