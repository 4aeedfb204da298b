// The biased lock (base/biased_lock.hpp): its owner against those who take it away, wait for it, or
// come to own it themselves; owners that end; and each way to get it wrong.

#include "base/biased_lock.hpp"

#include <gtest/gtest.h>

#include <string>

#include "checker.hpp"

namespace via::biased_lock_test {
namespace {

using model::Memory;
using model::Program;
using model::Result;
using enum BiasMistake;

/// Under every memory model.
template <class State>
Result explore_models(const Program<State>& program, std::initializer_list<Memory> memories = {
                                                         Memory::sc, Memory::tso, Memory::weak}) {
    Result result;
    for (const Memory memory : memories) {
        result = explore(program, {.memory = memory, .heavy_fences = true});
        if (!result.passed()) return result;
    }
    return result;
}

/// Threads count up what the lock guards.
template <BiasMistake mistake = none>
struct Counting {
    using Lock = BiasedLock<2, mistake>;
    Lock lock;
    model::Plain<int> count{0};

    explicit Counting(unsigned owner = 0, std::uint32_t takes = 64)
        : lock(model::thread_mark(owner), takes) {}
    void add() {
        const auto hold = lock.lock();
        count.set(count.get() + 1);
        Lock::unlock(hold);
    }
};

/// The owner against one who takes the lock away.
template <BiasMistake mistake>
Result revoked() {
    using State = Counting<mistake>;
    return explore_models(
        Program<State>{"an owner against another" + std::to_string(static_cast<int>(mistake)),
                       {[](State& s) { s.add(); }, [](State& s) { s.add(); }},
                       [](State& s) { VIA_MODEL_CHECK(s.count.get() == 2); }});
}

TEST(BiasedLock, is_revoked_while_its_owner_is_inside_or_about_to_be) {
    const Result result = revoked<none>();
    EXPECT_TRUE(result.passed()) << result.report();
}

TEST(BiasedLock, whatever_its_owner_and_who_revokes_it_leave_out_is_found) {
    const auto fails = [](const Result& result) { return !result.failure.empty(); };
    EXPECT_TRUE(fails(revoked<no_light_fence>()));
    EXPECT_TRUE(fails(revoked<owner_looks_first>()));
    EXPECT_TRUE(fails(revoked<no_heavy_fence>()));
    EXPECT_TRUE(fails(revoked<heavy_fence_first>()));
    EXPECT_TRUE(fails(revoked<owner_not_waited_for>()));
    EXPECT_TRUE(fails(revoked<left_without_release>()));
    EXPECT_TRUE(fails(revoked<late_mark_stays>()));
}

TEST(BiasedLock, is_revoked_by_two_at_once) {
    using State = Counting<>;
    const Result result = explore_models(
        Program<State>{
            "an owner against two others",
            {[](State& s) { s.add(); }, [](State& s) { s.add(); }, [](State& s) { s.add(); }},
            [](State& s) { VIA_MODEL_CHECK(s.count.get() == 3); }},
        {Memory::tso});
    EXPECT_TRUE(result.passed()) << result.report();
}

/// One owns it from the beginning; another one takes it, comes to own it by that, and uses it so.
template <BiasMistake mistake>
struct Succeeding : Counting<mistake> {
    Succeeding() : Counting<mistake>(0, 0) {}
};
template <BiasMistake mistake>
Result succeeded(std::initializer_list<Memory> memories) {
    using State = Succeeding<mistake>;
    return explore_models(
        Program<State>{"an owner and its successor" + std::to_string(static_cast<int>(mistake)),
                       {[](State& s) { s.add(); },
                        [](State& s) {
                            s.add();
                            s.add();
                        }},
                       [](State& s) { VIA_MODEL_CHECK(s.count.get() == 3); }},
        memories);
}

TEST(BiasedLock, has_one_inside_where_another_comes_to_own_it) {
    const Result result = succeeded<none>({Memory::sc, Memory::tso});
    EXPECT_TRUE(result.passed()) << result.report();
    // What the first says late would be taken for the second's word, and taken back as such.
    EXPECT_FALSE(succeeded<one_mark_for_all>({Memory::tso}).failure.empty());
}

/// Who changes something waits for the owner, who looks at that inside: the post lock's figure.
template <BiasMistake mistake>
struct Changing {
    using Lock = BiasedLock<2, mistake>;
    Lock locks[2] = {Lock{model::thread_mark(0), 64}, Lock{model::thread_mark(0), 64}};
    Atomic<int> changed{0};
    Atomic<int> posted[2];
    int seen[2] = {0, 0};

    void post(int at) {
        const auto hold = locks[at].lock();
        if (changed.load(memory_order_relaxed) == 0) posted[at].store(1, memory_order_relaxed);
        Lock::unlock(hold);
    }
    void change(int count) {
        changed.store(1, memory_order_relaxed);
        bool fenced = false;
        for (int at = 0; at < count; ++at) locks[at].wait_for_holder(fenced);
        for (int at = 0; at < count; ++at) seen[at] = posted[at].load(memory_order_relaxed);
    }
};

template <BiasMistake mistake>
Result passed_through() {
    using State = Changing<mistake>;
    return explore_models(
        Program<State>{"posts against a change" + std::to_string(static_cast<int>(mistake)),
                       {[](State& s) { s.post(0); }, [](State& s) { s.change(1); }},
                       [](State& s) { VIA_MODEL_CHECK(s.posted[0].load() == s.seen[0]); }});
}

TEST(BiasedLock, a_post_saw_the_change_or_is_seen_by_who_made_it) {
    const Result result = passed_through<none>();
    EXPECT_TRUE(result.passed()) << result.report();
    EXPECT_FALSE(passed_through<passed_without_fence>().failure.empty());
    EXPECT_FALSE(passed_through<owner_not_waited_for>().failure.empty());
    EXPECT_FALSE(passed_through<no_light_fence>().failure.empty());
}

TEST(BiasedLock, one_fence_is_enough_for_several) {
    using State = Changing<none>;
    const Result result =
        explore_models(Program<State>{"posts on two queues against a change",
                                      {[](State& s) {
                                           s.post(1);
                                           s.post(0);
                                       },
                                       [](State& s) { s.change(2); }},
                                      [](State& s) {
                                          VIA_MODEL_CHECK(s.posted[0].load() == s.seen[0]);
                                          VIA_MODEL_CHECK(s.posted[1].load() == s.seen[1]);
                                      }},
                       {Memory::sc, Memory::tso});
    EXPECT_TRUE(result.passed()) << result.report();
}

// A thread ends, or is cancelled where it may be: its locks are anybody's. What it looks like when
// it ends inside, or in a child that was forked while another thread was inside, is told here, too:
// who comes waits for ever. So nothing that a lock guards is a cancellation point, and a forked
// child touches no lock of its parent's.
struct Ending : Counting<> {
    void end(bool inside) {
        if (model::choose(2) == 1) add();
        if (!inside) return;
        [[maybe_unused]] const auto held = lock.lock();
    }
};

TEST(BiasedLock, of_an_owner_that_ended_is_anybodys) {
    const auto program = [](bool inside) {
        return Program<Ending>{
            inside ? "an owner that ends inside" : "an owner that ends",
            {[inside](Ending& s) { s.end(inside); }, [](Ending& s) { s.add(); }}};
    };
    const Result result = explore_models(program(false));
    EXPECT_TRUE(result.passed()) << result.report();
    EXPECT_FALSE(explore_models(program(true)).failure.empty());
}

// The child of a fork: its one thread is who called fork(), outside of the lock. It owns the lock
// as before, or another thread of the parent's does, who is not there.
TEST(BiasedLock, of_a_child_whose_parents_other_thread_owned_it_is_free) {
    using State = Counting<>;
    const Result result = explore_models(
        Program<State>{"a child's only threads",
                       {[](State&) {}, [](State& s) { s.add(); }, [](State& s) { s.add(); }},
                       [](State& s) { VIA_MODEL_CHECK(s.count.get() == 2); }},
        {Memory::sc, Memory::tso});
    EXPECT_TRUE(result.passed()) << result.report();
}

}  // namespace
}  // namespace via::biased_lock_test
