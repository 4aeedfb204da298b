// Peers that send without end and take nothing: the victim's memory and time stay bounded.
#include <gtest/gtest.h>

#include <functional>

#include "hostile_stage.hpp"

namespace system_test::hostile_flood_test {

namespace {

using wire::FrameKind;

/// What one peer may make us remember, generously.
constexpr std::size_t rss_growth_max_kib = 40 * 1024;
constexpr int flood_frames = 400'000;
constexpr int flood_least = 10'000;

struct Flood {
    const char* name;
    std::function<bool(Attacker&, int number)> send;  ///< false: no room now
    bool connects = false;                            ///< to the victim's VI number `connected`
};

/// The victim's VI that the attacker of this process is connected with.
std::uint32_t connected = 0;

void PrintTo(const Flood& flood, std::ostream* out) { *out << flood.name; }

bool send_kind(Attacker& attacker, FrameKind kind, std::uint32_t vi, std::uint32_t message = 0) {
    wire::Header header;
    header.kind = kind;
    header.vi = vi;
    header.message = message;
    return attacker.try_send(header);
}

bool send_connect_message(Attacker& attacker, FrameKind kind, std::uint32_t vi,
                          const std::string& door) {
    wire::ConnectMessage message{};
    message.vi = vi;
    message.transfer_length_max = 64;
    message.reliability = VIP_SERVICE_RELIABLE_DELIVERY;
    message.remote_length = static_cast<std::uint16_t>(door.size());
    std::memcpy(message.remote_discriminator, door.data(), door.size());
    wire::Header header;
    header.kind = kind;
    header.vi = kind == FrameKind::accept ? vi : 0;
    return attacker.try_send(header, &message, sizeof message);
}

const Flood floods[] = {
    {"requests_for_nobody",
     [](Attacker& attacker, int number) {
         return send_connect_message(attacker, FrameKind::request,
                                     static_cast<std::uint32_t>(number), "nobody");
     }},
    {"requests_for_somebody",
     [](Attacker& attacker, int number) {
         return send_connect_message(attacker, FrameKind::request,
                                     static_cast<std::uint32_t>(number), "evil");
     }},
    {"acceptances",
     [](Attacker& attacker, int number) {
         return send_connect_message(attacker, FrameKind::accept,
                                     static_cast<std::uint32_t>(number), "");
     }},
    {"withdrawals",
     [](Attacker& attacker, int number) {
         return send_kind(attacker, FrameKind::withdraw, 0, static_cast<std::uint32_t>(number));
     }},
    {"disconnects",
     [](Attacker& attacker, int number) {
         return send_kind(attacker, FrameKind::disconnect, static_cast<std::uint32_t>(number));
     }},
    {"acknowledgements",
     [](Attacker& attacker, int number) {
         return send_kind(attacker, FrameKind::ack, static_cast<std::uint32_t>(number));
     }},
    {"refusals",
     [](Attacker& attacker, int number) {
         return send_kind(attacker, FrameKind::refuse, static_cast<std::uint32_t>(number));
     }},
    {"requests_from_peer_to_peer",
     [](Attacker& attacker, int number) {
         return send_connect_message(attacker, FrameKind::peer_request,
                                     static_cast<std::uint32_t>(number), "evil");
     }},
    {"refusals_of_messages",
     [](Attacker& attacker, int number) {
         return send_kind(attacker, FrameKind::nak, static_cast<std::uint32_t>(number));
     }},
    {"words_of_pulled_messages",
     [](Attacker& attacker, int number) {
         return send_kind(attacker, FrameKind::pulled, static_cast<std::uint32_t>(number));
     }},
    {"answers_about_segments",
     [](Attacker& attacker, int number) {
         return send_kind(attacker, FrameKind::attach_refuse, static_cast<std::uint32_t>(number));
     }},
    {"questions_for_segments",
     [](Attacker& attacker, int number) {
         wire::Header header;
         header.kind = FrameKind::attach_request;
         header.flags = wire::flag::extent | wire::flag::remote;
         header.vi = connected;
         header.message = static_cast<std::uint32_t>(number);
         return attacker.try_send(header);
     },
     true},
};

class HostileFlood : public testing::TestWithParam<Flood> {};

TEST_P(HostileFlood, IsBounded) {
    HostileStage stage;
    std::size_t most_kib = 0;
    const std::size_t before_kib = stage.victim_rss_kib();
    {
        const auto attacker = stage.attacker();
        attacker->enter();
        if (GetParam().connects)
            connected = attacker->connect_vi(VIP_SERVICE_RELIABLE_DELIVERY, 64);
        // We never take an answer off our ring. The flood ends when all was sent, or the victim
        // has had enough of us.
        int number = 0;
        while (number < flood_frames && !attacker->hung_up()) {
            if (GetParam().send(*attacker, number))
                ++number;
            else
                sched_yield();
            if (number % 20'000 == 0) most_kib = std::max(most_kib, stage.victim_rss_kib());
        }
        most_kib = std::max(most_kib, stage.victim_rss_kib());
        EXPECT_GT(number, flood_least) << "the victim took it for no flood";
        stage.expect_undisturbed();
        stage.expect_intact();
    }
    if (!GetParam().connects)
        stage.expect_given_back();  // the victim keeps its end of a connection
    std::printf("the victim grew by %zu KiB at most\n",
                most_kib > before_kib ? most_kib - before_kib : 0);
    if (!sanitized) {
        EXPECT_LE(most_kib, before_kib + rss_growth_max_kib);
    }
    stage.end();
}

INSTANTIATE_TEST_SUITE_P(Of, HostileFlood, testing::ValuesIn(floods),
                         [](const auto& flood) { return std::string(flood.param.name); });

/// Messages that find no receive, on an unreliable VI: each is dropped and told of.
TEST(HostileFlood, OfDroppedMessagesIsBounded) {
    HostileStage stage;
    const auto attacker = stage.attacker();
    attacker->enter();
    const std::uint32_t vi = attacker->connect_vi(VIP_SERVICE_UNRELIABLE, 64);
    const std::size_t before_kib = stage.victim_rss_kib();
    std::size_t most_kib = 0;
    const std::byte nothing[8] = {};
    for (std::uint32_t message = 0; message < flood_frames;) {
        wire::Header header;
        header.kind = message % 2 == 0 ? FrameKind::send : FrameKind::rdma_write;
        header.flags = wire::flag::first | wire::flag::last;
        if (message % 2 == 1) header.flags |= wire::flag::extent | wire::flag::remote;
        header.vi = vi;
        header.message = message;
        header.message_length = 8;
        if (attacker->try_send(header, nothing, 8))
            ++message;
        else
            sched_yield();
        if (message % 20'000 == 0) most_kib = std::max(most_kib, stage.victim_rss_kib());
    }
    stage.expect_undisturbed();
    EXPECT_EQ(stage.page().lost, 0U);
    std::printf("the victim grew by %zu KiB at most\n",
                most_kib > before_kib ? most_kib - before_kib : 0);
    if (!sanitized) {
        EXPECT_LE(most_kib, before_kib + rss_growth_max_kib);
    }
    stage.end();
}

}  // namespace

}  // namespace system_test::hostile_flood_test
