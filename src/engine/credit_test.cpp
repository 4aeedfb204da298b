// Credits: what consumes a receive waits at its sender until the peer has told of one.
#include "engine/pair_test.hpp"

namespace via::engine::test::credit_test {
namespace {

struct Credits : testing::TestWithParam<Reliability> {
    Pair pair;
    Program client{pair.a, attributes(GetParam())};
    Program server{pair.b, attributes(GetParam())};

    void meet(bool client_wants = true, bool server_wants = true) {
        client.vi().wants_credits = client_wants;
        server.vi().wants_credits = server_wants;
        connect(pair, client, server);
    }
    bool is_done(const queue::Descriptor& descriptor) {
        return (status_of(descriptor) & queue::status::done) != 0;
    }
};

TEST_P(Credits, SendWaitsUntilAReceiveIsPosted) {
    meet();
    queue::Descriptor& sent = client.send(0, 10);
    pair.carry();
    EXPECT_FALSE(is_done(sent));
    EXPECT_EQ(client.state(), ViState::connected);
    queue::Descriptor& received = server.receive(0, 10);
    pair.carry();
    EXPECT_EQ(status_of(sent), send_done);
    EXPECT_EQ(status_of(received), receive_done);
}

TEST_P(Credits, ReceivesPostedBeforeConnectingCount) {
    queue::Descriptor& first = server.receive(0, 10);
    queue::Descriptor& second = server.receive(0, 10);
    meet();
    for (int n = 0; n < 3; ++n) client.send(0, 10);
    pair.carry();
    EXPECT_TRUE(is_done(first) && is_done(second));
    EXPECT_EQ(client.state(), ViState::connected);
    EXPECT_EQ(client.vi().credits.used, 2U);
}

TEST_P(Credits, OnlyWhatConsumesAReceiveWaits) {
    meet();
    queue::Descriptor& write =
        client.rdma(queue::control::rdma_write, 0, 10, server.address(100), server.handle());
    queue::Descriptor& read =
        client.rdma(queue::control::rdma_read, 0, 10, server.address(100), server.handle());
    pair.carry();
    EXPECT_EQ(status_of(write), write_done);
    EXPECT_EQ(status_of(read), read_done);
    queue::Descriptor& with_data =
        client.rdma(queue::control::rdma_write | queue::control::immediate, 0, 10,
                    server.address(100), server.handle());
    pair.carry();
    EXPECT_FALSE(is_done(with_data));
    server.receive(0, 10);
    pair.carry();
    EXPECT_TRUE(is_done(with_data));
}

TEST_P(Credits, NothingIsLostOverThousandsOfMessages) {
    meet();
    int sent = 0;
    int received = 0;
    int posted = 0;
    unsigned step = 1;
    while (received < 3000) {
        step = step * 1103515245 + 12345;
        switch (step >> 16 & 3) {
            case 0:
                if (posted - received < 20) server.receive(0, 10), ++posted;
                break;
            case 1:
                if (sent - received < 20) client.send(0, 10), ++sent;
                break;
            default:
                pair.carry();
        }
        while (client.take(client.vi().send) != nullptr) {
        }
        while (queue::Descriptor* got = server.take(server.vi().receive)) {
            ASSERT_EQ(status_of(*got), receive_done);
            ++received;
        }
        ASSERT_EQ(client.state(), ViState::connected);
        ASSERT_LE(received, std::min(sent, posted));
    }
}

TEST_P(Credits, AreToldOfInBulk) {
    for (int n = 0; n < 32; ++n) server.receive(0, 10);
    meet();
    std::uint64_t frames = pair.b.counters.get(Counter::frames_sent);
    for (int n = 0; n < 32 * 8; ++n) {
        client.send(0, 10);
        pair.carry();
        server.take(server.vi().receive);
        client.take(client.vi().send);
        server.receive(0, 10);
    }
    frames = pair.b.counters.get(Counter::frames_sent) - frames;
    const std::uint64_t acks = GetParam() == Reliability::reception ? 32 * 8 : 0;
    EXPECT_LE(frames - acks, 32U) << "not a frame for each receive";
}

TEST_P(Credits, BothHaveToWant) {
    for (const auto& [mine, theirs] : {std::pair{true, false}, std::pair{false, true}}) {
        Pair fresh;
        Program one(fresh.a, attributes(GetParam()));
        Program other(fresh.b, attributes(GetParam()));
        one.vi().wants_credits = mine;
        other.vi().wants_credits = theirs;
        connect(fresh, one, other);
        EXPECT_FALSE(one.vi().credits_agreed.load());
        EXPECT_FALSE(other.vi().credits_agreed.load());
        one.send(0, 10);
        fresh.carry();
        EXPECT_EQ(other.state(), ViState::error) << "no receive, no credits";
    }
}

TEST_P(Credits, HeldSendsAreFlushedAtTheEnd) {
    meet();
    queue::Descriptor& sent = client.send(0, 10);
    pair.carry();
    pair.a.engine.disconnect(client.vi());
    EXPECT_EQ(status_of(sent), send_flushed);
    EXPECT_FALSE(client.vi().credits_agreed.load());
}

TEST_P(Credits, CountAnewWithEachConnection) {
    for (int round = 0; round < 3; ++round) {
        meet();
        server.receive(0, 10);
        server.receive(0, 10);
        queue::Descriptor& sent = client.send(0, 10);
        pair.carry();
        EXPECT_EQ(status_of(sent), send_done);
        pair.a.engine.disconnect(client.vi());
        pair.carry();
        pair.b.engine.disconnect(server.vi());
        client.take_all();
        server.take_all();
    }
}

TEST_P(Credits, NobodyGivesCreditsUnasked) {
    meet(true, false);
    wire::Header credit;
    credit.kind = wire::FrameKind::credit;
    credit.vi = client.vi().number();
    credit.message = 5;
    EXPECT_EQ(pair.a.take(credit), FrameVerdict::refused);
    EXPECT_EQ(client.state(), ViState::error);
}

TEST_P(Credits, TakenBackAreRefused) {
    server.receive(0, 10);
    meet();
    wire::Header credit;
    credit.kind = wire::FrameKind::credit;
    credit.vi = client.vi().number();
    credit.message = 0;
    EXPECT_EQ(pair.a.take(credit), FrameVerdict::refused);
}

/// Counts are modulo 2^32: who tells of so many that they would look like fewer lies.
TEST_P(Credits, MoreThanCanBeCountedAreRefused) {
    meet();
    wire::Header credit;
    credit.kind = wire::FrameKind::credit;
    credit.vi = client.vi().number();
    credit.message = 1U << 31;
    EXPECT_EQ(pair.a.take(credit), FrameVerdict::taken);
    credit.message = (1U << 31) + 1;
    EXPECT_EQ(pair.a.take(credit), FrameVerdict::refused);
    EXPECT_EQ(client.state(), ViState::error);
}

INSTANTIATE_TEST_SUITE_P(Reliable, Credits,
                         testing::Values(Reliability::delivery, Reliability::reception),
                         [](const auto& level) {
                             return level.param == Reliability::delivery ? "delivery" : "reception";
                         });

TEST(CreditsOf, NeverOnAnUnreliableVi) {
    Pair pair;
    Program client{pair.a, attributes(Reliability::unreliable)};
    Program server{pair.b, attributes(Reliability::unreliable)};
    client.vi().wants_credits = server.vi().wants_credits = true;
    connect(pair, client, server);
    EXPECT_FALSE(client.vi().credits_agreed.load());
}

}  // namespace
}  // namespace via::engine::test::credit_test
