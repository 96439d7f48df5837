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
    long threads, team; /* asked for, and there */
};

/* Run `work` on as many threads as are asked for, if there are numbers enough; how many it were. */
static long parallel(void (*work)(void *), const void *of, long numbers, long threads) {
    struct shared data = {of, 1, 1};
    if (numbers < FEW) threads = 1;
    if (threads > 1 && run_parallel)
        data.threads = threads, run_parallel(work, &data, threads, 0);
    else
        work(&data);
    return data.team;
}

/* This thread's number, and its part of n pieces: of as many threads as there are, which may be fewer than asked for. */
static long this_thread(const struct shared *data) { return data->threads > 1 ? thread_number() : 0; }

static void part(struct shared *data, long n, long *first, long *last) {
    const long me = this_thread(data), team = data->threads > 1 ? team_size() : 1;
    if (me == 0) data->team = team;
    *first = n * me / team, *last = n * (me + 1) / team;
}

/* What threads have grads, each `n` numbers in its `workspace`, is added up in the first one's. */
static void add_up(float *grads, long n, long workspace, long team) {
    for (long t = 1; t < team; t++)
        for (long k = 0; k < n; k++) grads[k] += grads[t * workspace + k];
}

static long strips(long rows) { return (rows + STRIP - 1) / STRIP; }
static long least(long a, long b) { return a < b ? a : b; }

/* name_part: a thread's part of `pieces` pieces of `size` each, of `total` in all. */
#define SHARED_OUT(name, kind, pieces, size, total)                                                     \
    static void name##_part(void *data) {                                                               \
        const struct kind *of = ((struct shared *)data)->of;                                            \
        long first, last;                                                                               \
        part(data, pieces, &first, &last);                                                              \
        PICK(name)(of, first * size, least(last * size, total));                  \
    }

/* The same where each thread adds to `workspace` numbers of its own. */
#define SHARED_OUT_ADDING(name, kind, pieces, size, total, grads, workspace)                                 \
    static void name##_part(void *data) {                                                               \
        const struct kind *of = ((struct shared *)data)->of;                                            \
        long first, last;                                                                               \
        part(data, pieces, &first, &last);                                                              \
        PICK(name)(of, first * size, least(last * size, total),                   \
                                         grads + this_thread(data) * (workspace));                           \
    }
