// Collectives of parts of different lengths, among them none, blocking and nonblocking; neighbours.
#include <numeric>

#include "scene.hpp"

namespace mpi_test {

namespace {

using Counts = std::vector<int>;

const MPI_Comm world = MPI_COMM_WORLD;

/// Bytes that `from` has for `to`; some pairs have nothing.
int part(int from, int to, int scale) { return (from * 3 + to * 5 + from * to) % 7 * scale; }

std::uint64_t seed_of(int from, int to, int scale) {
    return static_cast<std::uint64_t>(scale) * 10000 + static_cast<std::uint64_t>(from * 100 + to);
}

/// Where each part begins if they lie one after the other with a gap of 3 bytes.
Counts places(const Counts& counts) {
    Counts made;
    int next = 0;
    for (const int count : counts) {
        made.push_back(next);
        next += count + 3;
    }
    return made;
}

Bytes room(const Counts& counts) {
    return Bytes(static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), 0)) +
                 counts.size() * 3);
}

struct Parts {
    Counts counts;
    Counts at;
    Bytes bytes;
    explicit Parts(Counts given)
        : counts(std::move(given)), at(places(counts)), bytes(room(counts)) {}
    std::byte* begin(int index) { return bytes.data() + at[static_cast<std::size_t>(index)]; }
    std::size_t size(int index) const {
        return static_cast<std::size_t>(counts[static_cast<std::size_t>(index)]);
    }
};

/// What we have for each, or each for us.
Parts outgoing(int from, int scale) {
    Counts counts;
    for (int to = 0; to < ranks; ++to) counts.push_back(part(from, to, scale));
    Parts made(counts);
    for (int to = 0; to < ranks; ++to)
        fill(made.begin(to), made.size(to), seed_of(from, to, scale));
    return made;
}

Parts incoming(int to, int scale) {
    Counts counts;
    for (int from = 0; from < ranks; ++from) counts.push_back(part(from, to, scale));
    return Parts(counts);
}

void check_incoming(Parts& parts, int to, int scale, const char* what) {
    for (int from = 0; from < ranks; ++from)
        check(parts.begin(from), parts.size(from), seed_of(from, to, scale), what);
}

void finish(bool started, MPI_Request& request) {
    if (started) MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void all_to_all(int scale, bool started) {
    Parts out = outgoing(rank, scale), in = incoming(rank, scale);
    MPI_Request request;
    if (started)
        MPI_Ialltoallv(out.bytes.data(), out.counts.data(), out.at.data(), MPI_BYTE,
                       in.bytes.data(), in.counts.data(), in.at.data(), MPI_BYTE, world, &request);
    else
        MPI_Alltoallv(out.bytes.data(), out.counts.data(), out.at.data(), MPI_BYTE, in.bytes.data(),
                      in.counts.data(), in.at.data(), MPI_BYTE, world);
    finish(started, request);
    check_incoming(in, rank, scale, "Alltoallv");

    in = incoming(rank, scale);
    const std::vector<MPI_Datatype> types(static_cast<std::size_t>(ranks), MPI_BYTE);
    if (started)
        MPI_Ialltoallw(out.bytes.data(), out.counts.data(), out.at.data(), types.data(),
                       in.bytes.data(), in.counts.data(), in.at.data(), types.data(), world,
                       &request);
    else
        MPI_Alltoallw(out.bytes.data(), out.counts.data(), out.at.data(), types.data(),
                      in.bytes.data(), in.counts.data(), in.at.data(), types.data(), world);
    finish(started, request);
    check_incoming(in, rank, scale, "Alltoallw");
}

void gather(int scale, bool started, int root) {
    const Bytes ours =
        pattern(static_cast<std::size_t>(part(rank, root, scale)), seed_of(rank, root, scale));
    Parts in = incoming(root, scale);
    MPI_Request request;
    if (started)
        MPI_Igatherv(ours.data(), length(ours), MPI_BYTE, in.bytes.data(), in.counts.data(),
                     in.at.data(), MPI_BYTE, root, world, &request);
    else
        MPI_Gatherv(ours.data(), length(ours), MPI_BYTE, in.bytes.data(), in.counts.data(),
                    in.at.data(), MPI_BYTE, root, world);
    finish(started, request);
    if (rank == root) check_incoming(in, root, scale, "Gatherv");
}

void scatter(int scale, bool started, int root) {
    Parts out = outgoing(root, scale);
    Bytes theirs(static_cast<std::size_t>(part(root, rank, scale)));
    MPI_Request request;
    if (started)
        MPI_Iscatterv(out.bytes.data(), out.counts.data(), out.at.data(), MPI_BYTE, theirs.data(),
                      length(theirs), MPI_BYTE, root, world, &request);
    else
        MPI_Scatterv(out.bytes.data(), out.counts.data(), out.at.data(), MPI_BYTE, theirs.data(),
                     length(theirs), MPI_BYTE, root, world);
    finish(started, request);
    check(theirs, seed_of(root, rank, scale), "Scatterv");
}

void all_gather(int scale, bool started) {
    // Everybody gets what each has for rank 0.
    const Bytes ours =
        pattern(static_cast<std::size_t>(part(rank, 0, scale)), seed_of(rank, 0, scale));
    Parts in = incoming(0, scale);
    MPI_Request request;
    if (started)
        MPI_Iallgatherv(ours.data(), length(ours), MPI_BYTE, in.bytes.data(), in.counts.data(),
                        in.at.data(), MPI_BYTE, world, &request);
    else
        MPI_Allgatherv(ours.data(), length(ours), MPI_BYTE, in.bytes.data(), in.counts.data(),
                       in.at.data(), MPI_BYTE, world);
    finish(started, request);
    check_incoming(in, 0, scale, "Allgatherv");
}

void reduce_scatter(int scale, bool started) {
    Counts counts;
    for (int who = 0; who < ranks; ++who) counts.push_back(part(1, who, scale));
    std::vector<int> ours;
    for (int at = 0; at < std::accumulate(counts.begin(), counts.end(), 0); ++at)
        ours.push_back(at * (rank + 1));
    std::vector<int> made(static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]));
    MPI_Request request;
    if (started)
        MPI_Ireduce_scatter(ours.data(), made.data(), counts.data(), MPI_INT, MPI_SUM, world,
                            &request);
    else
        MPI_Reduce_scatter(ours.data(), made.data(), counts.data(), MPI_INT, MPI_SUM, world);
    finish(started, request);
    const int first = std::accumulate(counts.begin(), counts.begin() + rank, 0);
    for (std::size_t at = 0; at < made.size(); ++at)
        same((first + static_cast<long long>(at)) * ranks * (ranks + 1) / 2, made[at],
             "Reduce_scatter");
}

/// A ring of neighbours, as a grid of one dimension.
void neighbours(int scale) {
    const int periodic = 1;
    MPI_Comm ring;
    MPI_Cart_create(world, 1, &ranks, &periodic, 0, &ring);
    const std::size_t size = static_cast<std::size_t>(scale) * 10 + 1;
    const Bytes ours = pattern(size, seed_of(rank, 0, scale));
    Bytes theirs(2 * size);
    MPI_Neighbor_allgather(ours.data(), length(ours), MPI_BYTE, theirs.data(), length(ours),
                           MPI_BYTE, ring);
    check(theirs.data(), size, seed_of(left(), 0, scale), "left neighbour");
    check(theirs.data() + size, size, seed_of(right(), 0, scale), "right neighbour");
    MPI_Comm_free(&ring);
}

}  // namespace

void collectives_of_vectors() {
    for (const bool started : {false, true}) {
        for (const int scale : {1, 300, 30000}) {
            step("Alltoallv and Alltoallw");
            all_to_all(scale, started);
            for (int root = 0; root < ranks; ++root) {
                step("Gatherv");
                gather(scale, started, root);
                step("Scatterv");
                scatter(scale, started, root);
            }
            step("Allgatherv");
            all_gather(scale, started);
            step("Reduce_scatter");
            reduce_scatter(scale == 30000 ? 3000 : scale, started);
        }
    }
    step("neighbours");
    for (const int scale : {0, 10, 3000}) neighbours(scale);
}

}  // namespace mpi_test
