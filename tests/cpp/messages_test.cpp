// Connections and what goes over them.
#include "scene.hpp"

#include <poll.h>

#include <future>

using namespace via;
using namespace via::test;

namespace messages_test {
namespace {

class Messages : public Scene {};
INSTANTIATE_TEST_SUITE_P(Media, Messages, media());

/// What is done next on a queue that is polled.
template <class Poll>
Expected<Completion> next(Poll poll) {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
        auto done = poll();
        if (!done || *done) return done;
        if (std::chrono::steady_clock::now() > end) throw std::runtime_error("nothing completes");
    }
}

TEST_P(Messages, PingAndPongThroughPools) {
    auto near_pool = must(BufferPool::create(near(), {.size = 64}));
    auto far_pool = must(BufferPool::create(far(), {.size = 64}));
    auto asking = must(Vi::create(near()));
    auto asked = must(Vi::create(far()));
    must(asked.post_receive(far_pool.take()));
    must(asking.post_receive(near_pool.take()));
    connect(asking, asked);
    EXPECT_TRUE(asking.connected());

    Buffer ping = near_pool.take();
    write_text(ping.bytes(), "ping");
    must(asking.post_send(std::move(ping), 4));
    EXPECT_FALSE(ping) << "it is the NIC's now";
    const auto heard = must(asked.receive_wait(patience));
    EXPECT_EQ("ping", text_of_bytes(heard.bytes()));
    EXPECT_TRUE(asked.owns(heard));
    Buffer answer = far_pool.reclaim(heard);
    write_text(answer.bytes(), "pong!");
    must(asked.post_send(std::move(answer), 5));

    const auto sent = must(asking.send_wait(patience));
    EXPECT_EQ(Operation::send, sent.operation());
    EXPECT_TRUE(near_pool.reclaim(sent));
    EXPECT_EQ("pong!", text_of_bytes(must(asking.receive_wait(patience)).bytes()));
}

TEST_P(Messages, InlineSendsNeedNoMemoryOfTheirOwn) {
    const auto from = must(MemoryRegion::allocate(near(), 4096));
    auto to = must(MemoryRegion::allocate(far(), 4096, {.rdma_write = true}));
    auto asking = must(Vi::create(near()));
    auto asked = must(Vi::create(far(), {.rdma_write = true}));
    must(asked.post_receive(to.descriptor(0).receive(to.segment(256, 64))));
    connect(asking, asked);
    Descriptor write = from.descriptor(0, 4);
    Descriptor send = from.descriptor(128, 4);
    EXPECT_EQ(32U, send.inline_room());
    EXPECT_EQ(0U, from.descriptor(0).inline_room());
    {
        std::string text = "written";
        write.rdma_write_inline(to.remote().from(512), std::as_bytes(std::span(text)));
        text = "to send";
        send.send_inline(std::as_bytes(std::span(text))).immediate(7);
    }
    must(asking.post_send(write));
    must(asking.post_send(send));
    const auto heard = must(asked.receive_wait(patience));
    EXPECT_EQ("to send", text_of_bytes(heard.bytes()));
    EXPECT_EQ(7U, heard.immediate());
    EXPECT_EQ("written", text_of_bytes(to.bytes().subspan(512, 7)));
    must(asking.send_wait(patience));
    must(asking.send_wait(patience));

    const auto too_long = asking.post_send(send.send_inline(from.bytes().first(33)));
    ASSERT_FALSE(too_long);
    EXPECT_EQ(VIP_INVALID_PARAMETER, too_long.error().code());
    must(asking.post_send(send.send_inline(from.bytes().first(32))));
}

TEST_P(Messages, SegmentsImmediateDataAndSeveralInOneGo) {
    auto from = must(MemoryRegion::allocate(near(), 4096));
    auto to = must(MemoryRegion::allocate(far(), 4096));
    auto asking = must(Vi::create(near()));
    auto asked = must(Vi::create(far()));
    for (std::size_t n = 0; n < 2; ++n)
        must(asked.post_receive(to.descriptor(128 * n, 4)
                                    .receive(to.segment(1024 + 64 * n, 2),
                                             to.segment(2048 + 64 * n, 2), to.segment(3072, 64))));
    connect(asking, asked);
    write_text(from.bytes().subspan(1024), "abcdef");
    const std::array descriptors{
        from.descriptor(0, 4).send(from.segment(1024, 1), from.segment(1025, 2),
                                   from.segment(1027, 1)),
        from.descriptor(128).send(from.segment(1028, 2)).immediate(42)};
    std::size_t posted = 0;
    must(asking.post_sends(descriptors, posted));
    EXPECT_EQ(2U, posted);

    const auto first = must(asked.receive_wait(patience));
    EXPECT_EQ(4U, first.length());
    EXPECT_FALSE(first.immediate());
    EXPECT_EQ("ab", text_of_bytes(first.bytes())) << "as far as it lies in the first segment";
    EXPECT_EQ("cd", text_of_bytes(to.bytes().subspan(2048, 2)));
    const auto second = must(asked.receive_wait(patience));
    EXPECT_EQ(42U, second.immediate());
    EXPECT_EQ("ef", text_of_bytes(second.bytes()));
}

TEST_P(Messages, RdmaWriteAndReadReachWhatThePeerAllows) {
    auto from = must(MemoryRegion::allocate(near(), 4096));
    auto to = must(MemoryRegion::allocate(far(), 4096, {.rdma_write = true, .rdma_read = true}));
    const ViOptions options{.rdma_write = true, .rdma_read = true};
    auto asking = must(Vi::create(near(), options));
    auto asked = must(Vi::create(far(), options));
    must(asked.post_receive(to.descriptor(0).receive()));
    connect(asking, asked);
    write_text(from.bytes().subspan(1024), "put");
    must(asking.post_send(
        from.descriptor(0).rdma_write(to.remote().from(2000), from.segment(1024, 3)).immediate(7)));
    const auto told = must(asked.receive_wait(patience));
    EXPECT_EQ(Operation::remote_rdma_write, told.operation());
    EXPECT_TRUE(told.is_receive());
    EXPECT_EQ(7U, told.immediate());
    EXPECT_EQ("put", text_of_bytes(to.bytes().subspan(2000, 3)));

    must(asking.post_send(
        from.descriptor(64).rdma_read(to.remote().from(2001), from.segment(2048, 2)).fence()));
    EXPECT_EQ(Operation::rdma_write, must(asking.send_wait(patience)).operation());
    EXPECT_EQ(Operation::rdma_read, must(asking.send_wait(patience)).operation());
    EXPECT_EQ("ut", text_of_bytes(from.bytes().subspan(2048, 2)));
}

TEST_P(Messages, ARefusedRdmaNamesItsDescriptorAndTheReason) {
    auto from = must(MemoryRegion::allocate(near(), 4096));
    auto to = must(MemoryRegion::allocate(far(), 4096));  // without rights
    auto asking = must(Vi::create(near(), {.reliability = Reliability::reception}));
    auto asked = must(Vi::create(far(), {.reliability = Reliability::reception}));
    must(far().on_error([](const AsyncError&) {}));
    must(near().on_error([](const AsyncError&) {}));
    connect(asking, asked);
    const Descriptor put = from.descriptor(0).rdma_write(to.remote(), from.segment(64, 4));
    must(asking.post_send(put));
    const auto done = asking.send_wait(patience);
    ASSERT_FALSE(done);
    EXPECT_EQ(put.raw(), done.error().descriptor());
    EXPECT_EQ(asking.handle(), done.error().vi());
    EXPECT_NE(0U, done.error().status() & VIP_STATUS_RDMA_PROT_ERROR);
    EXPECT_NE(std::string::npos, done.error().message().find("RDMA refused"));
}

TEST_P(Messages, AllMemoryNeedsOneRegion) {
    struct alignas(64) {
        VIP_DESCRIPTOR descriptor{};
        std::array<char, 5> text{"here"};
    } room;
    auto all = must(MemoryRegion::all(near()));
    auto pool = must(BufferPool::create(far()));
    auto asking = must(Vi::create(near()));
    auto asked = must(Vi::create(far()));
    must(asked.post_receive(pool.take()));
    connect(asking, asked);
    must(asking.post_send(
        all.descriptor(room.descriptor).send(all.segment(bytes_of(room.text).first(4)))));
    EXPECT_EQ("here", text_of_bytes(must(asked.receive_wait(patience)).bytes()));
    must(asking.send_wait(patience));
    asking.drain([](VIP_DESCRIPTOR*) {});
}

TEST_P(Messages, NothingYetAndNothingPostedAndNoTimeAreDifferentAnswers) {
    auto pool = must(BufferPool::create(near()));
    auto vi = must(Vi::create(near()));
    const auto empty = vi.receive_done();
    ASSERT_FALSE(empty);
    EXPECT_EQ(nullptr, empty.error().descriptor());
    EXPECT_NE(std::string::npos, empty.error().message().find("nothing is posted"));
    must(vi.post_receive(pool.take()));
    const auto nothing = vi.receive_done();
    ASSERT_TRUE(nothing);
    EXPECT_FALSE(*nothing);
    EXPECT_EQ(VIP_TIMEOUT, vi.receive_wait(1ms).error().code());
}

TEST_P(Messages, CompletionQueueGivesDescriptorsOfAllVis) {
    auto near_pool = must(BufferPool::create(near()));
    auto far_pool = must(BufferPool::create(far()));
    auto queue = must(CompletionQueue::create(far()));
    std::vector<Vi> asking;
    std::vector<Vi> asked;
    for (std::size_t n = 0; n < 3; ++n) {
        asking.push_back(must(Vi::create(near())));
        asked.push_back(must(Vi::create(far(), {.sends = &queue, .receives = &queue})));
        must(asked[n].post_receive(far_pool.take()));
        connect(asking[n], asked[n]);
    }
    EXPECT_FALSE(must(queue.done()));
    for (std::size_t n = 0; n < 3; ++n) must(asking[n].post_send(near_pool.take(), 10 + n));
    std::array<bool, 3> heard{};
    std::array<Buffer, 3> answers;  // sent when all are heard: sends complete on this queue, too
    for (int entries = 0; entries < 3; ++entries) {
        const auto message = must(queue.wait(patience));
        const std::size_t n = message.length() - 10;
        EXPECT_TRUE(message.is_receive() && asked.at(n).owns(message));
        heard.at(n) = true;
        answers.at(n) = far_pool.reclaim(message);
    }
    EXPECT_EQ((std::array{true, true, true}), heard);
    for (std::size_t n = 0; n < 3; ++n) must(asked[n].post_send(std::move(answers[n]), 1));
    // The sends complete flushed or not, as soon as the others left: nobody has posted receives.
    for (std::size_t n = 0; n < 3; ++n) asking[n] = must(Vi::create(near()));
    for (int entries = 0; entries < 3; ++entries) {
        const auto sent = next([&] { return queue.done(); });
        EXPECT_TRUE(sent ? sent->operation() == Operation::send
                         : sent.error().descriptor() != nullptr);
    }
}

TEST_P(Messages, EntriesOfWhatDrainTookAreNoErrorsOfTheCompletionQueue) {
    must(far().on_error([](const AsyncError&) {}));
    auto near_pool = must(BufferPool::create(near()));
    auto far_pool = must(BufferPool::create(far()));
    auto queue = must(CompletionQueue::create(far()));
    auto leaving = must(Vi::create(far(), {.receives = &queue}));
    auto staying = must(Vi::create(far(), {.receives = &queue}));
    auto asking = must(Vi::create(near()));
    for (int n = 0; n < 3; ++n) must(leaving.post_receive(far_pool.take()));
    must(staying.post_receive(far_pool.take()));
    connect(asking, staying);
    leaving.drain([](VIP_DESCRIPTOR*) {});
    EXPECT_EQ(VIP_TIMEOUT, queue.wait(1ms).error().code());
    for (int n = 0; n < 3; ++n) must(leaving.post_receive(far_pool.take()));
    leaving.drain([](VIP_DESCRIPTOR*) {});
    must(leaving.post_receive(far_pool.take()));  // posted, and not done
    must(asking.post_send(near_pool.take(), 7));
    const auto message = must(queue.wait(patience));
    ASSERT_TRUE(message) << "an entry of what is taken already ended the wait";
    EXPECT_TRUE(staying.owns(message));
    EXPECT_EQ(7U, message.length());
    leaving.drain([](VIP_DESCRIPTOR*) {});
    const auto nothing = queue.done();
    ASSERT_TRUE(nothing) << nothing.error().message();
    EXPECT_FALSE(*nothing);
}

TEST_P(Messages, AQueuesDescriptorIsReadableWhileThereAreCompletions) {
    auto near_pool = must(BufferPool::create(near()));
    auto far_pool = must(BufferPool::create(far()));
    auto queue = must(CompletionQueue::create(far()));
    auto asking = must(Vi::create(near()));
    auto asked = must(Vi::create(far(), {.receives = &queue}));
    must(asked.post_receive(far_pool.take()));
    connect(asking, asked);
    pollfd watched{must(queue.descriptor()), POLLIN, 0};
    EXPECT_EQ(watched.fd, must(queue.descriptor()));
    EXPECT_EQ(0, poll(&watched, 1, 0));
    must(asking.post_send(near_pool.take(), 3));
    ASSERT_EQ(1, poll(&watched, 1, 60'000));
    EXPECT_EQ(3U, must(next([&] { return queue.done(); })).length());
    EXPECT_FALSE(must(queue.done()));
    EXPECT_EQ(0, poll(&watched, 1, 0));
}

TEST_P(Messages, ARequestWaitsForItsListenerHoweverLongItMay) {
    for (const auto timeout :
         {forever - 1ms, forever, std::chrono::milliseconds(24h * 366 * 400)}) {
        const std::string name = discriminator("late");
        auto asking = must(Vi::create(near()));
        auto asked = must(Vi::create(far()));
        const Address there = must(far().address(name));
        auto connecting = std::async(std::launch::async, [&] {
            return asking.connect(there, {.timeout = timeout, .wait_for_listener = true});
        });
        EXPECT_EQ(std::future_status::timeout, connecting.wait_for(5ms)) << timeout.count();
        if (connecting.wait_for(0ms) == std::future_status::timeout)
            must(Listener(far(), name).accept(asked, patience));
        must(connecting.get());
    }
}

/// The listener comes late, and lets the request wait.
TEST_P(Messages, WaitingForAListenerAndItsAnswerHaveOneTimeout) {
    constexpr auto timeout = 1000ms;
    const std::string name = discriminator("mute");
    auto asking = must(Vi::create(near()));
    const Address there = must(far().address(name));
    const auto begin = std::chrono::steady_clock::now();
    auto connecting = std::async(std::launch::async, [&] {
        const auto outcome = asking.connect(there, {.timeout = timeout, .wait_for_listener = true});
        return std::pair(outcome.error().code(), std::chrono::steady_clock::now() - begin);
    });
    EXPECT_EQ(std::future_status::timeout, connecting.wait_for(timeout * 9 / 10));
    const auto request = Listener(far(), name).wait(timeout);
    const auto [code, taken] = connecting.get();
    // Beside much load the listener may come too late.
    EXPECT_EQ(request ? VIP_TIMEOUT : VIP_NO_MATCH, code);
    EXPECT_LT(taken, timeout * 18 / 10);
}

TEST_P(Messages, PrivateDataGoesWithRequestAcceptanceAndRejection) {
    const std::string name = discriminator("data");
    const Listener listener(far(), name);
    auto asked = must(Vi::create(far()));
    std::thread listening([&] {
        auto refused = must(listener.wait(patience));
        EXPECT_EQ("please", text_of_bytes(refused.private_data()));
        must(refused.reject(std::as_bytes(std::span("no", 2))));
        auto taken = must(listener.wait(patience));
        EXPECT_EQ("caller", taken.remote().discriminator());
        EXPECT_EQ(65536U, taken.attributes().MaxTransferSize);
        must(taken.accept(asked, std::as_bytes(std::span("well", 4))));
    });
    auto asking = must(Vi::create(near()));
    const Address there = must(far().address(name));
    ConnectOptions options{.timeout = patience, .wait_for_listener = true};
    options.data = std::as_bytes(std::span("please", 6));
    EXPECT_EQ(VIP_REJECT, asking.connect(there, options).error().code());
    std::array<std::byte, VIA_PRIVATE_DATA_MAX> room;
    EXPECT_EQ("no", text_of_bytes(must(asking.private_data(room))));
    must(asking.connect(there, options, Address().with("caller")));
    EXPECT_EQ("well", text_of_bytes(must(asking.private_data(room))));
    EXPECT_EQ("w", text_of_bytes(must(asking.private_data(std::span(room).first(1)))));
    listening.join();
}

TEST_P(Messages, ARequestThatNobodyAnswersIsRejected) {
    const std::string name = discriminator("nobody");
    std::thread listening([&] { must(Listener(far(), name).wait(patience)); });
    auto asking = must(Vi::create(near()));
    const Address there = must(far().address(name));
    EXPECT_EQ(
        VIP_REJECT,
        asking.connect(there, {.timeout = patience, .wait_for_listener = true}).error().code());
    listening.join();
    EXPECT_EQ(VIP_NO_MATCH, asking.connect(there).error().code());
    EXPECT_EQ(VIP_TIMEOUT, Listener(far(), name).wait(1ms).error().code());
}

TEST_P(Messages, AttributesThatDifferAreRefusedByAcceptAndAnotherViMayBeTried) {
    const std::string name = discriminator("differ");
    std::thread listening([&] {
        auto request = must(Listener(far(), name).wait(patience));
        auto other = must(Vi::create(far(), {.max_transfer_bytes = 1}));
        EXPECT_EQ(VIP_INVALID_MTU, request.accept(other).error().code());
        auto right = must(Vi::create(far()));
        must(request.accept(right));
        EXPECT_EQ(VIP_INVALID_PARAMETER, request.accept(other).error().code()) << "answered";
    });
    auto asking = must(Vi::create(near()));
    must(asking.connect(must(far().address(name)),
                        {.timeout = patience, .wait_for_listener = true}));
    listening.join();
}

TEST_P(Messages, PeersConnectWithEachOther) {
    auto one = must(Vi::create(near()));
    auto other = must(Vi::create(far()));
    const Address here = must(near().address(discriminator("one")));
    const Address there = must(far().address(discriminator("other")));
    must(one.connect_peer(here, there, patience, std::as_bytes(std::span("1", 1))));
    must(other.connect_peer(there, here, patience));
    must(one.peer_wait());
    while (!must(other.peer_done())) {
    }
    std::array<std::byte, 4> room;
    EXPECT_EQ("1", text_of_bytes(must(other.private_data(room))));
    EXPECT_TRUE(one.connected() && other.connected());
}

TEST_P(Messages, WithCreditsAMessageWaitsForItsReceive) {
    auto near_pool = must(BufferPool::create(near()));
    auto far_pool = must(BufferPool::create(far()));
    auto asking = must(Vi::create(near(), {.credits = true}));
    auto asked = must(Vi::create(far(), {.credits = true}));
    connect(asking, asked);
    EXPECT_TRUE(must(asking.credits()).agreed);
    EXPECT_EQ(0U, must(asking.credits()).left);
    must(asking.post_send(near_pool.take(), 9));
    EXPECT_EQ(VIP_TIMEOUT, asking.send_wait(20ms).error().code());
    must(asked.post_receive(far_pool.take()));
    EXPECT_EQ(9U, must(asked.receive_wait(patience)).length());
    must(asking.send_wait(patience));
}

TEST_P(Messages, ThePeersEndFlushesReceivesAndIsTold) {
    std::promise<VIP_VI_HANDLE> lost;
    must(far().on_error([](const AsyncError&) { ADD_FAILURE() << "this one was replaced"; }));
    must(far().on_error([&](const AsyncError& error) {
        EXPECT_EQ(VIP_ERROR_CONN_LOST, error.code());
        EXPECT_EQ(VIP_RESOURCE_VI, error.resource());
        EXPECT_NE(nullptr, error.message());
        lost.set_value(error.vi());
    }));
    auto pool = must(BufferPool::create(far()));
    auto asked = must(Vi::create(far()));
    must(asked.post_receive(pool.take()));
    {
        auto asking = must(Vi::create(near()));
        connect(asking, asked);
    }
    const auto done = asked.receive_wait(patience);
    ASSERT_FALSE(done);
    EXPECT_TRUE(done.error().flushed());
    EXPECT_TRUE(pool.reclaim(done.error()));
    auto told = lost.get_future();
    ASSERT_EQ(std::future_status::ready, told.wait_for(patience));
    EXPECT_EQ(asked.handle(), told.get());
    EXPECT_FALSE(asked.connected());
    far().close();  // waits for the handler, whose promise is about to go
}

}  // namespace
}  // namespace messages_test
