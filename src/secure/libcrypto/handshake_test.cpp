#include "secure/handshake.hpp"

#include <gtest/gtest.h>

#include "secure/libcrypto/noise_vectors.hpp"
#include "secure/libcrypto/secure_test_support.hpp"

namespace via::secure::handshake_test {
namespace {

using test::Buffer;
using test::from_digits;
using test::library;
using test::public_of;
using test::secret_of;
using test::text_of;

class Vectors : public testing::TestWithParam<noise_vectors::Vector> {
protected:
    Identity identity(const char* own) const {
        Identity result{GetParam().cipher, secret_of(own), std::nullopt};
        if (GetParam().shared != nullptr) result.shared = secret_of(GetParam().shared);
        return result;
    }
    PublicKey answerer_public() const {
        PublicKey key;
        std::ranges::copy(secret_of(noise_vectors::answerer_public).bytes(), key.begin());
        return key;
    }
    const Buffer prologue_ = from_digits(noise_vectors::prologue);
    Handshake asker_ = Handshake::ask(library(), identity(noise_vectors::asker_static),
                                      answerer_public(), prologue_);
    Handshake answerer_ =
        Handshake::answer(library(), identity(noise_vectors::answerer_static), prologue_);
};

void expect_message(Handshake& from, Handshake& to, const char* ephemeral,
                    const noise_vectors::Message& vector, std::size_t overhead) {
    const Buffer payload = from_digits(vector.payload);
    Buffer message(payload.size() + overhead);
    ASSERT_EQ(from.write(secret_of(ephemeral), payload, message), Fault::none);
    EXPECT_EQ(message, from_digits(vector.ciphertext));
    Buffer read(payload.size());
    ASSERT_EQ(to.read(message, read), Fault::none);
    EXPECT_EQ(read, payload);
}

TEST_P(Vectors, messages_transcript_and_keys) {
    const noise_vectors::Vector& vector = GetParam();
    expect_message(asker_, answerer_, noise_vectors::asker_ephemeral, vector.messages[0],
                   Handshake::first_overhead);
    expect_message(answerer_, asker_, noise_vectors::answerer_ephemeral, vector.messages[1],
                   Handshake::second_overhead);
    const Buffer transcript = from_digits(vector.transcript);
    EXPECT_TRUE(std::ranges::equal(asker_.transcript(), transcript));
    EXPECT_TRUE(std::ranges::equal(answerer_.transcript(), transcript));
    EXPECT_EQ(answerer_.peer(), public_of(secret_of(noise_vectors::asker_static)));

    ConnectionKeys keys;
    ConnectionKeys same;
    ASSERT_EQ(asker_.take_keys(keys), Fault::none);
    ASSERT_EQ(answerer_.take_keys(same), Fault::none);
    EXPECT_TRUE(std::ranges::equal(keys.from_asker.bytes(), same.from_asker.bytes()));
    EXPECT_TRUE(std::ranges::equal(keys.from_answerer.bytes(), same.from_answerer.bytes()));
    for (std::size_t n = 2; n < std::size(vector.messages); ++n) {
        const Secret& key = n % 2 == 0 ? keys.from_asker : keys.from_answerer;
        const auto sealer = library().sealer(vector.cipher, key);
        const Buffer payload = from_digits(vector.messages[n].payload);
        Buffer sealed(payload.size() + tag_length);
        ASSERT_TRUE(sealer->seal(n / 2 - 1, {}, payload, sealed));
        EXPECT_EQ(sealed, from_digits(vector.messages[n].ciphertext)) << "message " << n;
    }
}

INSTANTIATE_TEST_SUITE_P(cacophony, Vectors, testing::ValuesIn(noise_vectors::all),
                         [](const auto& one) { return std::string(one.param.name); });

/// An asker and an answerer with keys of their own.
struct Pair {
    Identity asks{CipherKind::chacha20_poly1305, secret_of(1), std::nullopt};
    Identity answers{CipherKind::chacha20_poly1305, secret_of(2), std::nullopt};
    Buffer said = text_of("what both know");
    Buffer heard = text_of("what both know");

    Handshake asker() { return Handshake::ask(library(), asks, public_of(answers.own), said); }
    Handshake answerer() { return Handshake::answer(library(), answers, heard); }
};

constexpr std::size_t first_length = 5 + Handshake::first_overhead;
constexpr std::size_t second_length = 5 + Handshake::second_overhead;

Buffer first_of(Handshake& asker) {
    Buffer message(first_length);
    EXPECT_EQ(asker.write(secret_of(11), text_of("hello"), message), Fault::none);
    return message;
}
Buffer second_of(Handshake& answerer) {
    Buffer message(second_length);
    EXPECT_EQ(answerer.write(secret_of(12), text_of("there"), message), Fault::none);
    return message;
}
Fault read(Handshake& handshake, const Buffer& message) {
    Buffer payload(5);
    const Fault fault = handshake.read(message, payload);
    EXPECT_EQ(payload == Buffer(5), fault != Fault::none);
    return fault;
}

TEST(Handshake, any_bit_changed_is_a_fault_and_harms_nothing) {
    Pair pair;
    Handshake asker = pair.asker();
    Handshake answerer = pair.answerer();
    const Buffer first = first_of(asker);
    for (std::size_t bit = 0; bit < first.size() * 8; bit += 3) {
        Buffer changed = first;
        changed[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
        // X25519 ignores the last bit of a public key; the transcript does not.
        ASSERT_NE(read(answerer, changed), Fault::none) << "bit " << bit;
    }
    ASSERT_EQ(read(answerer, first), Fault::none);
    const Buffer second = second_of(answerer);
    for (std::size_t bit = 0; bit < second.size() * 8; bit += 3) {
        Buffer changed = second;
        changed[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
        ASSERT_NE(read(asker, changed), Fault::none) << "bit " << bit;
    }
    EXPECT_EQ(read(asker, second), Fault::none);
    EXPECT_TRUE(asker.complete());
    EXPECT_TRUE(answerer.complete());
}

/// Who asks for somebody else, has another shared key, or another view of what both should know.
TEST(Handshake, ends_that_differ_do_not_meet) {
    Pair other_host;
    other_host.answers.own = secret_of(3);
    Handshake asker = Pair().asker();
    Handshake wrong = other_host.answerer();
    EXPECT_EQ(read(wrong, first_of(asker)), Fault::forged);

    Pair other_prologue;
    other_prologue.heard = text_of("something else");
    asker = other_prologue.asker();
    wrong = other_prologue.answerer();
    EXPECT_EQ(read(wrong, first_of(asker)), Fault::forged);

    Pair other_cipher;
    other_cipher.answers.cipher = CipherKind::aes_256_gcm;
    asker = other_cipher.asker();
    wrong = other_cipher.answerer();
    EXPECT_EQ(read(wrong, first_of(asker)), Fault::forged);

    Pair other_shared;
    other_shared.asks.shared = secret_of(21);
    other_shared.answers.shared = secret_of(22);
    asker = other_shared.asker();
    wrong = other_shared.answerer();
    // The pre-shared key is mixed in at the end: who asks finds out.
    ASSERT_EQ(read(wrong, first_of(asker)), Fault::none);
    EXPECT_EQ(read(asker, second_of(wrong)), Fault::forged);
}

TEST(Handshake, messages_have_their_turn_and_length) {
    Pair pair;
    Handshake asker = pair.asker();
    Handshake answerer = pair.answerer();
    ConnectionKeys keys;
    Buffer message(first_length);
    EXPECT_EQ(answerer.write(secret_of(12), text_of("there"), message), Fault::out_of_turn);
    EXPECT_EQ(read(asker, message), Fault::out_of_turn);
    EXPECT_EQ(asker.take_keys(keys), Fault::out_of_turn);
    message.resize(first_length - 1);
    EXPECT_EQ(asker.write(secret_of(11), text_of("hello"), message), Fault::length);
    for (std::size_t length = 0; length < first_length; ++length)
        ASSERT_EQ(read(answerer, Buffer(length)), Fault::length);
    const Buffer first = first_of(asker);
    ASSERT_EQ(read(answerer, first), Fault::none);
    EXPECT_EQ(read(answerer, first), Fault::out_of_turn);
    ASSERT_EQ(read(asker, second_of(answerer)), Fault::none);
    EXPECT_EQ(asker.take_keys(keys), Fault::none);
    EXPECT_EQ(asker.take_keys(keys), Fault::out_of_turn);
}

/// Points whose product does not depend on the private key (RFC 7748, section 6.1).
TEST(Handshake, a_public_key_that_nobody_has_is_refused) {
    Pair pair;
    Handshake answerer = pair.answerer();
    Buffer message(first_length);
    EXPECT_EQ(read(answerer, message), Fault::key);
    message[0] = std::byte{1};
    EXPECT_EQ(read(answerer, message), Fault::key);
    Handshake asker = Handshake::ask(library(), pair.asks, PublicKey{}, pair.said);
    EXPECT_EQ(asker.write(secret_of(11), text_of("hello"), message), Fault::key);
    EXPECT_EQ(message, Buffer(first_length));
}

bool shows(Bytes text, Bytes piece) {
    return std::search(text.begin(), text.end(), piece.begin(), piece.end()) != text.end();
}

/// Who gets at a process's memory later cannot read what was said before.
TEST(Handshake, what_made_the_keys_is_overwritten) {
    Pair pair;
    Handshake asker = pair.asker();
    Handshake answerer = pair.answerer();
    ASSERT_EQ(read(answerer, first_of(asker)), Fault::none);
    ASSERT_EQ(read(asker, second_of(answerer)), Fault::none);
    const auto holds = [&](const Secret& secret) {
        return shows(std::as_bytes(std::span(&asker, 1)), secret.bytes());
    };
    EXPECT_TRUE(holds(secret_of(11)) && holds(pair.asks.own));
    ConnectionKeys keys;
    ASSERT_EQ(asker.take_keys(keys), Fault::none);
    EXPECT_FALSE(holds(secret_of(11)));
    EXPECT_FALSE(holds(pair.asks.own));
}

/// Neither public key, nor the payload, is to be seen in what is sent.
TEST(Handshake, an_observer_sees_no_identity) {
    Pair pair;
    Handshake asker = pair.asker();
    Handshake answerer = pair.answerer();
    Buffer all = first_of(asker);
    ASSERT_EQ(read(answerer, all), Fault::none);
    const Buffer second = second_of(answerer);
    all.insert(all.end(), second.begin(), second.end());
    const PublicKey keys[] = {public_of(pair.asks.own), public_of(pair.answers.own)};
    EXPECT_FALSE(shows(all, Bytes(keys[0]).first(8)));
    EXPECT_FALSE(shows(all, Bytes(keys[1]).first(8)));
    EXPECT_FALSE(shows(all, text_of("hello")));
    EXPECT_FALSE(shows(all, text_of("there")));
}

/// Two who have the same pair, as all of a cluster: one knows what the other one reckons.
TEST(HandshakeOfOnePair, what_is_known_beforehand_changes_no_byte) {
    const Identity plain{CipherKind::aes_256_gcm, secret_of(1), secret_of(2)};
    Identity knows = plain;
    knows.own_public = public_of(plain.own);
    ASSERT_TRUE(library().agree(plain.own, *knows.own_public, knows.with_own.emplace()));
    const Buffer payload = text_of("payload");
    Buffer messages[2][2];
    for (const bool which : {false, true}) {
        Handshake asker =
            Handshake::ask(library(), which ? knows : plain, *knows.own_public, payload);
        Handshake answerer = Handshake::answer(library(), which ? plain : knows, payload);
        Buffer read(payload.size());
        Buffer& first = messages[which][0];
        Buffer& second = messages[which][1];
        first.resize(payload.size() + Handshake::first_overhead);
        second.resize(payload.size() + Handshake::second_overhead);
        ASSERT_EQ(asker.write(secret_of(3), payload, first), Fault::none);
        ASSERT_EQ(answerer.read(first, read), Fault::none);
        ASSERT_EQ(answerer.write(secret_of(4), payload, second), Fault::none);
        ASSERT_EQ(asker.read(second, read), Fault::none);
    }
    EXPECT_EQ(messages[0][0], messages[1][0]);
    EXPECT_EQ(messages[0][1], messages[1][1]);
}

/// A prepared key saves multiplications and changes no byte; where another peer than it was
/// prepared for turns up it is as good.
TEST(Handshake, a_key_prepared_beforehand_changes_no_byte) {
    Pair pair;
    const PublicKey answerer = public_of(pair.answers.own);
    const PublicKey other = public_of(secret_of(77));
    Handshake plain = pair.asker();
    const Buffer expected = first_of(plain);
    for (const PublicKey* peer : {&answerer, &other, static_cast<const PublicKey*>(nullptr)}) {
        Ephemeral ephemeral(secret_of(11));
        ASSERT_TRUE(prepare(library(), peer, ephemeral));
        Handshake asker = pair.asker();
        Buffer message(first_length);
        ASSERT_EQ(asker.write(ephemeral, text_of("hello"), message), Fault::none);
        EXPECT_EQ(message, expected);
        Handshake answerer_end = pair.answerer();
        ASSERT_EQ(read(answerer_end, message), Fault::none);
        EXPECT_EQ(read(asker, second_of(answerer_end)), Fault::none);
    }
    Ephemeral ephemeral(secret_of(11));
    const PublicKey nobodys{};
    EXPECT_FALSE(prepare(library(), &nobodys, ephemeral));
    EXPECT_FALSE(ephemeral.with_peer) << "nobody has that key";
}

}  // namespace
}  // namespace via::secure::handshake_test
