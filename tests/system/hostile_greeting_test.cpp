// Lies in the greeting, memory that is not what it should be, and peers that stop half-way.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>

#include "hostile_stage.hpp"

namespace system_test::hostile_greeting_test {

namespace {

struct Lie {
    const char* name;
    std::function<void(Attacker&)> tell;
    const char* log;  ///< what the victim's log must say; nullptr: it says nothing
};

void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

/// A greeting with one thing wrong.
std::function<void(Attacker&)> greeting(std::function<void(shm::Hello&)> change) {
    return [change](Attacker& attacker) {
        shm::Hello hello = attacker.hello();
        change(hello);
        attacker.greet(hello, {attacker.make_memory(), attacker.make_mailbox()});
    };
}

/// A proper greeting with improper memory.
std::function<void(Attacker&)> memory(const Offer& offer) {
    return [offer](Attacker& attacker) {
        attacker.greet(attacker.hello(), {attacker.make_memory(offer), attacker.make_mailbox()});
    };
}

/// With proper memory and an improper mailbox.
std::function<void(Attacker&)> mailbox(const Offer& offer) {
    return [offer](Attacker& attacker) {
        attacker.greet(attacker.hello(), {attacker.make_memory(), attacker.make_mailbox(offer)});
    };
}

std::function<void(Attacker&)> header(std::function<void(shm::Control&)> change) {
    return [change](Attacker& attacker) {
        const int file = attacker.make_memory();
        change(attacker.control());
        attacker.greet(attacker.hello(), {file, attacker.make_mailbox()});
    };
}

int null_device(Attacker& attacker) { return attacker.keep(open("/dev/zero", O_RDWR | O_CLOEXEC)); }

const Lie lies[] = {
    {"magic", greeting([](auto& hello) { ++hello.head.magic; }), "not a greeting"},
    {"version_0", greeting([](auto& hello) { hello.head.version = 0; }), "another version"},
    {"version_max", greeting([](auto& hello) { hello.head.version = ~0U; }), "another version"},
    {"kind", greeting([](auto& hello) { hello.head.kind = 77; }), "not a greeting"},
    {"goodbye_instead", greeting([](auto& hello) { hello.head.kind = 3; }), "not a greeting"},
    {"features", greeting([](auto& hello) { hello.required = 0x80000000; }), "features"},
    {"ring_0", greeting([](auto& hello) { hello.ring_slots = 0; }), "sizes"},
    {"ring_odd", greeting([](auto& hello) { hello.ring_slots = 1023; }), "sizes"},
    {"ring_max", greeting([](auto& hello) { hello.ring_slots = ~0U; }), "sizes"},
    {"arena_0", greeting([](auto& hello) { hello.arena_bytes = 0; }), "sizes"},
    {"arena_max", greeting([](auto& hello) { hello.arena_bytes = 1U << 31; }), "sizes"},
    {"memory_bytes", greeting([](auto& hello) { hello.memory_bytes = ~0ULL; }), "sizes"},
    {"larger_ring_than_memory", greeting([](auto& hello) {
         hello.ring_slots *= 2;
         hello.memory_bytes = shm::Layout{hello.ring_slots, hello.arena_bytes}.bytes();
     }),
     "another size than announced"},
    {"payload_max", greeting([](auto& hello) { hello.payload_max *= 2; }), "sizes"},
    {"header_max", greeting([](auto& hello) { hello.header_max = 0; }), "sizes"},
    {"address_length", greeting([](auto& hello) { hello.address_length = 65535; }), "address"},
    {"address", greeting([](auto& hello) { ++hello.address[0]; }), "address"},
    {"name_length", greeting([](auto& hello) { hello.name_length = 255; }), "name is malformed"},
    {"name_path", greeting([](auto& hello) { std::memcpy(hello.name, "../../etc/passwd", 16); }),
     "name is malformed"},
    {"name_0", greeting([](auto& hello) { hello.name_length = 0; }), "name is malformed"},
    {"short",
     [](Attacker& attacker) {
         const shm::Hello hello = attacker.hello();
         attacker.say(&hello, sizeof hello - 1, {attacker.make_memory(), attacker.make_mailbox()});
     },
     "not a greeting"},
    {"long",
     [](Attacker& attacker) {
         std::byte bytes[4096] = {};
         const shm::Hello hello = attacker.hello();
         std::memcpy(bytes, &hello, sizeof hello);
         attacker.say(bytes, sizeof bytes, {attacker.make_memory(), attacker.make_mailbox()});
     },
     "not a greeting"},
    {"one_byte", [](Attacker& attacker) { attacker.say("x", 1); }, "first message is too short"},
    {"no_descriptor", [](Attacker& attacker) { attacker.greet(attacker.hello(), {}); },
     "exactly two descriptors"},
    {"one_descriptor",
     [](Attacker& attacker) { attacker.greet(attacker.hello(), {attacker.make_memory()}); },
     "exactly two descriptors"},
    {"three_descriptors",
     [](Attacker& attacker) {
         attacker.greet(attacker.hello(),
                        {attacker.make_memory(), attacker.make_mailbox(), attacker.make_mailbox()});
     },
     "exactly two descriptors"},
    {"mailbox_unsealed", mailbox({.seals = 0}), "not sealed"},
    {"mailbox_may_shrink", mailbox({.seals = F_SEAL_GROW | F_SEAL_SEAL}), "not sealed"},
    {"mailbox_too_small", mailbox({.bytes = 64}), "another size than announced"},
    {"mailbox_too_large", mailbox({.bytes = 1U << 20}), "another size than announced"},
    {"mailbox_that_cannot_be_written", mailbox({.seals = Offer{}.seals | F_SEAL_FUTURE_WRITE}),
     "cannot map a mailbox"},
    {"twenty_descriptors",
     [](Attacker& attacker) {
         attacker.greet(attacker.hello(), std::vector<int>(20, attacker.make_memory()));
     },
     "is refused"},
    {"unsealed", memory({.seals = 0}), "not sealed"},
    {"may_shrink", memory({.seals = F_SEAL_GROW | F_SEAL_SEAL}), "not sealed"},
    {"may_grow", memory({.seals = F_SEAL_SHRINK | F_SEAL_SEAL}), "not sealed"},
    {"too_small", memory({.bytes = 65536}), "another size than announced"},
    {"tiny", memory({.bytes = 1}), "another size than announced"},
    {"empty_header", memory({.header = false}), "its header says something else"},
    {"header_ring", header([](auto& control) { control.ring_slots.store(2048); }),
     "its header says something else"},
    {"header_arena", header([](auto& control) { control.arena_bytes.store(1U << 31); }),
     "its header says something else"},
    {"pipe",
     [](Attacker& attacker) {
         int ends[2];
         require_call(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
         attacker.keep(ends[1]);
         attacker.greet(attacker.hello(), {attacker.keep(ends[0]), attacker.make_mailbox()});
     },
     "not sealed"},
    {"socket",
     [](Attacker& attacker) {
         attacker.greet(attacker.hello(), {attacker.socket(), attacker.make_mailbox()});
     },
     "not sealed"},
    {"device",
     [](Attacker& attacker) {
         attacker.greet(attacker.hello(), {null_device(attacker), attacker.make_mailbox()});
     },
     "not sealed"},
    {"directory",
     [](Attacker& attacker) {
         attacker.greet(attacker.hello(),
                        {attacker.keep(open("/", O_RDONLY | O_CLOEXEC)), attacker.make_mailbox()});
     },
     "not sealed"},
    {"file",
     [](Attacker& attacker) {
         attacker.greet(attacker.hello(),
                        {attacker.keep(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)),
                         attacker.make_mailbox()});
     },
     "not sealed"},
    {"path_descriptor",
     [](Attacker& attacker) {
         attacker.greet(attacker.hello(),
                        {attacker.keep(open("/", O_PATH | O_CLOEXEC)), attacker.make_mailbox()});
     },
     "not sealed"},
};

class HostileGreeting : public testing::TestWithParam<Lie> {};

TEST_P(HostileGreeting, IsRefusedAndSaidSo) {
    HostileStage stage;
    {
        const auto attacker = stage.attacker();
        ASSERT_TRUE(attacker->dial());
        GetParam().tell(*attacker);
        if (GetParam().log != nullptr) stage.expect_log(GetParam().log);
        attacker->hear_the_end();
        stage.expect_undisturbed();
        stage.expect_intact();
    }
    stage.expect_given_back();
    EXPECT_EQ(stage.page().accepted, 0U);
    stage.end();
}

INSTANTIATE_TEST_SUITE_P(With, HostileGreeting, testing::ValuesIn(lies),
                         [](const auto& lie) { return std::string(lie.param.name); });

TEST(HalfAGreeting, SilentPeersCostNothingForLong) {
    HostileStage stage;
    {
        // More than the victim keeps waiting at once; the oldest make room.
        std::vector<std::unique_ptr<Attacker>> silent;
        for (int n = 0; n < 200; ++n) {
            silent.push_back(stage.attacker());
            ASSERT_TRUE(silent.back()->dial());
        }
        stage.expect_log("too many connect and do not greet");
        // Who greets properly is let in all the same.
        const auto honest = stage.attacker();
        honest->enter();
        honest->connect_vi(VIP_SERVICE_RELIABLE_DELIVERY, 4096);
        stage.expect_undisturbed();
    }
    stage.expect_given_back();
    stage.end();
}

TEST(HalfAGreeting, PeersThatLeaveHalfWay) {
    HostileStage stage;
    for (int way = 0; way < 6; ++way) {
        SCOPED_TRACE(way);
        const auto attacker = stage.attacker();
        ASSERT_TRUE(attacker->dial());
        switch (way) {
            case 0:
                break;
            case 1:
                shutdown(attacker->socket(), SHUT_WR);
                break;
            case 2:
                shutdown(attacker->socket(), SHUT_RD);
                break;
            case 3:
                attacker->greet(attacker->hello(),
                                {attacker->make_memory(), attacker->make_mailbox()});
                break;
            case 4:
                attacker->greet(attacker->hello(),
                                {attacker->make_memory(), attacker->make_mailbox()});
                shutdown(attacker->socket(), SHUT_RDWR);
                break;
            default:
                shutdown(attacker->socket(), SHUT_RD);
                attacker->greet(attacker->hello(),
                                {attacker->make_memory(), attacker->make_mailbox()});
        }
        stage.expect_undisturbed();
    }
    stage.expect_given_back();
    stage.end();
}

TEST(HalfAGreeting, ManyComeAndGo) {
    HostileStage stage;
    for (int n = 0; n < 2000; ++n) {
        const auto attacker = stage.attacker();
        if (!attacker->dial()) continue;  // its queue is full
        if (n % 3 == 1)
            attacker->greet(attacker->hello(), {attacker->make_memory(), attacker->make_mailbox()});
        if (n % 100 == 0) stage.expect_undisturbed();
    }
    stage.expect_undisturbed();
    stage.expect_given_back();
    stage.end();
}

TEST(HalfAGreeting, ManyChannelsOfOneProcessAreTooMany) {
    HostileStage stage;
    {
        std::vector<std::unique_ptr<Attacker>> attackers;
        for (int n = 0; n < 64; ++n) {
            attackers.push_back(stage.attacker());
            attackers.back()->enter();
        }
        attackers.push_back(stage.attacker());
        ASSERT_TRUE(attackers.back()->dial());
        EXPECT_NE(attackers.back()->hear_the_end().find("too many connections"), std::string::npos);
        stage.expect_log("opens too many connections");
        stage.expect_undisturbed();
    }
    stage.expect_given_back();
    stage.end();
}

}  // namespace

}  // namespace system_test::hostile_greeting_test
