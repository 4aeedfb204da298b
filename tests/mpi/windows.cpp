// One-sided: put, get, accumulate and the atomic ones, under fences, locks and PSCW.
#include <algorithm>

#include "scene.hpp"

namespace mpi_test {

namespace {

using Longs = std::vector<std::int64_t>;

constexpr int counts[] = {1, 100, 3000, 50000};
const MPI_Datatype type = MPI_INT64_T;

Longs values(int who, int count) {
    Longs made(static_cast<std::size_t>(count));
    for (std::size_t at = 0; at < made.size(); ++at)
        made[at] = static_cast<std::int64_t>(at) * 31 + who * 1000001;
    return made;
}

/// A window of `count` numbers that each rank fills with its own.
class Window {
public:
    explicit Window(int count) : memory_(values(rank, count)) {
        MPI_Win_create(memory_.data(), static_cast<MPI_Aint>(memory_.size() * sizeof memory_[0]),
                       sizeof memory_[0], MPI_INFO_NULL, MPI_COMM_WORLD, &handle_);
    }
    ~Window() { MPI_Win_free(&handle_); }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    MPI_Win get() const { return handle_; }
    Longs& memory() { return memory_; }

private:
    Longs memory_;
    MPI_Win handle_ = MPI_WIN_NULL;
};

void put_and_get(int count) {
    Window window(count);
    const Longs ours = values(rank + 100, count);
    MPI_Win_fence(0, window.get());
    MPI_Put(ours.data(), count, type, right(), 0, count, type, window.get());
    MPI_Win_fence(0, window.get());
    must(window.memory() == values(left() + 100, count), "Put under a fence");
    Longs theirs(static_cast<std::size_t>(count));
    MPI_Win_fence(0, window.get());
    MPI_Get(theirs.data(), count, type, right(), 0, count, type, window.get());
    MPI_Win_fence(0, window.get());
    must(theirs == ours, "Get under a fence");
}

void accumulate(int count) {
    Window window(count);
    const Longs ours = values(rank, count);
    MPI_Win_fence(0, window.get());
    for (int to = 0; to < ranks; ++to)
        MPI_Accumulate(ours.data(), count, type, to, 0, count, type, MPI_SUM, window.get());
    MPI_Win_fence(0, window.get());
    for (std::size_t at = 0; at < window.memory().size(); ++at) {
        std::int64_t wanted = values(rank, count)[0] + static_cast<std::int64_t>(at) * 31;
        for (int who = 0; who < ranks; ++who)
            wanted += static_cast<std::int64_t>(at) * 31 + who * 1000001;
        same(wanted, window.memory()[at], "Accumulate");
        if (count > 3000) at += 97;
    }
}

void locked(int count) {
    Window window(count);
    const Longs ours = values(rank + 200, count);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, window.get());
    MPI_Put(ours.data(), count, type, right(), 0, count, type, window.get());
    MPI_Win_unlock(right(), window.get());
    Longs theirs(static_cast<std::size_t>(count));
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, window.get());
    MPI_Get(theirs.data(), count, type, right(), 0, count, type, window.get());
    MPI_Win_flush(right(), window.get());
    must(theirs == ours, "Get behind a Put, both locked");
    MPI_Win_unlock(right(), window.get());
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window.get());
    must(window.memory() == values(left() + 200, count), "Put under a lock");
    MPI_Win_unlock(rank, window.get());
}

/// All add to one counter; nobody's addition is lost, nobody sees the same value as another.
void counters() {
    Window window(4);
    std::fill(window.memory().begin(), window.memory().end(), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    constexpr int additions = 50;
    std::int64_t before = -1;
    MPI_Win_lock_all(0, window.get());
    for (int number = 0; number < additions; ++number) {
        const std::int64_t one = 1;
        std::int64_t seen = -1;
        MPI_Fetch_and_op(&one, &seen, type, 0, 0, MPI_SUM, window.get());
        MPI_Win_flush(0, window.get());
        must(seen > before, "Fetch_and_op went back");
        before = seen;
    }
    // Who finds the word free takes it, adds to the other in two steps, and gives it back.
    for (int number = 0; number < 5; ++number) {
        const std::int64_t mine = rank + 1, nobody = 0;
        std::int64_t seen = -1;
        while (seen != nobody) {
            MPI_Compare_and_swap(&mine, &nobody, &seen, type, 0, 1, window.get());
            MPI_Win_flush(0, window.get());
        }
        std::int64_t value = 0;
        MPI_Get(&value, 1, type, 0, 2, 1, type, window.get());
        MPI_Win_flush(0, window.get());
        ++value;
        MPI_Put(&value, 1, type, 0, 2, 1, type, window.get());
        MPI_Win_flush(0, window.get());
        MPI_Compare_and_swap(&nobody, &mine, &seen, type, 0, 1, window.get());
        MPI_Win_flush(0, window.get());
        same(mine, seen, "holder of the word");
    }
    MPI_Win_unlock_all(window.get());
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) return;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.get());
    same(additions * ranks, window.memory()[0], "sum of Fetch_and_op");
    same(5 * ranks, window.memory()[2], "sum under Compare_and_swap");
    MPI_Win_unlock(0, window.get());
}

void post_start(int count) {
    Window window(count);
    MPI_Group world, from, to;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    const int left_rank = left(), right_rank = right();
    MPI_Group_incl(world, 1, &left_rank, &from);
    MPI_Group_incl(world, 1, &right_rank, &to);
    for (int round = 0; round < 5; ++round) {
        const Longs ours = values(rank + 300 + round, count);
        MPI_Win_post(from, 0, window.get());
        MPI_Win_start(to, 0, window.get());
        MPI_Put(ours.data(), count, type, right(), 0, count, type, window.get());
        MPI_Win_complete(window.get());
        MPI_Win_wait(window.get());
        must(window.memory() == values(left() + 300 + round, count), "Put under post and start");
    }
    for (MPI_Group* group : {&world, &from, &to}) MPI_Group_free(group);
}

void get_accumulate(int count) {
    Window window(count);
    const Longs ours = values(rank + 400, count);
    Longs before(static_cast<std::size_t>(count));
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, window.get());
    MPI_Get_accumulate(ours.data(), count, type, before.data(), count, type, right(), 0, count,
                       type, MPI_REPLACE, window.get());
    MPI_Win_unlock(right(), window.get());
    must(before == values(right(), count), "Get_accumulate: what was there");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window.get());
    must(window.memory() == values(left() + 400, count), "Get_accumulate: what came");
    MPI_Win_unlock(rank, window.get());
}

/// Every second number, by a type on both sides.
void strided() {
    Window window(2000);
    MPI_Datatype second;
    MPI_Type_vector(1000, 1, 2, type, &second);
    MPI_Type_commit(&second);
    const Longs ours = values(rank + 500, 2000);
    MPI_Win_fence(0, window.get());
    MPI_Put(ours.data(), 1, second, right(), 0, 1, second, window.get());
    MPI_Win_fence(0, window.get());
    const Longs own = values(rank, 2000), theirs = values(left() + 500, 2000);
    for (std::size_t at = 0; at < 2000; ++at)
        same(at % 2 == 0 ? theirs[at] : own[at], window.memory()[at], "Put of a vector");
    MPI_Type_free(&second);
}

}  // namespace

void windows() {
    for (const int count : counts) {
        step("Put and Get under fences");
        put_and_get(count);
        step("Accumulate");
        accumulate(count);
        step("locks");
        locked(count);
        step("post and start");
        post_start(count);
        step("Get_accumulate");
        get_accumulate(count);
    }
    step("counters");
    counters();
    step("strided");
    strided();
}

}  // namespace mpi_test
