/* What the programs that stand for libraries of others have in common: the job, the buffers, the
 * clock and the answer. They are run by `via bench`, two at a time. */
#ifndef VIA_BENCH_PEERS_CLIENT_H
#define VIA_BENCH_PEERS_CLIENT_H

#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct job {
    int stream; /* else a ping-pong */
    size_t bytes;
    long messages;
    long warmup;
    int phases;
    int depth;
    int buffers;
    int cpus[2];
};

enum { job_arguments = 9, most_phases = 100, line_bytes = 64 };

static void give_up(const char* what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* BENCH BYTES MESSAGES WARMUP PHASES DEPTH BUFFERS CPU CPU */
static struct job read_job(int count, char** words) {
    struct job job;
    if (count < job_arguments) give_up("this program is for 'via bench' to run");
    job.stream = strcmp(words[0], "stream") == 0;
    job.bytes = strtoul(words[1], NULL, 10);
    job.messages = atol(words[2]);
    job.warmup = atol(words[3]);
    job.phases = atoi(words[4]);
    job.depth = atoi(words[5]);
    job.buffers = atoi(words[6]);
    job.cpus[0] = atoi(words[7]);
    job.cpus[1] = atoi(words[8]);
    if (job.phases < 1 || job.phases > most_phases) give_up("a strange job");
    if (job.messages < 1 || job.depth < 1 || job.buffers < job.depth) give_up("a strange job");
    return job;
}

static void pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) give_up("cannot run on that processor");
}

static int64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

/* How long this thread was ready and did not run so far, but for the library's own threads. */
static int64_t lost_ns(void) {
    long long ran_ns = 0;
    long long waited_ns = 0;
    FILE* file = fopen("/proc/self/schedstat", "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%lld %lld", &ran_ns, &waited_ns) != 2) waited_ns = 0;
    fclose(file);
    return waited_ns - (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

struct pool {
    char* base;
    size_t stride;
    int count;
};

static struct pool make_pool(const struct job* job) {
    struct pool pool;
    pool.stride = (job->bytes + line_bytes - 1) / line_bytes * line_bytes + line_bytes;
    pool.count = job->buffers;
    pool.base = aligned_alloc(4096, (pool.stride * (size_t)pool.count + 4095) / 4096 * 4096);
    if (pool.base == NULL) give_up("no memory");
    memset(pool.base, 0x5a, pool.stride * (size_t)pool.count);
    return pool;
}

static char* buffer_of(const struct pool* pool, long message) {
    return pool->base + pool->stride * (size_t)(message % pool->count);
}

static char* stamped(const struct pool* pool, long message, size_t bytes) {
    char* buffer = buffer_of(pool, message);
    if (bytes >= sizeof message) memcpy(buffer, &message, sizeof message);
    return buffer;
}

/* The receiver's processor reads every cache line, and which message it is. */
static void read_all(const char* buffer, size_t bytes, long message) {
    long number;
    size_t i;
    for (i = 0; i < bytes; i += line_bytes) (void)*(const volatile char*)(buffer + i);
    if (bytes < sizeof number) return;
    memcpy(&number, buffer, sizeof number);
    if (number != message) give_up("a message arrived with wrong bytes");
}

/* Of each library. */
static void send_one(const struct pool* pool, const struct job* job, long message);
static void receive_one(const struct pool* pool, const struct job* job, long message);

static int64_t ping_pong(const struct job* job, long messages, int is_first, const struct pool* out,
                         const struct pool* in) {
    const int64_t start_ns = now_ns();
    long i;
    for (i = 0; i < messages; ++i) {
        if (is_first) send_one(out, job, i);
        receive_one(in, job, i);
        if (!is_first) send_one(out, job, i);
    }
    return now_ns() - start_ns;
}

/* Of each library: one phase, and the larger of what the two sides say. */
static int64_t run(const struct job* job, long messages, const struct pool* out,
                   const struct pool* in);
static int64_t larger_of_both(int64_t own);

struct phase {
    int64_t took_ns;
    int64_t lost_ns;
};

static int is_undisturbed(const struct phase* phase) {
    return phase->lost_ns * 100 <= phase->took_ns;
}

/* Undisturbed ones first, fast ones first. */
static int compare_phases(const void* a, const void* b) {
    const struct phase* one = a;
    const struct phase* other = b;
    if (is_undisturbed(one) != is_undisturbed(other)) return is_undisturbed(other) ? 1 : -1;
    return one->took_ns < other->took_ns ? -1 : one->took_ns > other->took_ns;
}

/* The median of the undisturbed phases, or, if there is none, of all. */
static void measure(const struct job* job, int tells, const struct pool* out,
                    const struct pool* in) {
    struct phase phases[most_phases];
    const struct phase* told;
    int good = 0;
    int i;
    (void)run(job, job->warmup, out, in);
    for (i = 0; i < job->phases; ++i) {
        const int64_t before_ns = lost_ns();
        phases[i].took_ns = run(job, job->messages, out, in);
        phases[i].lost_ns = larger_of_both(lost_ns() - before_ns);
        good += is_undisturbed(&phases[i]);
    }
    if (!tells) return;
    qsort(phases, (size_t)job->phases, sizeof *phases, compare_phases);
    told = &phases[((good > 0 ? good : job->phases) - 1) / 2];
    printf("via-peer-2 bytes messages phases good took_ns lost_ns\n0 %zu %ld %d %d %lld %lld\n",
           job->bytes, job->messages, job->phases, good, (long long)told->took_ns,
           (long long)(told->lost_ns > 0 ? told->lost_ns : 0));
}

#endif
