// Random traffic with checked data: VIA_MPI_SEED (1), VIA_MPI_SECONDS (2). Every rank draws the
// same plan, does its part of it in an order of its own, and checks every byte.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "scene.hpp"

namespace mpi_test {

namespace {

struct Message {
    int from;
    int to;
    int tag;
    int mode;
    std::size_t size;
    std::uint64_t seed;
    Bytes bytes{};
};

std::size_t draw_size(Random& plan) {
    switch (plan.below(10)) {
        case 0:
            return 0;
        case 1:
        case 2:
        case 3:
            return static_cast<std::size_t>(plan.below(256));
        case 4:
        case 5:
            return static_cast<std::size_t>(plan.below(16384));
        case 6:
        case 7:
            return static_cast<std::size_t>(16000 + plan.below(2000));
        case 8:
            return static_cast<std::size_t>(plan.below(200000));
        default:
            return static_cast<std::size_t>(plan.below(1500000));
    }
}

/// No tag comes again soon: who is done with a round may be in the next while others receive from
/// any source in the last.
std::vector<Message> draw_round(Random& plan, std::uint64_t round) {
    std::vector<Message> messages;
    for (int number = 0, count = 1 + plan.below(60); number < count; ++number) {
        messages.push_back({.from = plan.below(ranks),
                            .to = plan.below(ranks),
                            .tag = number + 64 * static_cast<int>(round % 500),
                            .mode = plan.below(8),
                            .size = draw_size(plan),
                            .seed = plan.next()});
    }
    return messages;
}

void shuffle(std::vector<Message*>& messages, Random& own) {
    for (std::size_t left = messages.size(); left > 1; --left)
        std::swap(messages[left - 1],
                  messages[static_cast<std::size_t>(own.below(static_cast<int>(left)))]);
}

MPI_Request receive(Message& message) {
    message.bytes.assign(message.size, std::byte{0});
    MPI_Request request;
    MPI_Irecv(message.bytes.data(), length(message.bytes), MPI_BYTE,
              message.mode % 2 == 0 ? message.from : MPI_ANY_SOURCE, message.tag, MPI_COMM_WORLD,
              &request);
    return request;
}

MPI_Request send(Message& message) {
    message.bytes = pattern(message.size, message.seed);
    const auto start = message.mode < 2 ? MPI_Issend : MPI_Isend;
    MPI_Request request;
    start(message.bytes.data(), length(message.bytes), MPI_BYTE, message.to, message.tag,
          MPI_COMM_WORLD, &request);
    return request;
}

/// Sends and receives in any order, half of the receives perhaps only when the sends are under way.
void play_round(std::vector<Message> messages, Random& own) {
    std::vector<Message> copies = messages;  // a message to myself needs memory on both ends
    std::vector<Message*> todo;
    for (Message& one : messages)
        if (one.from == rank) todo.push_back(&one);
    for (Message& one : copies)
        if (one.to == rank) todo.push_back(&one);
    shuffle(todo, own);
    std::vector<MPI_Request> requests;
    for (Message* one : todo) {
        const bool is_ours = one >= messages.data() && one < messages.data() + messages.size();
        requests.push_back(is_ours ? send(*one) : receive(*one));
        if (own.below(4) != 0) continue;
        int done = 0;
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (const Message& one : copies) {
        if (one.to == rank)
            check(one.bytes, one.seed,
                  "message " + std::to_string(one.tag) + " of rank " + std::to_string(one.from));
    }
}

void collective(Random& plan) {
    const int root = plan.below(ranks);
    const std::size_t size = draw_size(plan);
    const std::uint64_t seed = plan.next();
    Bytes bytes = rank == root ? pattern(size, seed) : Bytes(size);
    MPI_Bcast(bytes.data(), length(bytes), MPI_BYTE, root, MPI_COMM_WORLD);
    check(bytes, seed, "Bcast among the traffic");
    std::int64_t sum = rank;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    same(ranks * (ranks - 1) / 2, sum, "Allreduce among the traffic");
}

}  // namespace

void traffic() {
    const int seed = setting("VIA_MPI_SEED", 1), seconds = setting("VIA_MPI_SECONDS", 2);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    Random plan(static_cast<std::uint64_t>(seed));
    Random own(static_cast<std::uint64_t>(seed * 1000 + rank));
    std::uint64_t messages = 0, bytes = 0, rounds = 0;
    for (int again = 1; again != 0; ++rounds) {
        step("traffic");
        const std::vector<Message> round = draw_round(plan, rounds);
        for (const Message& one : round) bytes += one.size;
        messages += round.size();
        play_round(round, own);
        if (plan.below(5) == 0) collective(plan);
        again = std::chrono::steady_clock::now() < end ? 1 : 0;
        MPI_Bcast(&again, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        std::printf("traffic: seed %d, %llu rounds, %llu messages, %llu MB\n", seed,
                    static_cast<unsigned long long>(rounds),
                    static_cast<unsigned long long>(messages),
                    static_cast<unsigned long long>(bytes >> 20));
}

}  // namespace mpi_test
