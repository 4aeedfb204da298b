// The completion queue and the shared-memory ring: the real headers, a few entries, every
// interleaving.

#include <gtest/gtest.h>

#include "checker.hpp"
#include "device/shm/in_order.hpp"
#include "device/shm/ring_reader.hpp"
#include "device/shm/ring_writer.hpp"
#include "queue/completion_queue.hpp"

namespace via::queues_test {
namespace {

using model::explore_all;
using model::Program;

struct Completions {
    queue::CompletionQueue queue;
    Atomic<int> popped[3]{};

    Completions() { queue.prepare(2); }
    bool made_room = false;
    void pop() {
        queue::Completion completion;
        if (queue.pop(completion, made_room))
            popped[completion.vi].fetch_add(1, memory_order_relaxed);
    }
};

TEST(CompletionQueue, an_entry_is_popped_once_by_two_threads) {
    const Program<Completions> program{
        "push, two pop",
        {[](Completions& c) {
             c.queue.push({0, false}, 1);
             c.queue.push({1, true}, 1);
         },
         [](Completions& c) { c.pop(); }, [](Completions& c) { c.pop(); }},
        [](Completions& c) {
            c.pop();
            c.pop();
            VIA_MODEL_CHECK(c.popped[0].load() == 1 && c.popped[1].load() == 1);
        }};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

TEST(CompletionQueue, who_empties_it_hears_of_those_that_wait) {
    const Program<Completions> program{"overrun against pop",
                                       {[](Completions& c) {
                                            c.queue.push({0, false}, 1);
                                            c.queue.push({1, false}, 1);
                                            c.queue.push({2, false}, 1);  // may have to wait
                                        },
                                        [](Completions& c) {
                                            for (int n = 0; n < 2; ++n) c.pop();
                                        }},
                                       [](Completions& c) {
                                           const bool stranded =
                                               c.queue.overrun() && !c.queue.has_entry();
                                           VIA_MODEL_CHECK(!stranded || c.made_room);
                                       }};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

TEST(CompletionQueue, resize_loses_nothing_against_a_popper) {
    const Program<Completions> program{"resize against pop",
                                       {[](Completions& c) {
                                            c.queue.push({0, false}, 1);
                                            c.queue.push({1, false}, 1);
                                            c.queue.push({2, false}, 1);  // may have to wait
                                            c.queue.resize(4);
                                            c.queue.pump();
                                        },
                                        [](Completions& c) { c.pop(); }},
                                       [](Completions& c) {
                                           for (int n = 0; n < 3; ++n) c.pop();
                                           for (auto& count : c.popped)
                                               VIA_MODEL_CHECK(count.load() == 1);
                                       }};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

// The ring with four slots; more frames than slots, so that room has to come back.
struct Ring {
    static constexpr std::uint32_t slots = 4;
    static constexpr std::uint32_t arena_bytes = device::shm::Layout::arena_bytes_min;
    device::shm::Slot ring[slots]{};
    std::byte arena[64]{};  // frames here are small: none uses it
    std::uint64_t shadow[slots]{};
    Atomic<std::uint32_t> head{0};
    Atomic<std::uint32_t> asleep{0};
    Atomic<std::uint32_t> wakes{0};
    device::shm::RingWriter writer;
    device::shm::RingReader reader;
    std::uint32_t received = 0;

    Ring() {
        writer.attach(ring, slots, arena, arena_bytes, shadow, &head);
        reader.attach(ring, slots, arena, arena_bytes, &head);
    }
    bool put(std::uint8_t value) {
        const std::uint64_t word = value;
        const auto* bytes = reinterpret_cast<const std::byte*>(&word);
        if (writer.put(word, word, bytes, sizeof word)) return true;
        VIA_MODEL_CHECK(writer.refresh() != device::shm::RingWriter::Refresh::lie);
        return writer.put(word, word, bytes, sizeof word);
    }
    bool keep(std::uint8_t value) {
        const std::uint64_t word = value;
        const auto* bytes = reinterpret_cast<const std::byte*>(&word);
        if (writer.keep(word, word, bytes, sizeof word)) return true;
        VIA_MODEL_CHECK(writer.refresh() != device::shm::RingWriter::Refresh::lie);
        return writer.keep(word, word, bytes, sizeof word);
    }
    bool send(std::uint8_t value) {
        device::FrameSlot slot;
        if (!writer.reserve(16, 8, slot)) {
            VIA_MODEL_CHECK(writer.refresh() != device::shm::RingWriter::Refresh::lie);
            if (!writer.reserve(16, 8, slot)) return false;
        }
        for (int n = 0; n < 3; ++n) {  // as one word: the slot's words are what the peer loads
            auto& word = reinterpret_cast<Atomic<std::uint64_t>*>(slot.header)[n];
            word.store(value, memory_order_relaxed);
        }
        writer.transmit();
        return true;
    }
    bool receive() {
        device::Frame frame;
        if (reader.take(frame) != device::shm::RingReader::Take::frame) return false;
        ++received;
        VIA_MODEL_CHECK(frame.length == 24 && frame.payload == nullptr);
        for (int n = 0; n < 24; n += 8)
            VIA_MODEL_CHECK(static_cast<std::uint32_t>(frame.bytes[n]) == received);
        reader.release();
        reader.announce();
        return true;
    }
};

// `send` takes a frame's number and tells whether it went.
template <class Send>
void pass_five_frames(const char* name, Send send) {
    const Program<Ring> program{name,
                                {[send](Ring& r) {
                                     for (std::uint8_t n = 1; n <= 5;) {
                                         if (send(r, n))
                                             ++n;
                                         else
                                             relax();
                                     }
                                     r.writer.publish_kept();
                                 },
                                 [](Ring& r) {
                                     while (r.received != 2)
                                         if (!r.receive()) relax();
                                 }},
                                [](Ring& r) {
                                    while (r.receive()) {
                                    }
                                    VIA_MODEL_CHECK(r.received == 5);
                                }};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

TEST(ShmRing, frames_arrive_whole_and_in_order_while_slots_are_reused) {
    pass_five_frames("five frames through four slots",
                     [](Ring& r, std::uint8_t n) { return r.send(n); });
}

TEST(ShmRing, frames_put_at_once_arrive_like_others) {
    pass_five_frames("five frames through four slots, four of them put at once",
                     [](Ring& r, std::uint8_t n) { return n == 3 ? r.send(n) : r.put(n); });
}

TEST(ShmRing, frames_published_together_arrive_like_others) {
    pass_five_frames("five frames through four slots, published by two",
                     [](Ring& r, std::uint8_t n) {
                         if (!r.keep(n)) {
                             r.writer.publish_kept();
                             return false;
                         }
                         if (n % 2 == 0) r.writer.publish_kept();
                         return true;
                     });
}

// A sender that alternates between its ring and the mailbox, and a receiver that answers by the
// mailbox, so that the sender gets it back.
struct Mailed {
    static constexpr std::uint32_t slots = 4;
    device::shm::Slot ring[slots]{};
    device::shm::Slot line{};
    std::byte arena[64]{};
    std::uint64_t shadow[slots]{};
    Atomic<std::uint32_t> head{0};
    device::shm::RingWriter writer;
    device::shm::RingReader reader;
    device::shm::RingReader none;
    device::shm::Slot nothing[slots]{};
    Atomic<std::uint32_t> other_head{0};
    device::shm::Mailbox ends[2];
    std::uint64_t received = 0;
    std::uint64_t answers = 0;

    Mailed() {
        constexpr std::uint32_t arena_bytes = device::shm::Layout::arena_bytes_min;
        writer.attach(ring, slots, arena, arena_bytes, shadow, &head);
        reader.attach(ring, slots, arena, arena_bytes, &head);
        none.attach(nothing, slots, arena, arena_bytes, &other_head);
        ends[0].attach(&line, arena, true);
        ends[1].attach(&line, arena, false);
    }
    void mail(device::shm::Mailbox& from, std::uint64_t number, std::uint32_t position) {
        from.put(number, number, reinterpret_cast<const std::byte*>(&number), 8, position);
    }
    void send(std::uint64_t number, bool by_mailbox) {
        if (by_mailbox && ends[0].ours()) return mail(ends[0], number, writer.published());
        const auto* bytes = reinterpret_cast<const std::byte*>(&number);
        VIA_MODEL_CHECK(writer.put(number, number, bytes, 8));
    }
    /// Takes what is there, which is next. Whether anything came.
    bool receive() {
        device::Frame frames[2];
        const auto arrival = device::shm::take_in_order(reader, ends[1], frames, 0);
        VIA_MODEL_CHECK(arrival.why != device::shm::RingReader::Take::lie);
        for (std::size_t n = 0; n < arrival.count; ++n) {
            ++received;
            for (int at = 0; at < 24; at += 8)
                VIA_MODEL_CHECK(static_cast<std::uint64_t>(frames[n].bytes[at]) == received);
        }
        return arrival.count != 0;
    }
    void hear() {
        device::Frame frame;
        if (device::shm::take_in_order(none, ends[0], {&frame, 1}, 0).count != 0) ++answers;
    }
};

void keep_order(const char* name, bool (*by_mailbox)(std::uint64_t)) {
    const Program<Mailed> program{name,
                                  {[by_mailbox](Mailed& m) {
                                       for (std::uint64_t n = 1; n <= 4; ++n) {
                                           m.send(n, by_mailbox(n));
                                           m.hear();
                                       }
                                   },
                                   [](Mailed& m) {
                                       for (int looks = 0; looks < 3; ++looks) {
                                           m.receive();
                                           if (m.ends[1].ours()) m.mail(m.ends[1], 7, 0);
                                       }
                                   }},
                                  [](Mailed& m) {
                                      while (m.receive()) {
                                      }
                                      VIA_MODEL_CHECK(m.received == 4);
                                  }};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

TEST(ShmMailbox, a_frame_that_goes_before_one_of_the_ring_comes_before_it) {
    keep_order("mailbox, then ring", [](std::uint64_t n) { return n % 2 == 1; });
}

TEST(ShmMailbox, a_frame_that_goes_behind_those_of_the_ring_comes_behind_them) {
    keep_order("ring, then mailbox", [](std::uint64_t n) { return n % 2 == 0; });
}

// The sleeper waits on the peer's wake word, which only the peer writes (Channel::wake,
// ShmDevice::wake_words, HostAgent::lead).
TEST(ShmRing, a_frame_wakes_who_sleeps_on_the_peers_word) {
    const Program<Ring> program{"send against sleep",
                                {[](Ring& r) {
                                     VIA_MODEL_CHECK(r.send(1));
                                     atomic_fence(memory_order_seq_cst);
                                     if (r.asleep.load(memory_order_acquire) == 0) return;
                                     r.wakes.store(1, memory_order_release);
                                     model::futex_wake(r.wakes);
                                 },
                                 [](Ring& r) {
                                     while (!r.receive()) {
                                         const auto expected = r.wakes.load(memory_order_acquire);
                                         r.asleep.store(1, memory_order_release);
                                         atomic_fence(memory_order_seq_cst);
                                         if (r.reader.pending()) continue;
                                         model::futex_wait(r.wakes, expected);
                                     }
                                 }},
                                [](Ring& r) { VIA_MODEL_CHECK(r.received == 1); }};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

}  // namespace
}  // namespace via::queues_test
