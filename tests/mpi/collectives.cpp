// Collectives of equal parts, blocking and nonblocking, from every root, on several sizes.
#include <algorithm>

#include "scene.hpp"

namespace mpi_test {

namespace {

constexpr int counts[] = {0, 1, 17, 3000, 25000};
using Ints = std::vector<std::int64_t>;

// Which form of a collective is called.
enum class Form : std::uint8_t { blocking, nonblocking };
Form form = Form::blocking;

/// Calls one of both with the same arguments.
template <typename Blocking, typename Started, typename... Arguments>
void call(Blocking blocking, Started started, Arguments... arguments) {
    if (form == Form::blocking) {
        blocking(arguments...);
        return;
    }
    MPI_Request request;
    started(arguments..., &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

const MPI_Datatype type = MPI_INT64_T;
const MPI_Comm world = MPI_COMM_WORLD;

/// What rank `who` has at a place.
std::int64_t value(int who, std::size_t at) {
    return static_cast<std::int64_t>(at) * 1000003 + who * 7919;
}

Ints values(int who, int count, std::size_t first = 0) {
    Ints made(static_cast<std::size_t>(count));
    for (std::size_t at = 0; at < made.size(); ++at) made[at] = value(who, first + at);
    return made;
}

/// All ranks' values, one after the other.
Ints gathered(int count) {
    Ints all;
    for (int who = 0; who < ranks; ++who) {
        const Ints one = values(who, count);
        all.insert(all.end(), one.begin(), one.end());
    }
    return all;
}

/// Sum over the ranks 0 to last, at each place.
Ints sums(int last, int count, std::size_t first = 0) {
    Ints all(static_cast<std::size_t>(count));
    for (int who = 0; who <= last; ++who)
        for (std::size_t at = 0; at < all.size(); ++at) all[at] += value(who, first + at);
    return all;
}

Ints space(int parts, int count) {
    return Ints(static_cast<std::size_t>(parts) * static_cast<std::size_t>(count), -1);
}

void equal(const Ints& wanted, const Ints& got, const char* what,
           std::source_location where = std::source_location::current()) {
    same(static_cast<long long>(wanted.size()), static_cast<long long>(got.size()), what, where);
    for (std::size_t at = 0; at < wanted.size(); ++at) {
        if (wanted[at] != got[at])
            fail(std::string(what) + ": wrong at place " + std::to_string(at) + " of " +
                     std::to_string(wanted.size()),
                 where);
    }
}

void rooted(int count, int root) {
    const bool is_root = rank == root;
    Ints ours = values(is_root ? root : -1, count);
    call(MPI_Bcast, MPI_Ibcast, static_cast<void*>(ours.data()), count, type, root, world);
    equal(values(root, count), ours, "Bcast");

    ours = values(rank, count);
    Ints all = space(is_root ? ranks : 0, count);
    call(MPI_Gather, MPI_Igather, static_cast<const void*>(ours.data()), count, type,
         static_cast<void*>(all.data()), count, type, root, world);
    if (is_root) equal(gathered(count), all, "Gather");

    const Ints parts = is_root ? values(root, ranks * count) : Ints{};
    Ints part = space(1, count);
    call(MPI_Scatter, MPI_Iscatter, static_cast<const void*>(parts.data()), count, type,
         static_cast<void*>(part.data()), count, type, root, world);
    equal(values(root, count, static_cast<std::size_t>(rank * count)), part, "Scatter");

    Ints sum = space(is_root ? 1 : 0, count);
    call(MPI_Reduce, MPI_Ireduce, static_cast<const void*>(ours.data()),
         static_cast<void*>(sum.data()), count, type, MPI_SUM, root, world);
    if (is_root) equal(sums(ranks - 1, count), sum, "Reduce");
}

void to_all(int count) {
    const Ints ours = values(rank, count);
    Ints all = space(ranks, count);
    call(MPI_Allgather, MPI_Iallgather, static_cast<const void*>(ours.data()), count, type,
         static_cast<void*>(all.data()), count, type, world);
    equal(gathered(count), all, "Allgather");

    const Ints parts = values(rank, ranks * count);
    all = space(ranks, count);
    call(MPI_Alltoall, MPI_Ialltoall, static_cast<const void*>(parts.data()), count, type,
         static_cast<void*>(all.data()), count, type, world);
    Ints wanted;
    for (int who = 0; who < ranks; ++who) {
        const Ints one = values(who, count, static_cast<std::size_t>(rank * count));
        wanted.insert(wanted.end(), one.begin(), one.end());
    }
    equal(wanted, all, "Alltoall");
}

void reductions(int count) {
    const Ints ours = values(rank, count);
    Ints made = space(1, count);
    const void* in = ours.data();
    void* out = made.data();
    call(MPI_Allreduce, MPI_Iallreduce, in, out, count, type, MPI_SUM, world);
    equal(sums(ranks - 1, count), made, "Allreduce of sums");
    call(MPI_Allreduce, MPI_Iallreduce, in, out, count, type, MPI_MAX, world);
    equal(values(ranks - 1, count), made, "Allreduce of maxima");
    call(MPI_Scan, MPI_Iscan, in, out, count, type, MPI_SUM, world);
    equal(sums(rank, count), made, "Scan");
    call(MPI_Exscan, MPI_Iexscan, in, out, count, type, MPI_SUM, world);
    if (rank > 0) equal(sums(rank - 1, count), made, "Exscan");

    const Ints parts = values(rank, ranks * count);
    made = space(1, count);
    call(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block,
         static_cast<const void*>(parts.data()), static_cast<void*>(made.data()), count, type,
         MPI_SUM, world);
    equal(sums(ranks - 1, count, static_cast<std::size_t>(rank * count)), made,
          "Reduce_scatter_block");
}

void in_place(int count) {
    Ints made = values(rank, count);
    MPI_Allreduce(MPI_IN_PLACE, made.data(), count, type, MPI_SUM, world);
    equal(sums(ranks - 1, count), made, "Allreduce in place");
    Ints all = space(ranks, count);
    const Ints ours = values(rank, count);
    std::copy(ours.begin(), ours.end(), all.begin() + rank * count);
    MPI_Allgather(MPI_IN_PLACE, 0, type, all.data(), count, type, world);
    equal(gathered(count), all, "Allgather in place");
}

/// Several under way at once, completed in another order.
void overlapping(int count) {
    constexpr std::size_t under_way = 6;
    const Ints ours = values(rank, count);
    std::vector<Ints> made(under_way, space(1, count));
    std::vector<MPI_Request> requests(under_way);
    for (std::size_t at = 0; at < under_way; ++at)
        MPI_Iallreduce(ours.data(), made[at].data(), count, type, at % 2 == 0 ? MPI_SUM : MPI_MAX,
                       world, &requests[at]);
    MPI_Request barrier;
    MPI_Ibarrier(world, &barrier);
    for (std::size_t at = under_way; at-- > 0;) MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    for (std::size_t at = 0; at < under_way; ++at)
        equal(at % 2 == 0 ? sums(ranks - 1, count) : values(ranks - 1, count), made[at],
              "overlapping Iallreduce");
}

/// Communicators of a part of the ranks, all at work at once.
void split() {
    MPI_Comm half;
    MPI_Comm_split(world, rank % 2, -rank, &half);
    int sum = rank, size = 0;
    MPI_Comm_size(half, &size);
    same((ranks + 1 - rank % 2) / 2, size, "size of a split communicator");
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, half);
    int wanted = 0;
    for (int who = rank % 2; who < ranks; who += 2) wanted += who;
    same(wanted, sum, "Allreduce of a split communicator");

    MPI_Comm between;
    MPI_Intercomm_create(half, 0, world, rank % 2 == 0 ? (ranks - 1) | 1 : (ranks - 1) & ~1, 3,
                         &between);
    int theirs = rank % 2;
    MPI_Allreduce(MPI_IN_PLACE, &theirs, 1, MPI_INT, MPI_MAX, half);
    int got = -1;
    MPI_Allreduce(&theirs, &got, 1, MPI_INT, MPI_MAX, between);
    same(1 - rank % 2, got, "Allreduce of the other group");
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

}  // namespace

void collectives() {
    for (const Form each : {Form::blocking, Form::nonblocking}) {
        form = each;
        for (const int count : counts) {
            step("collectives with a root");
            for (int root = 0; root < ranks; ++root) rooted(count, root);
            step("collectives to all");
            to_all(count);
            step("reductions");
            reductions(count);
        }
    }
    step("in place");
    for (const int count : counts) in_place(count);
    step("overlapping");
    for (const int count : {1, 1000, 30000}) overlapping(count);
    step("barriers");
    for (int round = 0; round < 100; ++round) MPI_Barrier(world);
    step("split");
    if (ranks % 2 == 0) split();
}

}  // namespace mpi_test
