#include <gtest/gtest.h>
#include <cstring>

#include "base/random.hpp"
#include "device/shm/hello.hpp"

namespace via::device::shm::hello_test {
namespace {

HostAddress address_of(std::uint8_t last) {
    HostAddress address;
    address.bytes = {10, 0, 0, last, 0x26, 0x0D};
    address.length = 6;
    return address;
}

Hello good() { return make_hello({1024, 1U << 20}, address_of(1), make_nic_name(77, 0xABCDEF)); }

std::expected<Hello, Unwelcome> check(const Hello& hello) {
    return check_hello(std::as_bytes(std::span(&hello, 1)));
}

TEST(ShmHello, AGoodOneIsAccepted) {
    const auto checked = check(good());
    ASSERT_TRUE(checked);
    EXPECT_EQ(checked->ring_slots, 1024U);
    EXPECT_EQ(std::string(checked->name, checked->name_length), "nic-77-0000000000abcdef");
}

TEST(ShmHello, ALieInEachFieldIsNamed) {
    struct Lie {
        const char* field;
        void (*tell)(Hello&);
        Refusal expected;
    };
    const Lie lies[] = {
        {"magic", [](Hello& h) { h.head.magic ^= 1; }, Refusal::protocol},
        {"version", [](Hello& h) { h.head.version = channel_version + 1; }, Refusal::version},
        {"version 0", [](Hello& h) { h.head.version = 0; }, Refusal::version},
        {"kind", [](Hello& h) { h.head.kind = 3; }, Refusal::protocol},
        {"required", [](Hello& h) { h.required = 1U << 31; }, Refusal::features},
        {"slots 0", [](Hello& h) { h.ring_slots = 0; }, Refusal::sizes},
        {"slots 3", [](Hello& h) { h.ring_slots = 3; }, Refusal::sizes},
        {"slots huge", [](Hello& h) { h.ring_slots = 1U << 31; }, Refusal::sizes},
        {"arena 0", [](Hello& h) { h.arena_bytes = 0; }, Refusal::sizes},
        {"arena odd", [](Hello& h) { h.arena_bytes += 64; }, Refusal::sizes},
        {"arena huge", [](Hello& h) { h.arena_bytes = 1U << 31; }, Refusal::sizes},
        {"payload", [](Hello& h) { h.payload_max = 1U << 20; }, Refusal::sizes},
        {"header", [](Hello& h) { h.header_max = 56; }, Refusal::sizes},
        {"bytes", [](Hello& h) { h.memory_bytes += 4096; }, Refusal::sizes},
        {"address length", [](Hello& h) { h.address_length = 18; }, Refusal::address},
        {"address length huge", [](Hello& h) { h.address_length = 0xFFFF; }, Refusal::address},
        {"name length", [](Hello& h) { h.name_length = 255; }, Refusal::protocol},
        {"name empty", [](Hello& h) { h.name_length = 0; }, Refusal::protocol},
        {"name path", [](Hello& h) { std::memcpy(h.name, "../../etc", 9); }, Refusal::protocol},
        {"name key", [](Hello& h) { h.name[h.name_length - 1] = 'G'; }, Refusal::protocol},
    };
    for (const Lie& lie : lies) {
        Hello hello = good();
        lie.tell(hello);
        const auto checked = check(hello);
        ASSERT_FALSE(checked) << lie.field;
        EXPECT_EQ(checked.error().reason, lie.expected) << lie.field;
        EXPECT_FALSE(checked.error().by_peer) << lie.field;
        EXPECT_FALSE(checked.error().text.empty()) << lie.field;
    }
}

TEST(ShmHello, EveryOtherLengthIsRefused) {
    const Hello hello = good();
    std::byte bytes[message_max] = {};
    std::memcpy(bytes, &hello, sizeof hello);
    for (std::size_t length = 0; length <= sizeof bytes; ++length) {
        const auto checked = check_hello({bytes, length});
        EXPECT_EQ(checked.has_value(), length == sizeof hello) << length;
    }
}

TEST(ShmHello, ANewerVersionOfAnyLengthIsAVersionMismatch) {
    Hello hello = good();
    hello.head.version = channel_version + 1;
    std::byte bytes[message_max] = {};
    std::memcpy(bytes, &hello, sizeof hello);
    for (const std::size_t length : {sizeof(MessageHead), std::size_t{40}, sizeof bytes}) {
        const auto checked = check_hello({bytes, length});
        ASSERT_FALSE(checked);
        EXPECT_EQ(checked.error().reason, Refusal::version);
    }
}

TEST(ShmHello, RefusalsArriveWithReasonAndPrintableText) {
    const Farewell refusal = make_refusal(Refusal::resources, "no \x1b[31mroom\n");
    const auto checked = check_hello(std::as_bytes(std::span(&refusal, 1)));
    ASSERT_FALSE(checked);
    EXPECT_TRUE(checked.error().by_peer);
    EXPECT_EQ(checked.error().reason, Refusal::resources);
    EXPECT_EQ(checked.error().text, "no ?[31mroom?");
}

TEST(ShmHello, ARefusalWithNonsenseInItIsStillARefusal) {
    Farewell refusal = make_refusal(Refusal::sizes, "x");
    refusal.text_length = 0xFFFFFFFF;
    auto checked = check_hello(std::as_bytes(std::span(&refusal, 1)));
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().text.size(), Farewell::text_max);
    refusal.reason = 4000;
    checked = check_hello(std::as_bytes(std::span(&refusal, 1)));
    ASSERT_FALSE(checked);
    EXPECT_TRUE(checked.error().by_peer);
}

TEST(ShmHello, RandomBytesAreRefused) {
    Random random(1);
    for (int round = 0; round < 100000; ++round) {
        Hello hello = good();
        std::byte bytes[message_max];
        for (auto& byte : bytes) byte = std::byte(random.next());
        if (random.chance(80)) std::memcpy(bytes, &hello, random.between(8, 24));
        EXPECT_FALSE(check_hello({bytes, random.below(sizeof bytes + 1)}));
    }
}

TEST(ShmHello, Goodbyes) {
    const Farewell goodbye = make_goodbye("you lied");
    const auto text = check_farewell(std::as_bytes(std::span(&goodbye, 1)));
    const Farewell refusal = make_refusal(Refusal::memory, "no room to map it");
    EXPECT_EQ(check_farewell(std::as_bytes(std::span(&refusal, 1))), "no room to map it");
    ASSERT_TRUE(text);
    EXPECT_EQ(*text, "you lied");
    const Hello hello = good();
    EXPECT_FALSE(check_farewell(std::as_bytes(std::span(&hello, 1))));
}

TEST(ShmHello, SegmentsAreOfferedUpToALength) {
    const auto is_read = [](std::uint64_t length) {
        SegmentOffer offer = make_segment_offer(length, 1, true);
        offer.granted = 1;
        return read_segment_offer(std::as_bytes(std::span(&offer, 1)), offer);
    };
    EXPECT_TRUE(is_read(1));
    EXPECT_TRUE(is_read(segment_bytes_max));
    EXPECT_FALSE(is_read(segment_bytes_max + 1));
    EXPECT_FALSE(is_read(~std::uint64_t{0}));
}

TEST(ShmHello, NamesAreParsedStrictly) {
    int pid = 0;
    EXPECT_TRUE(parse_nic_name("nic-4194304-0123456789abcdef", pid));
    EXPECT_EQ(pid, 4194304);
    for (const char* bad :
         {"", "nic-", "nic--0123456789abcdef", "nic-1-", "nic-1-0123456789abcde",
          "nic-1-0123456789abcdef0", "nic-1-0123456789ABCDEF", "nic-x-0123456789abcdef",
          "nic-9999999999-0123456789abcdef", "nic-1/2-0123456789abcdef", "new-1-0123456789abcdef",
          "../nic-1-0123456789abcdef"}) {
        EXPECT_FALSE(parse_nic_name(bad, pid)) << bad;
    }
}

}  // namespace
}  // namespace via::device::shm::hello_test
