#include "secure/packet_keys.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "secure/libcrypto/secure_test_support.hpp"
#include "secure/packet_reader.hpp"

namespace via::secure::packet_keys_test {
namespace {

using test::Buffer;
using test::library;
using test::secret_of;
using test::text_of;

constexpr CipherKind kind = CipherKind::aes_256_gcm;
const KeyLimits few{64, 1000};

struct Packet {
    std::uint64_t number = 0;
    Buffer sealed;
};

const Buffer header = text_of("header");

Packet seal(SealingKeys& keys, std::string_view text = "text") {
    const Buffer plain = text_of(text);
    Packet packet{0, Buffer(plain.size() + tag_length)};
    EXPECT_TRUE(keys.seal(header, plain, packet.sealed, packet.number));
    return packet;
}

Opened open(OpeningKeys& keys, const Packet& packet, std::string_view text = "text") {
    Buffer plain(packet.sealed.size() - tag_length);
    const Opened opened = keys.open(packet.number, header, packet.sealed, plain);
    if (opened == Opened::genuine) {
        EXPECT_EQ(plain, text_of(text));
    } else {
        EXPECT_EQ(plain, Buffer(plain.size())) << "nothing of it is to be seen";
    }
    return opened;
}

struct PacketKeys : testing::Test {
    SealingKeys sealing{library(), kind, secret_of(1), few};
    OpeningKeys opening{library(), kind, secret_of(1), few};

    void skip(std::uint64_t packets) {
        for (; packets != 0; --packets) seal(sealing);
    }
};

TEST_F(PacketKeys, keys_change_by_count_and_nothing_tells_of_it) {
    for (std::uint64_t n = 0; n < 1000; ++n) {
        const Packet packet = seal(sealing);
        EXPECT_EQ(packet.number, n);
        ASSERT_EQ(open(opening, packet), Opened::genuine) << n;
        ASSERT_EQ(open(opening, packet), Opened::replayed) << n;
    }
}

TEST_F(PacketKeys, each_key_is_another_one) {
    std::vector<Buffer> texts;
    for (std::uint64_t n = 0; n < 200; ++n) texts.push_back(seal(sealing).sealed);
    SealingKeys forever(library(), kind, secret_of(1), KeyLimits{});
    for (std::uint64_t n = 0; n < 200; ++n)
        EXPECT_EQ(seal(forever).sealed == texts[n], n < few.packets) << n;
    Secret key = secret_of(1);
    ASSERT_TRUE(renew(library(), kind, key));
    Buffer expected(4 + tag_length);
    ASSERT_TRUE(library().sealer(kind, key)->seal(64, header, text_of("text"), expected));
    EXPECT_EQ(texts[64], expected);
}

TEST_F(PacketKeys, late_packets_of_the_former_key_are_good_older_ones_not) {
    const Packet oldest = seal(sealing);
    skip(63);
    const Packet old = seal(sealing);
    skip(63);
    ASSERT_EQ(open(opening, seal(sealing)), Opened::genuine);  // under the third key
    EXPECT_EQ(open(opening, old), Opened::genuine);
    EXPECT_EQ(open(opening, oldest), Opened::far);
}

TEST_F(PacketKeys, keys_whose_packets_were_all_lost_are_skipped) {
    ASSERT_EQ(open(opening, seal(sealing)), Opened::genuine);
    skip(few.packets * OpeningKeys::ahead_max);
    EXPECT_EQ(open(opening, seal(sealing)), Opened::genuine);
    skip(few.packets * (OpeningKeys::ahead_max + 1));
    EXPECT_EQ(open(opening, seal(sealing)), Opened::far);
}

TEST_F(PacketKeys, a_key_may_change_before_its_packets_are_sent) {
    ASSERT_EQ(open(opening, seal(sealing)), Opened::genuine);
    sealing.change();
    const Packet packet = seal(sealing);
    EXPECT_EQ(packet.number, few.packets);
    EXPECT_EQ(open(opening, packet), Opened::genuine);
}

TEST_F(PacketKeys, a_key_that_is_old_is_followed_by_another_one) {
    const Time begin = Time{} + seconds(7);
    sealing.note(begin);
    ASSERT_EQ(open(opening, seal(sealing)), Opened::genuine);
    sealing.note(begin + Duration{few.age.ns - 1});
    EXPECT_EQ(sealing.next_number(), 1U);
    sealing.note(begin + few.age);
    EXPECT_EQ(sealing.next_number(), few.packets);
    ASSERT_EQ(open(opening, seal(sealing)), Opened::genuine);
    // One that changed by count begins its time anew.
    skip(few.packets - 1);
    sealing.note(begin + few.age + few.age);
    EXPECT_EQ(sealing.next_number(), 2 * few.packets);
    ASSERT_EQ(open(opening, seal(sealing)), Opened::genuine);
}

/// Numbers, headers and bytes of a stranger: refused, and true packets are as good as before.
TEST_F(PacketKeys, what_is_forged_changes_nothing) {
    const Packet packet = seal(sealing);
    const Packet later = [&] {
        skip(100);
        return seal(sealing);
    }();
    for (std::size_t bit = 0; bit < packet.sealed.size() * 8; ++bit) {
        Packet changed = packet;
        changed.sealed[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
        ASSERT_EQ(open(opening, changed), Opened::forged) << bit;
    }
    for (const std::uint64_t number : {1ULL, 64ULL, 150ULL, 255ULL}) {
        EXPECT_EQ(open(opening, {number, packet.sealed}), Opened::forged) << number;
    }
    for (const std::uint64_t number : {256ULL, 1ULL << 40, ~0ULL - 1, ~0ULL}) {
        EXPECT_EQ(open(opening, {number, packet.sealed}), Opened::far) << number;
    }
    Buffer plain(4);
    EXPECT_EQ(opening.open(0, text_of("another"), packet.sealed, plain), Opened::forged);
    EXPECT_EQ(open(opening, packet), Opened::genuine);
    EXPECT_EQ(open(opening, later), Opened::genuine);
}

TEST_F(PacketKeys, too_many_forged_ones_wear_a_key_out) {
    OpeningKeys weak(library(), kind, secret_of(1), KeyLimits{64, 10});
    const Packet good = seal(sealing);
    Packet changed = good;
    changed.sealed[0] ^= std::byte{1};
    for (int n = 0; n < 10; ++n) ASSERT_EQ(open(weak, changed), Opened::forged);
    EXPECT_EQ(open(weak, changed), Opened::worn_out);
    EXPECT_EQ(open(weak, good), Opened::worn_out);
}

TEST_F(PacketKeys, numbers_end_and_do_not_begin_anew) {
    const KeyLimits huge{~0ULL / 2, 10};
    SealingKeys keys(library(), kind, secret_of(1), huge);
    keys.change();
    keys.change();
    EXPECT_EQ(keys.next_number(), ~0ULL - 1);
    Buffer sealed(4 + tag_length);
    std::uint64_t number = 0;
    EXPECT_TRUE(keys.seal(header, text_of("text"), sealed, number));
    EXPECT_EQ(number, ~0ULL - 1);
    EXPECT_FALSE(keys.seal(header, text_of("text"), sealed, number));
    keys.change();
    EXPECT_FALSE(keys.seal(header, text_of("text"), sealed, number));
}

/// Who has the first key reads all packets, in any order and again; not one that was changed.
TEST_F(PacketKeys, a_reader_of_captures_opens_all_in_any_order) {
    std::vector<Packet> packets;
    for (std::uint64_t n = 0; n < 10 * few.packets; ++n) packets.push_back(seal(sealing));
    PacketReader reader(library(), kind, secret_of(1), few.packets);
    const auto reads = [&](const Packet& packet) {
        Buffer plain(packet.sealed.size() - tag_length);
        const bool opened = reader.open(packet.number, header, packet.sealed, plain);
        return opened && plain == text_of("text");
    };
    Random random(1);
    for (int n = 0; n < 500; ++n) {
        const std::size_t which = n == 0 ? packets.size() - 1 : random.below(packets.size());
        ASSERT_TRUE(reads(packets[which])) << which;
    }
    Packet changed = packets[3];
    changed.sealed[1] ^= std::byte{1};
    EXPECT_FALSE(reads(changed));
    EXPECT_FALSE(reads({~0ULL, changed.sealed})) << "and nobody looks for its key";
    EXPECT_TRUE(reads(packets[3]));
}

/// What a network and a stranger do at random: each genuine text is opened at most once, none that
/// was not sealed ever, none in reach is lost; and no number is ever used twice.
TEST(PacketKeysAtRandom, only_what_was_sealed_is_opened_and_once) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        Random random(seed);
        SealingKeys sealing(library(), kind, secret_of(seed), few);
        OpeningKeys opening(library(), kind, secret_of(seed), few);
        std::deque<Packet> on_the_way;
        std::map<std::uint64_t, int> opened;
        std::uint64_t newest = 0;
        std::uint64_t next = 0;
        for (int step = 0; step < 5000; ++step) {
            if (random.chance(1)) sealing.change();
            on_the_way.push_back(seal(sealing));
            ASSERT_GE(on_the_way.back().number, next) << "seed " << seed;
            next = on_the_way.back().number + 1;
            while (on_the_way.size() > random.below(40)) {
                const std::size_t which = random.below(on_the_way.size());
                Packet packet = on_the_way[which];
                const bool forged = random.chance(20);
                if (forged) {
                    packet.sealed[random.below(packet.sealed.size())] ^= std::byte{0x10};
                } else if (random.chance(70)) {
                    on_the_way.erase(on_the_way.begin() + static_cast<std::ptrdiff_t>(which));
                }
                const Opened result = open(opening, packet);
                if (result != Opened::genuine) {
                    ASSERT_TRUE(forged || opened.contains(packet.number) ||
                                packet.number / few.packets + 1 < newest / few.packets)
                        << "seed " << seed << " number " << packet.number;
                    continue;
                }
                ASSERT_FALSE(forged);
                ASSERT_EQ(++opened[packet.number], 1) << "seed " << seed;
                newest = std::max(newest, packet.number);
            }
        }
        EXPECT_GT(opened.size(), 4000U);
    }
}

}  // namespace
}  // namespace via::secure::packet_keys_test
