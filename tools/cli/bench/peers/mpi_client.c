/* A ping-pong and a stream on MPI's public interface, two ranks. */
#include "client.h"

#include <mpi.h>

static int other;

static void send_one(const struct pool* pool, const struct job* job, long message) {
    MPI_Send(stamped(pool, message, job->bytes), (int)job->bytes, MPI_BYTE, other, 0,
             MPI_COMM_WORLD);
}

static void receive_one(const struct pool* pool, const struct job* job, long message) {
    char* buffer = buffer_of(pool, message);
    MPI_Recv(buffer, (int)job->bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    read_all(buffer, job->bytes, message);
}

/* Rank 0 sends, `depth` messages under way; both have one clock, and the receiver tells its last.
 */
static int64_t stream(const struct job* job, long messages, const struct pool* pool) {
    MPI_Request* requests = calloc((size_t)job->depth, sizeof *requests);
    const int bytes = (int)job->bytes;
    int64_t last_ns = 0;
    int64_t start_ns;
    long i;
    if (requests == NULL) give_up("no memory");
    for (i = 0; i < job->depth; ++i) requests[i] = MPI_REQUEST_NULL;
    for (i = 0; other == 0 && i < job->depth && i < messages; ++i) {
        MPI_Irecv(buffer_of(pool, i), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    start_ns = now_ns();
    for (i = 0; i < messages; ++i) {
        MPI_Request* request = &requests[i % job->depth];
        MPI_Wait(request, MPI_STATUS_IGNORE);
        if (other == 1) {
            MPI_Isend(stamped(pool, i, job->bytes), bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, request);
            continue;
        }
        read_all(buffer_of(pool, i), job->bytes, i);
        if (i + job->depth < messages) {
            MPI_Irecv(buffer_of(pool, i + job->depth), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                      request);
        }
    }
    last_ns = now_ns();
    for (i = 0; i < job->depth; ++i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    free(requests);
    MPI_Bcast(&last_ns, 1, MPI_INT64_T, 1, MPI_COMM_WORLD);
    return last_ns - start_ns;
}

static int64_t run(const struct job* job, long messages, const struct pool* out,
                   const struct pool* in) {
    if (job->stream) return stream(job, messages, out);
    MPI_Barrier(MPI_COMM_WORLD);
    return ping_pong(job, messages, other == 1, out, in);
}

static int64_t larger_of_both(int64_t own) {
    int64_t larger = own;
    MPI_Allreduce(&own, &larger, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    return larger;
}

static void tell_version(void) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    puts(text);
}

int main(int count, char** words) {
    struct job job;
    struct pool out;
    struct pool in;
    int rank = 0;
    if (count == 2 && strcmp(words[1], "--version") == 0) {
        tell_version();
        return 0;
    }
    job = read_job(count - 1, words + 1);
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    pin_to(job.cpus[rank]);
    out = make_pool(&job);
    in = make_pool(&job);
    measure(&job, rank == 0, &out, &in);
    MPI_Finalize();
    return 0;
}
