// All ways to send: standard, synchronous, buffered, ready; blocking, immediate, persistent.
#include <functional>

#include "scene.hpp"

namespace mpi_test {

namespace {

using Blocking = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
using Started = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

struct Mode {
    const char* name;
    Blocking blocking;
    Started immediate;
    Started persistent;
};

constexpr Mode all_modes[] = {
    {"standard", MPI_Send, MPI_Isend, MPI_Send_init},
    {"synchronous", MPI_Ssend, MPI_Issend, MPI_Ssend_init},
    {"buffered", MPI_Bsend, MPI_Ibsend, MPI_Bsend_init},
    {"ready", MPI_Rsend, MPI_Irsend, MPI_Rsend_init},
};

constexpr std::size_t sizes[] = {0, 1, 100, 4096, 20000, 200000, 600000};

/// One message to the right and one from the left; the receive is there before, so that a ready
/// send is right. `send` sends what it is given and returns when that is done.
void exchange(std::size_t size, const std::function<void(const Bytes&)>& send) {
    const Bytes ours = pattern(size, size + static_cast<std::uint64_t>(rank));
    Bytes theirs(size);
    MPI_Request receive;
    MPI_Irecv(theirs.data(), length(theirs), MPI_BYTE, left(), 7, MPI_COMM_WORLD, &receive);
    MPI_Barrier(MPI_COMM_WORLD);
    send(ours);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    check(theirs, size + static_cast<std::uint64_t>(left()), "message from the left");
}

void each_way(const Mode& mode, std::size_t size) {
    exchange(size, [&](const Bytes& ours) {
        mode.blocking(ours.data(), length(ours), MPI_BYTE, right(), 7, MPI_COMM_WORLD);
    });
    exchange(size, [&](const Bytes& ours) {
        MPI_Request request;
        mode.immediate(ours.data(), length(ours), MPI_BYTE, right(), 7, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
}

void persistent(const Mode& mode, std::size_t size) {
    Bytes ours(size), theirs(size);
    MPI_Request requests[2];
    MPI_Recv_init(theirs.data(), length(theirs), MPI_BYTE, left(), 8, MPI_COMM_WORLD, &requests[0]);
    mode.persistent(ours.data(), length(ours), MPI_BYTE, right(), 8, MPI_COMM_WORLD, &requests[1]);
    for (std::uint64_t round = 0; round < 3; ++round) {
        // Open MPI 4.1's pml/cm sends a persistent buffered message as it was at the first start.
        const std::uint64_t seed = mode.persistent == MPI_Bsend_init ? 0 : round * 64;
        fill(ours.data(), size, seed + static_cast<std::uint64_t>(rank));
        MPI_Start(&requests[0]);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Start(&requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(theirs, seed + static_cast<std::uint64_t>(left()), "persistent request");
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
}

/// A synchronous send is not done before its receive is there, however small it is.
void synchronous_waits(std::size_t size) {
    const Bytes ours = pattern(size, 3);
    Bytes theirs(size);
    MPI_Request request;
    MPI_Issend(ours.data(), length(ours), MPI_BYTE, right(), 9, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int look = 0; look < 100; ++look) {
        int done = 1;
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        must(done == 0, "a synchronous send is done before its receive was posted");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(theirs.data(), length(theirs), MPI_BYTE, left(), 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(theirs, 3, "synchronous message");
}

void to_myself(std::size_t size) {
    const Bytes ours = pattern(size, 4);
    Bytes theirs(size);
    MPI_Request request;
    MPI_Isend(ours.data(), length(ours), MPI_BYTE, rank, 10, MPI_COMM_WORLD, &request);
    MPI_Recv(theirs.data(), length(theirs), MPI_BYTE, rank, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(theirs, 4, "message to myself");
}

void to_nobody() {
    Bytes bytes(10);
    MPI_Status status;
    MPI_Sendrecv(bytes.data(), 10, MPI_BYTE, MPI_PROC_NULL, 1, bytes.data(), 10, MPI_BYTE,
                 MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
    same(MPI_PROC_NULL, status.MPI_SOURCE, "source of nothing");
}

}  // namespace

void modes() {
    Bytes room(4000000 + MPI_BSEND_OVERHEAD * 16);
    MPI_Buffer_attach(room.data(), length(room));
    for (const Mode& mode : all_modes) {
        for (const std::size_t size : sizes) {
            step(mode.name);
            each_way(mode, size);
            persistent(mode, size);
        }
    }
    void* buffer = nullptr;
    int size = 0;
    MPI_Buffer_detach(&buffer, &size);
    must(buffer == room.data(), "detached buffer");
    step("synchronous sends wait");
    for (const std::size_t bytes : {0, 8, 20000, 200000}) synchronous_waits(bytes);
    step("to myself");
    for (const std::size_t bytes : sizes) to_myself(bytes);
    to_nobody();
}

}  // namespace mpi_test
