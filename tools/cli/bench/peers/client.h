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
    int depth;
    int buffers;
    int cpus[2];
};

enum { job_arguments = 8, line_bytes = 64 };

static void give_up(const char* what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* BENCH BYTES MESSAGES WARMUP DEPTH BUFFERS CPU CPU */
static struct job read_job(int count, char** words) {
    struct job job;
    if (count < job_arguments) give_up("this program is for 'via bench' to run");
    job.stream = strcmp(words[0], "stream") == 0;
    job.bytes = strtoul(words[1], NULL, 10);
    job.messages = atol(words[2]);
    job.warmup = atol(words[3]);
    job.depth = atoi(words[4]);
    job.buffers = atoi(words[5]);
    job.cpus[0] = atoi(words[6]);
    job.cpus[1] = atoi(words[7]);
    if (job.messages < 1 || job.depth < 1 || job.buffers < job.depth) give_up("a strange job");
    return job;
}

static void pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) give_up("cannot run on that processor");
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
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

static void answer(const struct job* job, int64_t took_ns) {
    printf("via-peer-1 bytes messages took_ns\n0 %zu %ld %lld\n", job->bytes, job->messages,
           (long long)took_ns);
}

#endif
