// The turn and its doorbells (nic/turn_lock.hpp), the flush of a queue against its posters, and
// waiting against progress: the hand-overs that must not lose anything.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "checker.hpp"
#include "nic/turn_lock.hpp"
#include "queue/work_queue.hpp"

namespace via::turn_test {
namespace {

using model::explore_all;
using model::Program;

// Two programs' threads post on two VIs, or on one; whoever holds the turn does the work.
template <BiasMistake mistake = BiasMistake::none>
struct PostingWith {
    struct Item {
        Atomic<bool> rung{false};
        Item* next_rung = nullptr;
        Atomic<int> posted{0};
        model::Plain<int> handled{0};  // the turn guards it
    };
    nic::TurnLockOf<mistake> lock;
    nic::Doorbells<Item> bells;
    Item items[2];

    PostingWith() = default;
    PostingWith(std::uintptr_t owner, std::uint32_t takes_to_own) : lock(owner, takes_to_own) {}

    void post(int item) {
        items[item].posted.fetch_add(1, memory_order_release);
        bells.ring(items[item]);
        if (lock.try_take()) hold();
    }
    /// Nic::end_turn()'s loop.
    void hold() {
        for (;;) {
            bells.answer(
                [](Item& item) { item.handled.set(item.posted.load(memory_order_acquire)); });
            lock.release();
            if (!bells.any() || !lock.try_take()) return;
        }
    }
};

using Posting = PostingWith<>;

TEST(Turn, no_post_is_stranded_between_two_posters) {
    const Program<Posting> program{"two posters, two VIs",
                                   {[](Posting& p) { p.post(0); }, [](Posting& p) { p.post(1); }},
                                   [](Posting& p) {
                                       VIA_MODEL_CHECK(p.items[0].handled.get() == 1);
                                       VIA_MODEL_CHECK(p.items[1].handled.get() == 1);
                                   }};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

TEST(Turn, no_post_is_stranded_on_one_vi) {
    const Program<Posting> program{
        "two posters, one VI",
        {[](Posting& p) { p.post(0); }, [](Posting& p) { p.post(0); }},
        [](Posting& p) { VIA_MODEL_CHECK(p.items[0].handled.get() == 2); }};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

// The turn is one thread's own, who loses it to another's post or wait.
struct Owning : Posting {
    Owning() : Posting(model::thread_mark(0), 64) {}
};

TEST(Turn, no_post_is_stranded_where_one_poster_owns_the_turn) {
    const Program<Owning> program{"an owner's posts against another's",
                                  {[](Owning& p) { p.post(0); }, [](Owning& p) { p.post(1); }},
                                  [](Owning& p) {
                                      VIA_MODEL_CHECK(p.items[0].handled.get() == 1);
                                      VIA_MODEL_CHECK(p.items[1].handled.get() == 1);
                                  }};
    const auto result = explore_all(program, {.heavy_fences = true});
    EXPECT_TRUE(result.passed()) << result.report();
}

// What the owner or who takes the turn away may get wrong strands a post, or has both inside.
template <BiasMistake mistake>
struct Wrong : PostingWith<mistake> {
    model::Plain<int> turns{0};  // the turn guards it

    Wrong() : PostingWith<mistake>(model::thread_mark(0), 64) {}
    void try_turn() {
        if (!this->lock.try_take()) return;
        turns.set(turns.get() + 1);
        this->lock.release();
    }
};

template <BiasMistake mistake>
bool is_found() {
    using State = Wrong<mistake>;
    const std::string number = std::to_string(static_cast<int>(mistake));
    const Program<State> posts{"posts at an owner's turn with mistake " + number,
                               {[](State& s) { s.post(0); }, [](State& s) { s.post(1); }},
                               [](State& s) {
                                   VIA_MODEL_CHECK(s.items[0].handled.get() == 1);
                                   VIA_MODEL_CHECK(s.items[1].handled.get() == 1);
                               }};
    const Program<State> turns{"turns of an owner and another with mistake " + number,
                               {[](State& s) { s.try_turn(); }, [](State& s) { s.try_turn(); }},
                               [](State&) {}};
    const auto fails = [](const auto& program) {
        return !explore_all(program, {.heavy_fences = true}).failure.empty();
    };
    return fails(turns) || fails(posts);
}

TEST(Turn, whatever_its_owner_and_who_takes_it_away_leave_out_is_found) {
    using enum BiasMistake;
    EXPECT_FALSE(is_found<none>());
    EXPECT_TRUE(is_found<no_light_fence>());
    EXPECT_TRUE(is_found<owner_looks_first>());
    EXPECT_TRUE(is_found<no_heavy_fence>());
    EXPECT_TRUE(is_found<heavy_fence_first>());
    EXPECT_TRUE(is_found<owner_not_waited_for>());
    EXPECT_TRUE(is_found<left_without_release>());
    EXPECT_TRUE(is_found<late_mark_stays>());
    EXPECT_TRUE(is_found<loss_unnoticed>());
}

TEST(Turn, no_post_is_stranded_where_two_take_it_from_its_owner) {
    const Program<Owning> program{
        "an owner's post against two others'",
        {[](Owning& p) { p.post(0); }, [](Owning& p) { p.post(1); }, [](Owning& p) { p.post(1); }},
        [](Owning& p) {
            VIA_MODEL_CHECK(p.items[0].handled.get() == 1);
            VIA_MODEL_CHECK(p.items[1].handled.get() == 2);
        }};
    // Far more than can be looked at: some.
    const auto result = explore(program, {.memory = model::Memory::tso,
                                          .heavy_fences = true,
                                          .preemption_bound = 2,
                                          .max_executions = 50'000});
    EXPECT_TRUE(result.failure.empty()) << result.report();
}

// It comes to own the turn by its first post. (Under the weak model more than five million.)
struct Earning : Posting {
    Earning() : Posting(0, 1) {}
};

TEST(Turn, no_post_is_stranded_where_one_poster_comes_to_own_it) {
    const Program<Earning> program{"posts of one who comes to own it against another's",
                                   {[](Earning& p) {
                                        p.post(0);
                                        p.post(0);
                                    },
                                    [](Earning& p) { p.post(1); }},
                                   [](Earning& p) {
                                       VIA_MODEL_CHECK(p.items[0].handled.get() == 2);
                                       VIA_MODEL_CHECK(p.items[1].handled.get() == 1);
                                   }};
    const auto result = explore(program, {.memory = model::Memory::tso, .heavy_fences = true});
    EXPECT_TRUE(result.passed()) << result.report();
}

// Both come to own the turn, one after the other: what who owned it before still does, when it
// finds that it lost it, does not touch who is inside now.
struct Succeeding {
    nic::TurnLock turn{model::thread_mark(0), 1};
    model::Plain<int> turns{0};  // the turn guards it

    void try_turn() {
        if (turn.try_take()) end_turn();
    }
    void try_turn_rarely() {
        if (turn.try_take_rarely()) end_turn();
    }
    void end_turn() {
        turns.set(turns.get() + 1);
        turn.release();
    }
};

TEST(Turn, one_is_inside_where_its_owner_was_late_and_another_came_to_own_it) {
    const Program<Succeeding> program{"two turns of an owner against its successor's",
                                      {[](Succeeding& s) {
                                           s.try_turn();
                                           s.try_turn();
                                       },
                                       [](Succeeding& s) {
                                           s.try_turn_rarely();  // takes it away
                                           s.try_turn();         // comes to own it
                                           s.try_turn();
                                       }},
                                      [](Succeeding&) {}};
    const auto result = explore(program, {.memory = model::Memory::tso, .heavy_fences = true});
    EXPECT_TRUE(result.passed()) << result.report();
}

// A connection breaks while the program posts: what is posted is flushed, by the breaker or by the
// poster itself (Nic::post, Connections::leave).
struct Breaking {
    nic::TurnLock turn;
    queue::WorkQueue work;
    Atomic<int> state{0};  // 1: error
    alignas(64) queue::Descriptor descriptor{};

    Breaking() { work.prepare(); }
    void flush() {
        while (work.has_outstanding()) {
            if (!work.has_started()) work.start_next();
            work.complete_oldest();
        }
    }
    void post() {
        bool at_once = false;
        {
            const queue::WorkQueue::Lock::Guard guard(work.post_lock());
            const queue::ControlSegment control{};
            work.post(&descriptor, 1, control, nullptr, 0, 4);
            at_once = state.load(memory_order_relaxed) == 1;
        }
        if (!at_once) return;
        turn.take();
        flush();
        turn.release();
    }
    void leave() {
        turn.take();
        state.store(1, memory_order_release);
        bool fenced = false;
        work.wait_for_posters(fenced);
        flush();
        turn.release();
    }
};

TEST(Turn, a_post_that_races_with_the_end_of_its_connection_is_flushed) {
    const Program<Breaking> program{
        "post against leave",
        {[](Breaking& b) { b.post(); }, [](Breaking& b) { b.leave(); }},
        [](Breaking& b) { VIA_MODEL_CHECK(!b.work.has_outstanding()); }};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

// The same where the poster owns its lock.
struct BreakingOwned : Breaking {
    BreakingOwned() { std::construct_at(&work.post_lock(), model::thread_mark(0), 64U); }
};

TEST(Turn, an_owners_post_that_races_with_the_end_of_its_connection_is_flushed) {
    const Program<BreakingOwned> program{
        "an owner's post against leave",
        {[](BreakingOwned& b) { b.post(); }, [](BreakingOwned& b) { b.leave(); }},
        [](BreakingOwned& b) { VIA_MODEL_CHECK(!b.work.has_outstanding()); }};
    const auto result = explore_all(program, {.heavy_fences = true});
    EXPECT_TRUE(result.passed()) << result.report();
}

// A call waits for a completion that another thread's turn brings (HostAgent::wait, enlist,
// wake_ready; Nic::end_turn).
struct Waiting {
    nic::TurnLock turn;
    Atomic<std::uint32_t> attention{0};
    Atomic<std::uint32_t> word{0};
    Atomic<int> completed{0};

    Waiting() = default;
    Waiting(std::uintptr_t owner, std::uint32_t takes_to_own) : turn(owner, takes_to_own) {}

    void complete() {
        turn.take();
        completed.store(1, memory_order_release);
        turn.release();  // a full fence
        if ((attention.load(memory_order_relaxed) & 1) == 0) return;
        if (word.exchange(1) == 0) model::futex_wake(word);
    }
    void wait() {
        attention.fetch_or(1);
        atomic_fence_after_rmw();
        if (turn.is_anothers()) {  // Nic::call_for_attention
            turn.take();
            turn.release();
        }
        for (;;) {
            word.exchange(0);
            if (turn.try_take()) turn.release();  // the poll before every look
            if (completed.load(memory_order_acquire) == 1) return;
            model::futex_wait(word, 0);
        }
    }
};

// The same where the turn is own to who completes.
struct WaitingForOwner : Waiting {
    WaitingForOwner() : Waiting(model::thread_mark(1), 64) {}
};

TEST(Turn, progress_of_its_owner_wakes_who_waits_for_it) {
    const Program<WaitingForOwner> program{
        "wait against an owner's completion",
        {[](WaitingForOwner& w) { w.wait(); }, [](WaitingForOwner& w) { w.complete(); }},
        [](WaitingForOwner& w) { VIA_MODEL_CHECK(w.completed.load() == 1); }};
    const auto all = explore(program, {.memory = model::Memory::tso, .heavy_fences = true});
    EXPECT_TRUE(all.passed()) << all.report();
    // All of these pass, too, but take half a minute.
    const auto some = explore(
        program, {.memory = model::Memory::weak, .heavy_fences = true, .preemption_bound = 2});
    EXPECT_TRUE(some.failure.empty()) << some.report();
}

// A third takes the turn from its owner meanwhile. Once each, so that all of it can be looked at.
struct WaitingOnce {
    nic::TurnLock turn{model::thread_mark(0), 64};
    Atomic<std::uint32_t> attention{0};
    Atomic<int> completed{0};
    Atomic<int> slept{0};
    Atomic<int> woken{0};

    void complete() {
        if (!turn.try_take()) return;
        completed.store(1, memory_order_release);
        turn.release();
        woken.store(static_cast<int>(attention.load(memory_order_relaxed)));
    }
    void take_away() {
        if (turn.try_take_rarely()) turn.release();
    }
    void wait() {
        attention.exchange(1);
        atomic_fence_after_rmw();
        if (turn.is_anothers()) return;  // it would take the turn, as above
        slept.store(1 - completed.load(memory_order_acquire));
    }
};

TEST(Turn, progress_of_its_owner_wakes_who_waits_while_another_takes_it_away) {
    const Program<WaitingOnce> program{
        "wait against an owner's completion and another's call",
        {[](WaitingOnce& w) { w.complete(); }, [](WaitingOnce& w) { w.take_away(); },
         [](WaitingOnce& w) { w.wait(); }},
        [](WaitingOnce& w) {
            VIA_MODEL_CHECK(w.completed.load() == 0 || w.slept.load() == 0 || w.woken.load() == 1);
        }};
    const auto result = explore(program, {.memory = model::Memory::tso, .heavy_fences = true});
    EXPECT_TRUE(result.passed()) << result.report();
}

TEST(Turn, progress_wakes_who_waits_for_it) {
    const Program<Waiting> program{"wait against completion",
                                   {[](Waiting& w) { w.wait(); }, [](Waiting& w) { w.complete(); }},
                                   [](Waiting& w) { VIA_MODEL_CHECK(w.completed.load() == 1); }};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

// The agent falls asleep while a message comes and the program polls once (HostAgent::take_over,
// attend; ShmDevice::arm, notify). Somebody takes the message.
struct Sleeping {
    nic::TurnLock turn;
    Atomic<std::uint32_t> attention{0};
    Atomic<std::uint32_t> asleep{0};
    Atomic<int> published{0};
    model::Plain<int> taken{0};  // the turn guards it
    model::EventFd handle;       // the peer's wake-up and the program's kick
    bool kicked = false;

    void turn_work() {
        if (published.load(memory_order_acquire) == 1) taken.set(1);
    }
    void peer() {
        published.store(1, memory_order_release);
        atomic_fence(memory_order_seq_cst);
        if (asleep.load(memory_order_acquire) != 0) handle.write();
    }
    void agent() {
        for (;;) {
            turn.take();
            turn_work();
            asleep.store(1, memory_order_release);
            attention.fetch_or(2);
            atomic_fence_after_rmw();
            if (taken.get() == 1 || published.load(memory_order_acquire) == 1) {
                turn_work();
                turn.release();
                return;
            }
            turn.release();
            handle.read();
        }
    }
    void program() {
        if (!turn.try_take()) return;
        turn_work();
        turn.release();
        if ((attention.load(memory_order_relaxed) & 2) == 0) return;
        if ((attention.fetch_and(~2U) & 2) != 0) handle.write();
    }
};

TEST(Turn, a_message_reaches_an_agent_that_falls_asleep) {
    const Program<Sleeping> program{"sleep against message and poll",
                                    {[](Sleeping& s) { s.agent(); }, [](Sleeping& s) { s.peer(); },
                                     [](Sleeping& s) { s.program(); }},
                                    [](Sleeping& s) { VIA_MODEL_CHECK(s.taken.get() == 1); }};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

}  // namespace
}  // namespace via::turn_test
