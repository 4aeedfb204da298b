/* A ping-pong and a stream over a pair of ZeroMQ sockets. */
#include "client.h"

#include <zmq.h>

static void* link_to_other;
static int is_first;

static void check(int done) {
    if (done < 0) give_up(zmq_strerror(zmq_errno()));
}

static void send_one(const struct pool* pool, const struct job* job, long message) {
    check(zmq_send(link_to_other, stamped(pool, message, job->bytes), job->bytes, 0));
}

static void receive_one(const struct pool* pool, const struct job* job, long message) {
    char* buffer = buffer_of(pool, message);
    check(zmq_recv(link_to_other, buffer, job->bytes, 0));
    read_all(buffer, job->bytes, message);
}

/* The library holds what is under way, its high-water mark is the depth; both sides have one clock,
 * and the receiver tells its last. */
static int64_t stream(const struct job* job, long messages, const struct pool* pool) {
    const int64_t start_ns = now_ns();
    int64_t last_ns = 0;
    long i;
    for (i = 0; i < messages; ++i) {
        is_first ? send_one(pool, job, i) : receive_one(pool, job, i);
    }
    last_ns = now_ns();
    check(is_first ? zmq_recv(link_to_other, &last_ns, sizeof last_ns, 0)
                   : zmq_send(link_to_other, &last_ns, sizeof last_ns, 0));
    return last_ns - start_ns;
}

static int64_t run(const struct job* job, long messages, const struct pool* out,
                   const struct pool* in) {
    return job->stream ? stream(job, messages, out) : ping_pong(job, messages, is_first, out, in);
}

static int64_t larger_of_both(int64_t own) {
    int64_t other = 0;
    if (is_first) check(zmq_send(link_to_other, &own, sizeof own, 0));
    check(zmq_recv(link_to_other, &other, sizeof other, 0));
    if (!is_first) check(zmq_send(link_to_other, &own, sizeof own, 0));
    return own > other ? own : other;
}

static void tell_version(void) {
    int major = 0;
    int minor = 0;
    int patch = 0;
    zmq_version(&major, &minor, &patch);
    printf("ZeroMQ %d.%d.%d\n", major, minor, patch);
}

/* JOB connect|bind ADDRESS */
int main(int count, char** words) {
    struct job job;
    struct pool out;
    struct pool in;
    void* context;
    if (count == 2 && strcmp(words[1], "--version") == 0) {
        tell_version();
        return 0;
    }
    job = read_job(count - 1, words + 1);
    if (count != 1 + job_arguments + 2) give_up("connect or bind, and where?");
    is_first = strcmp(words[1 + job_arguments], "connect") == 0;
    pin_to(job.cpus[is_first ? 0 : 1]);
    context = zmq_ctx_new();
    link_to_other = context == NULL ? NULL : zmq_socket(context, ZMQ_PAIR);
    if (link_to_other == NULL) give_up(zmq_strerror(zmq_errno()));
    check(zmq_setsockopt(link_to_other, ZMQ_SNDHWM, &job.depth, sizeof job.depth));
    check(zmq_setsockopt(link_to_other, ZMQ_RCVHWM, &job.depth, sizeof job.depth));
    check(is_first ? zmq_connect(link_to_other, words[count - 1])
                   : zmq_bind(link_to_other, words[count - 1]));
    out = make_pool(&job);
    in = make_pool(&job);
    measure(&job, is_first, &out, &in);
    zmq_close(link_to_other);
    zmq_ctx_term(context);
    return 0;
}
