// Processes started by a running job, and one that ends amid a collective.
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "scene.hpp"

namespace mpi_test {

namespace {

/// Parents and children say a message to each other, of eager and of rendezvous size.
void talk(MPI_Comm between, int peer, std::uint64_t ours_seed, std::uint64_t theirs_seed) {
    for (const std::size_t size : {10, 50000, 500000}) {
        const Bytes ours = pattern(size, ours_seed);
        Bytes theirs(size);
        MPI_Sendrecv(ours.data(), length(ours), MPI_BYTE, peer, 1, theirs.data(), length(theirs),
                     MPI_BYTE, peer, 1, between, MPI_STATUS_IGNORE);
        check(theirs, theirs_seed, "message between parent and child");
    }
}

}  // namespace

void spawn() {
    char self[4096] = {};
    must(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "own name");
    char scene[] = "spawned";
    char* arguments[] = {scene, nullptr};
    step("Comm_spawn");
    MPI_Comm children;
    MPI_Comm_spawn(self, arguments, ranks, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                   MPI_ERRCODES_IGNORE);
    step("talk to the children");
    talk(children, rank, 1, 2);
    MPI_Comm all;
    MPI_Intercomm_merge(children, 0, &all);
    int sum = 1;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, all);
    same(2 * ranks, sum, "sum over parents and children");
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&children);
}

void spawned() {
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    must(parent != MPI_COMM_NULL, "spawned, and without a parent");
    talk(parent, rank, 2, 1);
    MPI_Comm all;
    MPI_Intercomm_merge(parent, 1, &all);
    int sum = 1;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&parent);
}

/// The last rank is killed while all are in a collective; MPI must end the rest.
void death() {
    std::vector<std::int64_t> numbers(20000, rank);
    for (int round = 0;; ++round) {
        step("a collective that one does not reach");
        if (rank == ranks - 1 && round == 20) {
            std::printf("killed\n");
            std::fflush(stdout);
            kill(getpid(), SIGKILL);
        }
        MPI_Allreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_INT64_T,
                      MPI_MAX, MPI_COMM_WORLD);
    }
}

}  // namespace mpi_test
