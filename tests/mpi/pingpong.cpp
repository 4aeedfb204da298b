// Messages of every size to and fro, and both ways at once.
#include "scene.hpp"

namespace mpi_test {

namespace {

std::vector<std::size_t> sizes() {
    std::vector<std::size_t> all{0, 1, 2, 3, 5, 7};
    for (std::size_t power = 8; power <= 1 << 20; power *= 2)
        all.insert(all.end(), {power - 1, power, power + 1});
    for (std::size_t power = 2 << 20; power <= 16 << 20; power *= 2) all.push_back(power);
    // Around what ofi_rxm sends at once (16 KB) and in segments (128 KB), headers counted or not.
    for (const std::size_t edge : {16384 - 64, 16384 + 64, 131072 - 64, 131072 + 64})
        all.push_back(edge);
    return all;
}

std::uint64_t seed_of(std::size_t size, int sender, int round) {
    return size * 64 + static_cast<std::uint64_t>(sender * 8 + round);
}

void send(const Bytes& bytes, int peer) {
    MPI_Send(bytes.data(), length(bytes), MPI_BYTE, peer, 1, MPI_COMM_WORLD);
}

void receive(std::size_t size, int peer, std::uint64_t seed) {
    Bytes bytes(size + 8, std::byte{0x5a});
    MPI_Status status;
    MPI_Recv(bytes.data(), length(bytes), MPI_BYTE, peer, 1, MPI_COMM_WORLD, &status);
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    same(static_cast<long long>(size), count, "length received");
    same(peer, status.MPI_SOURCE, "source");
    check(bytes.data(), size, seed, "message");
    for (std::size_t at = size; at < bytes.size(); ++at)
        must(bytes[at] == std::byte{0x5a}, "bytes behind the message were written");
}

void to_and_fro(std::size_t size, int peer, int round) {
    const Bytes ours = pattern(size, seed_of(size, rank, round));
    if (rank < peer) send(ours, peer);
    receive(size, peer, seed_of(size, peer, round));
    if (rank > peer) send(ours, peer);
}

void both_at_once(std::size_t size, int peer) {
    const Bytes ours = pattern(size, seed_of(size, rank, 5));
    Bytes theirs(size);
    MPI_Sendrecv(ours.data(), length(ours), MPI_BYTE, peer, 2, theirs.data(), length(theirs),
                 MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(theirs, seed_of(size, peer, 5), "both ways at once");
    Bytes replaced = ours;
    MPI_Sendrecv_replace(replaced.data(), length(replaced), MPI_BYTE, peer, 3, peer, 3,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(replaced, seed_of(size, peer, 5), "Sendrecv_replace");
}

}  // namespace

void pingpong() {
    const int peer = rank ^ 1;
    if (peer >= ranks) return;
    for (const std::size_t size : sizes()) {
        step("to and fro");
        for (int round = 0; round < (size > 20000 ? 1 : 3); ++round) to_and_fro(size, peer, round);
        step("both ways at once");
        both_at_once(size, peer);
    }
}

}  // namespace mpi_test
