// Probe, Iprobe and their matched forms: what comes is known before it is received.
#include "scene.hpp"

namespace mpi_test {

namespace {

constexpr std::size_t sizes[] = {0, 1, 1000, 16384, 100000, 1000000};

std::uint64_t seed_of(int sender, std::size_t size) {
    return size * 64 + static_cast<unsigned>(sender);
}

int count_of(const MPI_Status& status) {
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    return count;
}

void expect(const MPI_Status& status, int source, int tag, std::size_t size) {
    same(source, status.MPI_SOURCE, "probed source");
    same(tag, status.MPI_TAG, "probed tag");
    same(static_cast<long long>(size), count_of(status), "probed length");
}

/// Sends to the right, lets `receive` take what comes from the left.
template <typename Receive>
void exchange(std::size_t size, int tag, Receive receive) {
    const Bytes ours = pattern(size, seed_of(rank, size));
    MPI_Request request;
    MPI_Isend(ours.data(), length(ours), MPI_BYTE, right(), tag, MPI_COMM_WORLD, &request);
    const Bytes theirs = receive();
    same(static_cast<long long>(size), length(theirs), "length received");
    check(theirs, seed_of(left(), size), "probed message");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

Bytes take(const MPI_Status& status) {
    Bytes bytes(static_cast<std::size_t>(count_of(status)));
    MPI_Recv(bytes.data(), length(bytes), MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return bytes;
}

void plain(std::size_t size) {
    exchange(size, 11, [size] {
        MPI_Status status;
        MPI_Probe(left(), 11, MPI_COMM_WORLD, &status);
        expect(status, left(), 11, size);
        return take(status);
    });
    exchange(size, 12, [size] {
        MPI_Status status;
        int found = 0;
        while (found == 0) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &status);
        expect(status, left(), 12, size);
        return take(status);
    });
}

void matched(std::size_t size) {
    exchange(size, 13, [size] {
        MPI_Status status;
        MPI_Message message;
        MPI_Mprobe(MPI_ANY_SOURCE, 13, MPI_COMM_WORLD, &message, &status);
        expect(status, left(), 13, size);
        Bytes bytes(size);
        MPI_Mrecv(bytes.data(), length(bytes), MPI_BYTE, &message, MPI_STATUS_IGNORE);
        return bytes;
    });
    exchange(size, 14, [size] {
        MPI_Status status;
        MPI_Message message;
        int found = 0;
        while (found == 0)
            MPI_Improbe(left(), MPI_ANY_TAG, MPI_COMM_WORLD, &found, &message, &status);
        expect(status, left(), 14, size);
        Bytes bytes(size);
        MPI_Request request;
        MPI_Imrecv(bytes.data(), length(bytes), MPI_BYTE, &message, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return bytes;
    });
}

/// A matched message is out of reach of receives; those behind it are not.
void matched_is_reserved(std::size_t size) {
    const Bytes first = pattern(size, 1), second = pattern(size, 2);
    MPI_Request requests[2];
    MPI_Isend(first.data(), length(first), MPI_BYTE, right(), 15, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(second.data(), length(second), MPI_BYTE, right(), 15, MPI_COMM_WORLD, &requests[1]);
    MPI_Message message;
    MPI_Mprobe(left(), 15, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    Bytes one(size), two(size);
    MPI_Recv(two.data(), length(two), MPI_BYTE, left(), 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Mrecv(one.data(), length(one), MPI_BYTE, &message, MPI_STATUS_IGNORE);
    check(two, 2, "received past a matched message");
    check(one, 1, "matched message, received last");
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

void nothing_there() {
    int found = 1;
    MPI_Iprobe(MPI_ANY_SOURCE, 999, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    must(found == 0, "Iprobe found what nobody sent");
    MPI_Message message;
    MPI_Improbe(left(), 999, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
    must(found == 0, "Improbe found what nobody sent");
}

}  // namespace

void probes() {
    for (const std::size_t size : sizes) {
        step("Probe and Iprobe");
        plain(size);
        MPI_Barrier(MPI_COMM_WORLD);
        step("Mprobe and Improbe");
        matched(size);
        step("a matched message is reserved");
        matched_is_reserved(size);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    step("nothing there");
    nothing_there();
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace mpi_test
