// Many requests at once and the calls that complete them; order; unexpected and truncated messages;
// cancelling.
#include <algorithm>

#include "scene.hpp"

namespace mpi_test {

namespace {

constexpr int many = 96;

std::size_t size_of(int number) {
    constexpr std::size_t sizes[] = {8, 1000, 16000, 40000, 150000, 0};
    return sizes[number % 6];
}

std::uint64_t seed_of(int sender, int number) {
    return static_cast<std::uint64_t>(sender * 1000 + number);
}

/// `many` messages to the right and from the left; `complete` waits for all requests.
template <typename Complete>
void ring(Complete complete) {
    std::vector<Bytes> ours, theirs;
    std::vector<MPI_Request> requests(2 * many);
    for (int number = 0; number < many; ++number) {
        ours.push_back(pattern(size_of(number), seed_of(rank, number)));
        theirs.emplace_back(size_of(number));
    }
    for (int number = many - 1; number >= 0; --number)  // in another order than they are sent
        MPI_Irecv(theirs[static_cast<std::size_t>(number)].data(),
                  length(theirs[static_cast<std::size_t>(number)]), MPI_BYTE, left(), number,
                  MPI_COMM_WORLD, &requests[static_cast<std::size_t>(number)]);
    for (int number = 0; number < many; ++number)
        MPI_Isend(ours[static_cast<std::size_t>(number)].data(),
                  length(ours[static_cast<std::size_t>(number)]), MPI_BYTE, right(), number,
                  MPI_COMM_WORLD, &requests[static_cast<std::size_t>(many + number)]);
    complete(requests);
    for (int number = 0; number < many; ++number)
        check(theirs[static_cast<std::size_t>(number)], seed_of(left(), number), "one of many");
}

void wait_any(std::vector<MPI_Request>& requests) {
    for (int done = 0; done < 2 * many; ++done) {
        int which = MPI_UNDEFINED;
        MPI_Waitany(2 * many, requests.data(), &which, MPI_STATUS_IGNORE);
        must(which != MPI_UNDEFINED, "Waitany found none");
    }
}

void wait_some(std::vector<MPI_Request>& requests) {
    std::vector<int> which(2 * many);
    for (int done = 0; done < 2 * many;) {
        int count = 0;
        MPI_Waitsome(2 * many, requests.data(), &count, which.data(), MPI_STATUSES_IGNORE);
        must(count > 0, "Waitsome found none");
        done += count;
    }
}

void test_all(std::vector<MPI_Request>& requests) {
    int done = 0;
    while (done == 0) MPI_Testall(2 * many, requests.data(), &done, MPI_STATUSES_IGNORE);
}

void test_some_and_any(std::vector<MPI_Request>& requests) {
    std::vector<int> which(2 * many);
    for (int done = 0; done < 2 * many;) {
        int count = 0, one = MPI_UNDEFINED, found = 0;
        MPI_Testsome(2 * many, requests.data(), &count, which.data(), MPI_STATUSES_IGNORE);
        if (count != MPI_UNDEFINED) done += count;
        MPI_Testany(2 * many, requests.data(), &one, &found, MPI_STATUS_IGNORE);
        if (found != 0 && one != MPI_UNDEFINED) ++done;
    }
}

/// Nobody overtakes: of one tag, all before the first receive, small between large.
void order() {
    std::vector<Bytes> ours;
    std::vector<MPI_Request> requests(many);
    for (int number = 0; number < many; ++number) {
        ours.push_back(pattern(size_of(number), seed_of(rank, number)));
        MPI_Isend(ours.back().data(), length(ours.back()), MPI_BYTE, right(), 5, MPI_COMM_WORLD,
                  &requests[static_cast<std::size_t>(number)]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int number = 0; number < many; ++number) {
        Bytes theirs(size_of(number));
        MPI_Recv(theirs.data(), length(theirs), MPI_BYTE, left(), 5, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        check(theirs, seed_of(left(), number), "in order");
    }
    MPI_Waitall(many, requests.data(), MPI_STATUSES_IGNORE);
}

/// A message longer than its receive is an error of the receive, and of nothing else. The message
/// is there first: if an eager one meets a receive that is too short, Open MPI 4.1's mtl/ofi hears
/// of it and then waits for ever, on every provider.
void truncated(std::size_t size) {
    MPI_Comm returning;
    MPI_Comm_dup(MPI_COMM_WORLD, &returning);
    MPI_Comm_set_errhandler(returning, MPI_ERRORS_RETURN);
    const Bytes ours = pattern(size, 1);
    Bytes theirs(size / 2 + 8, std::byte{0x77});
    MPI_Request request;
    MPI_Isend(ours.data(), length(ours), MPI_BYTE, right(), 6, returning, &request);
    MPI_Probe(left(), 6, returning, MPI_STATUS_IGNORE);
    const int result = MPI_Recv(theirs.data(), length(theirs) - 8, MPI_BYTE, left(), 6, returning,
                                MPI_STATUS_IGNORE);
    int kind = MPI_SUCCESS;
    MPI_Error_class(result, &kind);
    same(MPI_ERR_TRUNCATE, kind, "result of a receive that is too short");
    must(std::all_of(theirs.end() - 8, theirs.end(),
                     [](std::byte one) { return one == std::byte{0x77}; }),
         "bytes behind a receive that is too short were written");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&returning);
}

/// A receive that is cancelled takes nothing; the message goes to the next.
void cancelled() {
    Bytes first(100), second(100);
    MPI_Request request;
    MPI_Irecv(first.data(), 100, MPI_BYTE, left(), 4, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Status status;
    MPI_Wait(&request, &status);
    int was = 0;
    MPI_Test_cancelled(&status, &was);
    must(was != 0, "a receive that nothing matched was not cancelled");
    MPI_Barrier(MPI_COMM_WORLD);
    const Bytes ours = pattern(100, seed_of(rank, 0));
    MPI_Sendrecv(ours.data(), 100, MPI_BYTE, right(), 4, second.data(), 100, MPI_BYTE, left(), 4,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(second, seed_of(left(), 0), "message after a cancelled receive");
}

}  // namespace

void completions() {
    step("Waitall");
    ring([](auto& requests) { MPI_Waitall(2 * many, requests.data(), MPI_STATUSES_IGNORE); });
    step("Waitany");
    ring(wait_any);
    step("Waitsome");
    ring(wait_some);
    step("Testall");
    ring(test_all);
    step("Testsome and Testany");
    ring(test_some_and_any);
    step("order");
    order();
    step("truncated");
    for (const std::size_t size : {64, 8000, 100000, 1000000}) truncated(size);
    step("cancelled");
    for (int round = 0; round < 20; ++round) cancelled();
}

}  // namespace mpi_test
