// Shared receive queues: several VIs take receives of one queue.
#include <array>
#include <memory>
#include <numeric>
#include <set>

#include "base/random.hpp"
#include "engine/pair_test.hpp"

namespace via::engine::test::shared_receives_test {
namespace {

constexpr SharedShape roomy{memory::no_tag, 1000, 1000};

struct Scene {
    /// Servers take from the queue, clients send to them.
    explicit Scene(Reliability reliability, std::size_t count = 2, bool credits = false,
                   const SharedShape& shape = roomy)
        : owner(pair.b, attributes(reliability)),
          name(pair.b.engine.shared_receives().open(shape).value()),
          queue(*pair.b.engine.shared_receives().find(name)) {
        for (std::size_t n = 0; n < count; ++n) {
            clients.push_back(std::make_unique<Program>(pair.a, attributes(reliability)));
            servers.push_back(std::make_unique<Program>(pair.b, attributes(reliability)));
            clients[n]->vi().wants_credits = servers[n]->vi().wants_credits = credits;
            EXPECT_EQ(pair.b.engine.shared_receives().attach(servers[n]->vi(), &queue),
                      Status::success);
        }
    }
    void meet() {
        for (std::size_t n = 0; n < clients.size(); ++n) connect(pair, *clients[n], *servers[n]);
    }
    /// A receive of the queue, in the memory of its owner.
    queue::Descriptor& give(std::size_t offset, std::uint32_t length) {
        queue::Descriptor& descriptor = owner.make(0, {owner.segment(offset, length)}, length);
        post(descriptor, descriptor.segments);
        return descriptor;
    }
    void post(queue::Descriptor& descriptor, const queue::Segment* segments) {
        const queue::WorkQueue::Lock::Guard guard(queue.work.post_lock());
        EXPECT_EQ(queue.work.post(&descriptor, owner.handle(), descriptor.control, segments, 0,
                                  queue.shape.descriptors_max),
                  Status::success);
    }
    /// As a turn does what few turns have to.
    void carry() {
        pair.carry();
        pair.b.engine.credits().grant_waiting();
        pair.carry();
    }
    queue::Descriptor* take(std::size_t server) {
        return servers[server]->take(servers[server]->vi().receive);
    }

    Pair pair;
    Program owner;
    std::uint64_t name;
    SharedReceiveQueue& queue;
    std::vector<std::unique_ptr<Program>> clients;
    std::vector<std::unique_ptr<Program>> servers;
};

struct Levels : testing::TestWithParam<Reliability> {};
INSTANTIATE_TEST_SUITE_P(All, Levels,
                         testing::Values(Reliability::unreliable, Reliability::delivery,
                                         Reliability::reception));

TEST_P(Levels, EachMessageTakesTheOldestAndCompletesOnItsVi) {
    Scene scene(GetParam());
    scene.meet();
    queue::Descriptor& first = scene.give(0, 100);
    queue::Descriptor& second = scene.give(100, 200);
    queue::Descriptor& third = scene.give(300, 30);
    scene.clients[1]->fill(0, 30, 1);
    scene.clients[1]->send(0, 30);
    scene.pair.carry();
    scene.clients[0]->fill(0, 200, 2);
    scene.clients[0]->send(0, 200);  // several frames
    scene.pair.carry();
    scene.clients[1]->fill(100, 20, 3);
    scene.clients[1]->send(100, 20, queue::control::immediate, 77);
    scene.pair.carry();
    EXPECT_EQ(scene.take(1), &first);
    EXPECT_EQ(scene.take(1), &third);
    EXPECT_EQ(scene.take(0), &second);
    EXPECT_EQ(status_of(first), receive_done);
    EXPECT_EQ(status_of(second), receive_done);
    EXPECT_EQ(status_of(third), receive_done | queue::status::immediate);
    EXPECT_EQ(third.control.immediate_data, 77U);
    EXPECT_EQ(first.control.length, 30U);
    EXPECT_EQ(second.control.length, 200U);
    EXPECT_TRUE(scene.owner.holds(0, 30, 1) && scene.owner.holds(100, 200, 2) &&
                scene.owner.holds(300, 20, 3));
    EXPECT_EQ(scene.queue.left(), 0U);
}

TEST_P(Levels, OwnReceivesAreUsedFirst) {
    Scene scene(GetParam());
    scene.meet();
    queue::Descriptor& shared = scene.give(0, 100);
    queue::Descriptor& own = scene.servers[0]->receive(0, 100);
    scene.clients[0]->send(0, 10);
    scene.clients[0]->send(0, 10);
    scene.pair.carry();
    EXPECT_EQ(scene.take(0), &own);
    EXPECT_EQ(scene.take(0), &shared);
}

TEST_P(Levels, AnEmptyQueueIsAsAnEmptyReceiveQueue) {
    Scene scene(GetParam());
    scene.meet();
    scene.clients[0]->send(0, 10);
    scene.pair.carry();
    EXPECT_EQ(scene.pair.b.events(), std::vector{ErrorCode::receive_queue_empty});
    const bool reliable = GetParam() != Reliability::unreliable;
    EXPECT_EQ(scene.servers[0]->state(), reliable ? ViState::error : ViState::connected);
    EXPECT_EQ(scene.servers[0]->vi().receive.expects_nothing(), reliable);
    EXPECT_EQ(scene.servers[1]->state(), ViState::connected) << "the other one has done nothing";
    queue::Descriptor& receive = scene.give(0, 100);
    scene.clients[1]->send(0, 10);
    scene.pair.carry();
    EXPECT_EQ(scene.take(1), &receive);
}

TEST_P(Levels, AVIThatTakesNothingOffHasItsQuotaAndNoMore) {
    Scene scene(GetParam(), 2, false, {memory::no_tag, 1000, 3});
    scene.meet();
    for (int n = 0; n < 10; ++n) scene.give(0, 100);
    for (int n = 0; n < 3; ++n) scene.clients[0]->send(0, 10);
    scene.pair.carry();
    EXPECT_EQ(scene.queue.left(), 7U);
    EXPECT_NE(scene.take(0), nullptr);
    scene.clients[0]->send(0, 10);
    scene.pair.carry();
    EXPECT_EQ(scene.queue.left(), 6U) << "what was taken off is none of its any more";
    EXPECT_TRUE(scene.pair.b.events().empty());
    scene.clients[0]->send(0, 10);
    scene.pair.carry();
    EXPECT_EQ(scene.queue.left(), 6U);
    EXPECT_EQ(scene.pair.b.events(), std::vector{ErrorCode::receive_queue_empty});
    scene.clients[1]->send(0, 10);
    scene.pair.carry();
    EXPECT_NE(scene.take(1), nullptr);
}

TEST_P(Levels, AReceiveThatIsTooShortFailsOnTheViThatTookIt) {
    Scene scene(GetParam());
    scene.meet();
    queue::Descriptor& receive = scene.give(0, 9);
    queue::Descriptor& next = scene.give(100, 100);
    scene.clients[0]->send(0, 10);
    scene.pair.carry();
    EXPECT_EQ(scene.take(0), &receive);
    EXPECT_EQ(status_of(receive), receive_done | queue::status::length_error);
    scene.clients[1]->send(0, 10);
    scene.pair.carry();
    EXPECT_EQ(scene.take(1), &next);
}

TEST_P(Levels, ReceivesOfManySegmentsAreTakenWhole) {
    Scene scene(GetParam());
    scene.meet();
    std::array<queue::Segment, queue::segments_max> segments;
    for (std::uint32_t n = 0; n < segments.size(); ++n)
        segments[n] = scene.owner.segment(7 * (segments.size() - n), 2);
    queue::Descriptor& receive = scene.owner.make(0, {}, 2 * segments.size());
    for (unsigned round = 0; round < 40; ++round) {  // over the ends of chunks
        receive.control.segment_count = segments.size();
        receive.control.length = 2 * segments.size();
        scene.post(receive, segments.data());
        scene.clients[0]->fill(0, 2 * segments.size(), round);
        scene.clients[0]->send(0, 2 * segments.size());
        scene.pair.carry();
        ASSERT_EQ(scene.take(0), &receive);
        ASSERT_EQ(status_of(receive), receive_done);
        for (std::size_t n = 0; n < segments.size(); ++n)
            ASSERT_EQ(std::memcmp(reinterpret_cast<void*>(segments[n].address),
                                  scene.clients[0]->at(2 * n), 2),
                      0)
                << n;
        scene.clients[0]->take_all();
    }
}

TEST_P(Levels, DisconnectingFlushesWhatWasTakenAndNothingElse) {
    Scene scene(GetParam());
    scene.meet();
    queue::Descriptor& taken = scene.give(0, 1000);
    scene.give(1000, 100);
    scene.clients[0]->send(0, 1000);
    scene.pair.b.take(*scene.pair.a.emit());  // the first frame of it
    EXPECT_EQ(scene.queue.left(), 1U);
    scene.pair.b.engine.disconnect(scene.servers[0]->vi());
    EXPECT_EQ(status_of(taken), receive_flushed);
    EXPECT_EQ(scene.take(0), &taken);
    EXPECT_EQ(scene.queue.left(), 1U);
    EXPECT_TRUE(scene.servers[0]->vi().receive.expects_nothing());
}

TEST_P(Levels, RandomMessagesArriveOnceInTheOrderOfTheirVi) {
    constexpr std::size_t vis = 5;
    constexpr std::uint32_t slot = 128;
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        Scene scene(GetParam(), vis, false, {memory::no_tag, 40, 8});
        scene.meet();
        Random random(seed);
        std::array<std::uint64_t, vis> sent{};
        std::array<std::uint64_t, vis> received{};
        std::array<std::uint64_t, vis> held{};
        std::set<queue::Descriptor*> posted;
        std::set<queue::Descriptor*> free;
        for (std::size_t n = 0; n < 40; ++n)
            free.insert(&scene.owner.make(0, {scene.owner.segment(n * slot, slot)}, slot));
        for (int step = 0; step < 600; ++step) {
            const std::size_t vi = random.below(vis);
            if (random.chance(40)) {
                if (free.empty()) continue;
                queue::Descriptor* const receive = *free.begin();
                receive->control.length = slot;
                scene.post(*receive, receive->segments);
                posted.insert(receive);
                free.erase(receive);
            } else if (random.chance(60)) {
                // No more than there is for it: else a connection breaks, and a message is lost.
                if (scene.queue.left() == 0 || held[vi] == 8) continue;
                Program& client = *scene.clients[vi];
                client.put_word(0, sent[vi]++);
                client.send(0, static_cast<std::uint32_t>(random.between(8, slot)));
                scene.pair.carry();
                client.take_all();
                ++held[vi];
            } else if (queue::Descriptor* const got = scene.take(vi)) {
                ASSERT_EQ(posted.erase(got), 1U) << "none comes twice";
                ASSERT_EQ(status_of(*got), receive_done);
                const std::size_t at = got->segments[0].address - scene.owner.address(0);
                ASSERT_EQ(scene.owner.word_at(at), received[vi]++) << "seed " << seed;
                free.insert(got);
                --held[vi];
            }
        }
        for (std::size_t vi = 0; vi < vis; ++vi) EXPECT_EQ(sent[vi], received[vi] + held[vi]);
        EXPECT_EQ(scene.queue.left() + std::accumulate(held.begin(), held.end(), std::uint64_t{0}),
                  posted.size());
    }
}

TEST(Limit, IsAnEventOnceAndIsArmedAgain) {
    Scene scene(Reliability::delivery);
    scene.meet();
    SharedReceives& queues = scene.pair.b.engine.shared_receives();
    for (int n = 0; n < 5; ++n) scene.give(0, 100);
    const auto send = [&] {
        scene.clients[0]->send(0, 10);
        scene.pair.carry();
    };
    send();
    EXPECT_FALSE(scene.queue.reached.load()) << "nothing is armed";
    queues.arm(scene.queue, 3);
    send();
    EXPECT_FALSE(scene.queue.reached.load()) << "three are left";
    const std::uint64_t before = scene.pair.b.engine.progress();
    send();
    EXPECT_TRUE(scene.queue.reached.load());
    EXPECT_GE(scene.pair.b.engine.progress(), before + 2) << "who waits has to look";
    scene.queue.reached.store(false);
    send();
    EXPECT_FALSE(scene.queue.reached.load()) << "once";
    scene.give(0, 100);
    scene.give(0, 100);
    queues.arm(scene.queue, 2);
    EXPECT_FALSE(scene.queue.reached.load());
    send();
    send();
    EXPECT_TRUE(scene.queue.reached.load());
    queues.arm(scene.queue, 1);
    EXPECT_FALSE(scene.queue.reached.load()) << "what nobody heard of is forgotten";
    queues.arm(scene.queue, 2);
    EXPECT_TRUE(scene.queue.reached.load()) << "at once";
    queues.arm(scene.queue, 0);
    send();
    EXPECT_FALSE(scene.queue.reached.load());
}

TEST(SharedReceives, TagsAgreeAndRegionsStayWhileTheyArePosted) {
    Side side;
    SharedReceives& queues = side.engine.shared_receives();
    const memory::ProtectionTag tag = side.memory.create_tag().value();
    ViAttributes tagged = attributes(Reliability::delivery);
    tagged.tag = tag;
    Program with_tag(side, tagged);
    Program without(side, attributes(Reliability::delivery));
    const std::uint64_t name = queues.open({tag, 10, 10}).value();
    SharedReceiveQueue& queue = *queues.find(name);
    EXPECT_EQ(queues.attach(without.vi(), &queue), Status::invalid_ptag);
    EXPECT_EQ(queues.attach(with_tag.vi(), &queue), Status::success);
    EXPECT_EQ(side.engine.set_attributes(with_tag.vi(), attributes(Reliability::delivery)),
              Status::invalid_ptag);
    EXPECT_EQ(side.engine.vis_with_tag(tag), 2U) << "the queue has it, too";

    queue::Descriptor& receive = without.make(0, {without.segment(0, 8)}, 8);
    ASSERT_EQ(queue.work.post(&receive, without.handle(), receive.control, receive.segments, 0, 10),
              Status::success);
    EXPECT_TRUE(side.engine.uses_region(without.handle()));
    EXPECT_FALSE(side.engine.uses_region(with_tag.handle()));
    EXPECT_EQ(queues.close(name), Status::error_resource) << "a VI takes from it";
    EXPECT_EQ(queues.attach(with_tag.vi(), nullptr), Status::success);
    EXPECT_EQ(queues.close(name), Status::success);
    EXPECT_FALSE(side.engine.uses_region(without.handle()));
    EXPECT_EQ(queues.close(name), Status::invalid_parameter);
    EXPECT_EQ(queues.find(name), nullptr);
    const std::uint64_t next = queues.open(roomy).value();
    EXPECT_EQ(queues.find(next), &queue) << "in its place";
    EXPECT_EQ(queues.find(name), nullptr);
    EXPECT_EQ(queue.left(), 0U);
    EXPECT_EQ(queues.attach(without.vi(), &queue), Status::success);
    EXPECT_EQ(side.engine.destroy_vi(without.vi()), Status::success);
    EXPECT_EQ(queues.close(next), Status::success);
}

TEST(SharedReceives, AreAsManyAsTheLimitSays) {
    Side side;
    SharedReceives& queues = side.engine.shared_receives();
    std::vector<std::uint64_t> names;
    for (std::uint32_t n = 0; n < side.limits.shared_receive_queues_max; ++n)
        names.push_back(queues.open(roomy).value());
    EXPECT_EQ(queues.open(roomy).error(), Status::error_resource);
    EXPECT_EQ(queues.close(names[7]), Status::success);
    EXPECT_TRUE(queues.open(roomy).has_value());
}

// Credits -----------------------------------------------------------------------------------------

struct WithCredits : testing::TestWithParam<Reliability> {};
INSTANTIATE_TEST_SUITE_P(All, WithCredits,
                         testing::Values(Reliability::delivery, Reliability::reception));

TEST_P(WithCredits, VisWaitForReceivesInTurnAndNoneBreaks) {
    Scene scene(GetParam(), 3, true);
    scene.meet();
    for (auto& client : scene.clients)
        for (int n = 0; n < 2; ++n) client->send(0, 10);
    scene.carry();
    for (std::size_t n = 0; n < 3; ++n) EXPECT_EQ(scene.take(n), nullptr);
    for (std::size_t round = 0; round < 2; ++round)
        for (std::size_t n = 0; n < 3; ++n) {
            queue::Descriptor& receive = scene.give(0, 100);
            scene.carry();
            EXPECT_EQ(scene.take(n), &receive) << "each in its turn";
            EXPECT_EQ(status_of(receive), receive_done);
        }
    for (auto& server : scene.servers) EXPECT_EQ(server->state(), ViState::connected);
    EXPECT_TRUE(scene.pair.b.events().empty());
}

TEST_P(WithCredits, AViTakesItsShareBeforehandAndGivesTheRestBackFlushed) {
    Scene scene(GetParam(), 2, true);
    for (int n = 0; n < 8; ++n) scene.give(0, 100);
    connect(scene.pair, *scene.clients[0], *scene.servers[0]);
    EXPECT_EQ(scene.clients[0]->vi().credits.limit, 4U) << "half of them: there are two VIs";
    connect(scene.pair, *scene.clients[1], *scene.servers[1]);
    EXPECT_EQ(scene.clients[1]->vi().credits.limit, 2U);
    EXPECT_EQ(scene.queue.left(), 2U) << "nobody takes all";
    const std::uint32_t left = scene.queue.left();
    scene.pair.b.engine.disconnect(scene.servers[0]->vi());
    int flushed = 0;
    while (const queue::Descriptor* receive = scene.take(0)) {
        EXPECT_EQ(status_of(*receive), receive_flushed);
        ++flushed;
    }
    EXPECT_EQ(flushed, 4);
    EXPECT_EQ(scene.queue.left(), left);
}

TEST_P(WithCredits, NothingIsLostOverThousandsOfMessages) {
    constexpr std::size_t vis = 4;
    Scene scene(GetParam(), vis, true, {memory::no_tag, 12, 6});
    scene.meet();
    Random random(7);
    std::array<int, vis> sent{};
    std::array<int, vis> received{};
    int posted = 0;  // and not taken off
    for (int step = 0; step < 20'000; ++step) {
        const std::size_t vi = random.below(vis);
        switch (random.below(4)) {
            case 0:
                if (posted < 12) scene.give(0, 100), ++posted;
                break;
            case 1:
                if (sent[vi] - received[vi] < 10) scene.clients[vi]->send(0, 10), ++sent[vi];
                break;
            case 2:
                scene.carry();
                break;
            default:
                while (queue::Descriptor* got = scene.take(vi)) {
                    ASSERT_EQ(status_of(*got), receive_done);
                    ++received[vi];
                    --posted;
                }
        }
        scene.clients[vi]->take_all();
        ASSERT_EQ(scene.servers[vi]->state(), ViState::connected);
        ASSERT_LE(scene.servers[vi]->vi().receive.work.posted_count() -
                      scene.servers[vi]->vi().receive.work.taken_count(),
                  6U);
    }
    // All that was sent comes when there are receives for it.
    for (int round = 0; round < 200; ++round) {
        for (std::size_t vi = 0; vi < vis; ++vi)
            while (scene.take(vi) != nullptr) ++received[vi], --posted;
        while (posted < 12) scene.give(0, 100), ++posted;
        scene.carry();
    }
    EXPECT_EQ(sent, received);
    EXPECT_GT(received[0], 500);
}

TEST_P(WithCredits, WhoLeavesWaitsNoMore) {
    Scene scene(GetParam(), 2, true);
    scene.meet();
    EXPECT_TRUE(scene.pair.b.engine.shared_receives().anybody_waits());
    scene.pair.b.engine.disconnect(scene.servers[0]->vi());
    EXPECT_EQ(scene.queue.waiting, 1U);
    scene.pair.carry();
    queue::Descriptor& receive = scene.give(0, 100);
    scene.clients[1]->send(0, 10);
    scene.carry();
    EXPECT_EQ(scene.take(1), &receive);
    scene.pair.b.engine.disconnect(scene.servers[1]->vi());
    EXPECT_FALSE(scene.pair.b.engine.shared_receives().anybody_waits());
}

}  // namespace
}  // namespace via::engine::test::shared_receives_test
