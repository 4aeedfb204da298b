// MPI_THREAD_MULTIPLE: threads of a rank send, receive and reduce at once.
#include <thread>

#include "scene.hpp"

namespace mpi_test {

namespace {

constexpr int workers = 4;

/// Messages of a thread to its like on the right and from the left, sizes of all protocols.
void exchange(MPI_Comm own, int worker) {
    constexpr std::size_t sizes[] = {8, 900, 17000, 150000};
    for (int round = 0; round < 12; ++round) {
        const std::size_t size = sizes[(round + worker) % 4];
        const auto seed = [&](int who) {
            return static_cast<std::uint64_t>(who * 10000 + worker * 1000 + round);
        };
        const Bytes ours = pattern(size, seed(rank));
        Bytes theirs(size);
        MPI_Sendrecv(ours.data(), length(ours), MPI_BYTE, right(), worker, theirs.data(),
                     length(theirs), MPI_BYTE, left(), worker, own, MPI_STATUS_IGNORE);
        check(theirs, seed(left()), "message of a thread");
    }
}

void reduce(MPI_Comm own, int worker) {
    for (int round = 0; round < 12; ++round) {
        int sum = rank * (round + worker);
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, own);
        same((round + worker) * ranks * (ranks - 1) / 2, sum, "Allreduce of a thread");
    }
}

void play(void (*part)(MPI_Comm, int), const std::vector<MPI_Comm>& of_worker) {
    std::vector<std::thread> threads;
    for (int worker = 0; worker < workers; ++worker)
        threads.emplace_back(part, of_worker[static_cast<std::size_t>(worker)], worker);
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

void threads() {
    std::vector<MPI_Comm> one_each(workers);
    for (MPI_Comm& own : one_each) MPI_Comm_dup(MPI_COMM_WORLD, &own);
    step("threads in one communicator");
    play(exchange, std::vector<MPI_Comm>(workers, MPI_COMM_WORLD));
    step("threads in their own communicators");
    play(exchange, one_each);
    step("threads reduce");
    play(reduce, one_each);
    for (MPI_Comm& own : one_each) MPI_Comm_free(&own);
}

}  // namespace mpi_test
