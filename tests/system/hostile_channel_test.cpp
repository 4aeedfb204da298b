// Lies in the ring, the arena and the control words, and noise on the socket of a channel.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <thread>

#include "device/shm/wake.hpp"
#include "hostile_stage.hpp"

namespace system_test::hostile_channel_test {

namespace {

struct Lie {
    const char* name;
    std::function<void(Attacker&)> tell;
    const char* log;  ///< what the victim's log must say of the path's end
};

void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

constexpr std::uint32_t arena_lengths(std::uint32_t header_length) {
    return header_length << 16 | shm::arena_marker;
}

/// A slot that refers to the arena: a proper header for a send, and what is said of the payload.
std::function<void(Attacker&)> arena_slot(std::uint32_t offset, std::uint32_t length,
                                          std::uint32_t header_length = 16) {
    return [=](Attacker& attacker) {
        std::byte bytes[56] = {};
        wire::Header header;
        header.kind = wire::FrameKind::send;
        header.flags = wire::flag::first | wire::flag::last;
        wire::emit(header, bytes);
        const std::uint64_t reference = std::uint64_t{length} << 32 | offset;
        std::memcpy(bytes + 48, &reference, sizeof reference);
        attacker.write_slot(arena_lengths(header_length), bytes, sizeof bytes);
    };
}

std::function<void(Attacker&)> slot(std::uint32_t lengths) {
    return [=](Attacker& attacker) {
        const std::byte bytes[56] = {};
        attacker.write_slot(lengths, bytes, sizeof bytes);
    };
}

/// A frame in a slot whose bytes are these.
std::function<void(Attacker&)> frame(std::vector<std::uint8_t> bytes) {
    return [=](Attacker& attacker) {
        attacker.send_raw(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
    };
}

std::vector<std::uint8_t> header_bytes(std::uint8_t kind, std::uint8_t flags,
                                       std::uint8_t version = wire::protocol_version,
                                       std::size_t length = 40) {
    std::vector<std::uint8_t> bytes(length);
    bytes[0] = kind;
    bytes[1] = flags;
    bytes[2] = version;
    return bytes;
}

const char* const out_of_bounds = "lengths or offset are out of bounds";

const Lie lies[] = {
    {"inline_57", slot(57), out_of_bounds},
    {"inline_65534", slot(0xFFFE), out_of_bounds},
    {"lengths_max", slot(0xFFFFFFFF), out_of_bounds},
    {"inline_with_header", slot(1U << 16 | 8), out_of_bounds},
    {"arena_header_41", arena_slot(0, 64, 41), out_of_bounds},
    {"arena_length_0", arena_slot(0, 0), out_of_bounds},
    {"arena_length_over_the_payload", arena_slot(0, shm::payload_max + 1), out_of_bounds},
    {"arena_length_max", arena_slot(0, ~0U), out_of_bounds},
    {"arena_unaligned", arena_slot(1, 64), out_of_bounds},
    {"arena_at_its_end", arena_slot(1U << 20, 64), out_of_bounds},
    {"arena_over_its_end", arena_slot((1U << 20) - 64, 65), out_of_bounds},
    {"arena_far_away", arena_slot(0xFFFFFFC0, 64), out_of_bounds},
    {"no_header", frame({}), "shorter than its header"},
    {"fifteen_bytes", frame(std::vector<std::uint8_t>(15, 1)), "shorter than its header"},
    {"version_0", frame(header_bytes(6, 3, 0)), "unknown protocol version"},
    {"version_255", frame(header_bytes(6, 3, 255)), "unknown protocol version"},
    {"kind_0", frame(header_bytes(0, 0)), "unknown kind"},
    {"kind_after_the_last", frame(header_bytes(wire::frame_kind_max + 1, 0)), "unknown kind"},
    {"kind_255", frame(header_bytes(255, 0)), "unknown kind"},
    {"flags_32", frame(header_bytes(6, 32)), "impossible flags"},
    {"flags_remote_alone", frame(header_bytes(7, 16)), "impossible flags"},
    {"extent_cut_off", frame(header_bytes(6, 8, wire::protocol_version, 23)),
     "shorter than its header"},
    {"remote_cut_off", frame(header_bytes(7, 24, wire::protocol_version, 39)),
     "shorter than its header"},
    {"payload_in_two_places", [](Attacker& attacker) { arena_slot(0, 64, 24)(attacker); },
     "payload in two places"},
    {"request_of_16_bytes", frame(header_bytes(1, 0, wire::protocol_version, 16)),
     "connection request that makes no sense"},
    {"acceptance_of_16_bytes", frame(header_bytes(2, 0, wire::protocol_version, 16)),
     "acceptance that makes no sense"},
    {"head_ahead",
     [](Attacker& attacker) {
         // The victim looks at the head when it lacks room: a stream of answers makes it so.
         attacker.control().head.store(1'000'000);
         for (int n = 0; n < 3000 && !attacker.hung_up(); ++n)
             attacker.request_vi(VIP_SERVICE_RELIABLE_DELIVERY, 64, 1, "nobody");
     },
     "gave back frames that were never sent"},
    {"head_backwards",
     [](Attacker& attacker) {
         attacker.connect_vi(VIP_SERVICE_RELIABLE_DELIVERY, 64);
         attacker.control().head.store(~0U);
         for (int n = 0; n < 3000 && !attacker.hung_up(); ++n)
             attacker.request_vi(VIP_SERVICE_RELIABLE_DELIVERY, 64, 1, "nobody");
     },
     "gave back frames that were never sent"},
    {"unknown_words",
     [](Attacker& attacker) {
         const char bytes[64] = "what is this?";
         attacker.say(bytes, sizeof bytes);
     },
     "its socket said something unknown"},
    {"second_greeting",
     [](Attacker& attacker) {
         attacker.greet(attacker.hello(), {attacker.make_memory(), attacker.make_mailbox()});
     },
     "its socket said something unknown"},
    {"wakes_without_end",
     [](Attacker& attacker) {
         while (!attacker.hung_up())
             if (!attacker.say("", 1)) sched_yield();
     },
     "wakes us all the time for nothing"},
};

class HostileChannel : public testing::TestWithParam<Lie> {};

TEST_P(HostileChannel, IsCutAndSaidSo) {
    HostileStage stage;
    {
        const auto attacker = stage.attacker();
        attacker->enter();
        GetParam().tell(*attacker);
        stage.expect_log("is cut, it broke the protocol");
        stage.expect_log(GetParam().log);
        EXPECT_NE(attacker->hear_the_end(), "") << "it is told why";
        stage.expect_undisturbed();
        stage.expect_intact();
    }
    stage.expect_given_back();
    stage.end();
}

INSTANTIATE_TEST_SUITE_P(With, HostileChannel, testing::ValuesIn(lies),
                         [](const auto& lie) { return std::string(lie.param.name); });

/// These are odd, but no lies that must end the channel.
TEST(OddChannel, HurtsNobody) {
    HostileStage stage;
    {
        const auto attacker = stage.attacker();
        attacker->enter();
        // Slots from the future are not there yet.
        for (std::uint32_t n = 1; n < 1024; ++n) attacker->ring()[n].words[0].store(n + 7);
        stage.expect_undisturbed();
        // Who writes nonsense as its sleep word is not woken; who always sleeps is, and need not
        // be.
        for (const std::uint32_t word : {3U, 7U, ~0U, 1U, 5U, 2U, 6U}) {
            attacker->control().asleep.store(word);
            attacker->control().waiting.store(word);
            stage.expect_undisturbed();
        }
    }
    // A goodbye with what terminals take for commands; who says it ends its path, meant or not.
    shm::Farewell goodbye = shm::make_goodbye("\x1b[2J\nopenvia[1]: error: forged line");
    const auto says = [&](const shm::Farewell& farewell, const char* heard) {
        const auto attacker = stage.attacker();
        attacker->enter();
        attacker->say(&farewell, sizeof farewell);
        stage.expect_log(heard);
        stage.expect_undisturbed();
    };
    says(goodbye, "forged line");
    EXPECT_EQ(stage.log().find('\x1b'), std::string::npos);
    EXPECT_EQ(stage.log().find("\nopenvia[1]"), std::string::npos);
    // Who cannot take the answer to its greeting may refuse it.
    says(shm::make_refusal(shm::Refusal::memory, "too late"), "leaves us: too late");
    goodbye = shm::make_goodbye("longer than it is");
    goodbye.text_length = ~0U;
    says(goodbye, "longer than it is");
    stage.expect_intact();
    stage.expect_given_back();
    stage.end();
}

TEST(OddChannel, DescriptorsSentLaterAreClosed) {
    HostileStage stage;
    const auto attacker = stage.attacker();
    attacker->enter();
    const Holdings before = Holdings::of(stage.victim().pid());
    const int gift = attacker->make_memory();
    for (int n = 0; n < 500; ++n)
        if (!attacker->say("", 1, {gift, gift, gift})) sched_yield();
    stage.expect_undisturbed();
    until("the gifts are closed",
          [&] { return Holdings::of(stage.victim().pid()).descriptors <= before.descriptors; });
    stage.end();
}

/// Writes random bytes all over what the victim reads, all the time.
void scribble(Attacker& attacker, std::uint64_t seed, const std::atomic<bool>& enough) {
    std::mt19937_64 random(seed);
    auto* words = reinterpret_cast<via::Atomic<std::uint64_t>*>(attacker.ring());
    const std::size_t ring_words = attacker.layout.ring_slots * 8;
    auto* arena = reinterpret_cast<via::Atomic<std::uint64_t>*>(attacker.arena());
    while (!enough) {
        for (int n = 0; n < 4096; ++n) arena[random() % (1U << 17)].store(random());
        for (std::uint32_t slot = 0; slot < attacker.layout.ring_slots; ++slot) {
            // Plausible enough to be looked at: proper stamps and lengths, random contents.
            for (std::uint32_t n = 2; n < 8; ++n) words[slot * 8 + n].store(random());
            const std::uint64_t kind = random() % 13;
            const std::uint64_t flags = random() % 32;
            words[slot * 8 + 1].store(kind | flags << 8 | 0x10000U | (random() % 4) << 32 |
                                      (random() % 4) << 48);
            words[slot * 8].store((random() % 64) << 32 | (slot + 1));
        }
        for (int n = 0; n < 1024; ++n) words[random() % ring_words].store(random());
        attacker.control().head.store(static_cast<std::uint32_t>(random()));
        attacker.control().asleep.store(static_cast<std::uint32_t>(random()));
    }
}

TEST(RandomChannel, HurtsNobody) {
    HostileStage stage;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE(seed);
        const auto attacker = stage.attacker();
        attacker->enter();
        if (seed % 2 == 0) attacker->connect_vi(VIP_SERVICE_RELIABLE_RECEPTION, 20000);
        std::atomic<bool> enough = false;
        std::thread writer([&] { scribble(*attacker, seed, enough); });
        stage.expect_undisturbed();
        stage.expect_undisturbed();
        enough = true;
        writer.join();
    }
    stage.expect_intact();
    stage.expect_given_back();
    stage.end();
}

}  // namespace

}  // namespace system_test::hostile_channel_test
