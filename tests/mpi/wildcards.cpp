// All to one and all to all, received from any source with any tag; each sender's order holds.
#include <algorithm>
#include <array>

#include "scene.hpp"

namespace mpi_test {

namespace {

struct Head {
    int sender;
    int number;
    int tag;
    int size;
};

std::size_t size_of(int sender, int number) {
    constexpr std::size_t sizes[] = {sizeof(Head), 100, 5000, 16384, 60000, 200000};
    return sizes[(sender + number) % 6];
}

Bytes message(int sender, int number) {
    const std::size_t size = size_of(sender, number);
    Bytes bytes = pattern(size, static_cast<std::uint64_t>(sender * 10000 + number));
    const Head head{sender, number, number % 5, static_cast<int>(size)};
    const auto* raw = reinterpret_cast<const std::byte*>(&head);
    std::copy(raw, raw + sizeof head, bytes.begin());
    return bytes;
}

/// Takes `count` messages from whoever comes first.
void take(int count) {
    std::array<int, 64> next{};
    Bytes room(300000);
    for (int taken = 0; taken < count; ++taken) {
        MPI_Status status;
        MPI_Recv(room.data(), length(room), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 &status);
        const int sender = status.MPI_SOURCE;
        const int number = next[static_cast<std::size_t>(sender)]++;
        const Bytes wanted = message(sender, number);
        same(number % 5, status.MPI_TAG, "tag");
        int size = -1;
        MPI_Get_count(&status, MPI_BYTE, &size);
        same(length(wanted), size, "length");
        must(std::equal(wanted.begin(), wanted.end(), room.begin()), "message of any source");
    }
}

void send_all(int to, int count) {
    for (int number = 0; number < count; ++number) {
        const Bytes bytes = message(rank, number);
        MPI_Send(bytes.data(), length(bytes), MPI_BYTE, to, number % 5, MPI_COMM_WORLD);
    }
}

/// One tag of any source, posted before: each takes what comes, and knows from whom.
void posted_before() {
    const int count = 8 * (ranks - 1);
    std::vector<int> values(static_cast<std::size_t>(count), -1);
    std::vector<MPI_Request> requests(static_cast<std::size_t>(count));
    std::vector<MPI_Status> statuses(static_cast<std::size_t>(count));
    for (std::size_t at = 0; at < requests.size(); ++at)
        MPI_Irecv(&values[at], 1, MPI_INT, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &requests[at]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int number = 0; number < 8; ++number) {
        for (int to = 0; to < ranks; ++to) {
            const int value = rank * 100 + number;
            if (to != rank) MPI_Send(&value, 1, MPI_INT, to, 77, MPI_COMM_WORLD);
        }
    }
    MPI_Waitall(count, requests.data(), statuses.data());
    std::array<int, 64> next{};
    for (std::size_t at = 0; at < values.size(); ++at) {
        const int sender = statuses[at].MPI_SOURCE;
        same(sender * 100 + next[static_cast<std::size_t>(sender)]++, values[at],
             "value of any source");
    }
}

}  // namespace

void wildcards() {
    constexpr int count = 48;
    for (int to = 0; to < ranks; ++to) {
        step("all to one");
        if (rank == to) take(count * (ranks - 1));
        if (rank != to) send_all(to, count);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    step("all to all, posted before");
    posted_before();
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace mpi_test
