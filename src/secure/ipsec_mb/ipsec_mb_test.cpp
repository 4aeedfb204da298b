#include "secure/ipsec_mb/ipsec_mb.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "secure/libcrypto/noise_vectors.hpp"
#include "secure/libcrypto/secure_test_support.hpp"

namespace via::secure::ipsec_mb_test {
namespace {

/// What is freed while this is a key must not hold it.
const Secret* never_freed = nullptr;
int keys_freed = 0;

void look_for_key(const void* memory, std::size_t length) {
    if (never_freed == nullptr) return;
    const auto key = never_freed->bytes();
    if (memmem(memory, length, key.data(), key.size() / 2) != nullptr) ++keys_freed;
}

using test::Buffer;
using test::from_digits;
using test::library;
using test::secret_of;
using test::text_of;

constexpr CipherKind both[] = {CipherKind::chacha20_poly1305, CipherKind::aes_256_gcm};

struct IpsecMb : testing::Test {
    void SetUp() override {
        if (const auto name = ipsec_mb_name(); !name)
            GTEST_SKIP() << "ipsec-mb is not there: " << name.error();
    }

    std::unique_ptr<Crypto> fast = with_ipsec_mb(load_libcrypto().value());
    Random random{1};

    Buffer some(std::size_t length) {
        Buffer bytes(length);
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
        return bytes;
    }
};

/// Messages of another implementation, under keys that its handshake gave.
TEST_F(IpsecMb, vectors_of_noise) {
    for (const noise_vectors::Vector& vector : noise_vectors::all) {
        Identity asks{vector.cipher, secret_of(noise_vectors::asker_static), std::nullopt};
        Identity answers{vector.cipher, secret_of(noise_vectors::answerer_static), std::nullopt};
        if (vector.shared != nullptr) asks.shared = answers.shared = secret_of(vector.shared);
        const Buffer prologue = from_digits(noise_vectors::prologue);
        Handshake asker = Handshake::ask(*fast, asks, test::public_of(answers.own), prologue);
        Handshake answerer = Handshake::answer(*fast, answers, prologue);
        const auto pass = [&](Handshake& from, Handshake& to, const char* ephemeral, int n) {
            const Buffer payload = from_digits(vector.messages[n].payload);
            const Buffer expected = from_digits(vector.messages[n].ciphertext);
            Buffer message(expected.size());
            Buffer read(payload.size());
            ASSERT_EQ(from.write(secret_of(ephemeral), payload, message), Fault::none);
            EXPECT_EQ(message, expected) << vector.name << " message " << n;
            ASSERT_EQ(to.read(message, read), Fault::none);
            EXPECT_EQ(read, payload);
        };
        pass(asker, answerer, noise_vectors::asker_ephemeral, 0);
        pass(answerer, asker, noise_vectors::answerer_ephemeral, 1);
        ConnectionKeys keys;
        ASSERT_EQ(asker.take_keys(keys), Fault::none);
        for (std::size_t n = 2; n < std::size(vector.messages); ++n) {
            const Buffer payload = from_digits(vector.messages[n].payload);
            Buffer sealed(payload.size() + tag_length);
            const Secret& key = n % 2 == 0 ? keys.from_asker : keys.from_answerer;
            ASSERT_TRUE(fast->sealer(vector.cipher, key)->seal(n / 2 - 1, {}, payload, sealed));
            EXPECT_EQ(sealed, from_digits(vector.messages[n].ciphertext))
                << vector.name << " message " << n;
        }
    }
}

/// In however many pieces a text lies, and whatever of it is authenticated alone.
TEST_F(IpsecMb, both_libraries_open_what_the_other_sealed) {
    for (const CipherKind kind : both) {
        const auto sealer = fast->sealer(kind, secret_of(1));
        const auto opener = fast->opener(kind, secret_of(1));
        const auto other_sealer = library().sealer(kind, secret_of(1));
        const auto other_opener = library().opener(kind, secret_of(1));
        for (std::uint64_t n = 0; n < 1500; ++n) {
            const std::size_t length = n < 300 ? n : random.below(n < 1000 ? 1500 : 70'000);
            const Buffer text = some(length);
            const Buffer associated = some(random.below(2) * 16 + random.below(3));
            std::vector<Bytes> pieces;
            for (Bytes rest = text; !rest.empty() && pieces.size() < 4;) {
                const std::size_t size =
                    pieces.size() == 3 ? rest.size() : random.below(rest.size() + 1);
                pieces.push_back(rest.first(size));
                rest = rest.subspan(size);
            }
            const std::uint64_t number = random.next();
            Buffer sealed(length + tag_length);
            Buffer expected(length + tag_length);
            ASSERT_TRUE(sealer->seal(number, associated, Pieces(pieces), sealed));
            ASSERT_TRUE(other_sealer->seal(number, associated, text, expected));
            ASSERT_EQ(sealed, expected) << n << " in " << pieces.size() << " pieces";
            ASSERT_TRUE(sealer->seal(number, associated, text, sealed));
            ASSERT_EQ(sealed, expected) << n << " in one piece";
            Buffer opened(length);
            ASSERT_TRUE(opener->open(number, associated, expected, opened));
            ASSERT_EQ(opened, text);
            ASSERT_TRUE(other_opener->open(number, associated, sealed, opened));
        }
    }
}

TEST_F(IpsecMb, seals_in_place_and_opens_in_place) {
    for (const CipherKind kind : both) {
        const auto sealer = fast->sealer(kind, secret_of(1));
        const auto opener = fast->opener(kind, secret_of(1));
        for (const std::size_t length : {0U, 1U, 15U, 16U, 17U, 1400U, 65000U}) {
            Buffer bytes(length + tag_length, std::byte{7});
            const Room plain = std::span(bytes).first(length);
            ASSERT_TRUE(sealer->seal(length, text_of("header"), plain, bytes));
            ASSERT_TRUE(opener->open(length, text_of("header"), bytes, plain));
            EXPECT_EQ(Buffer(plain.begin(), plain.end()), Buffer(length, std::byte{7}));
        }
    }
}

TEST_F(IpsecMb, what_was_changed_is_not_opened_and_leaves_zeros) {
    for (const CipherKind kind : both) {
        const auto sealer = fast->sealer(kind, secret_of(1));
        const auto opener = fast->opener(kind, secret_of(1));
        const Buffer text = some(100);
        const Buffer header = text_of("header");
        Buffer sealed(text.size() + tag_length);
        ASSERT_TRUE(sealer->seal(5, header, text, sealed));
        const auto opens = [&](std::uint64_t number, const Buffer& associated) {
            Buffer opened(text.size(), std::byte{1});
            const bool good = opener->open(number, associated, sealed, opened);
            EXPECT_EQ(opened, good ? text : Buffer(text.size()));
            return good;
        };
        ASSERT_TRUE(opens(5, header));
        for (std::size_t bit = 0; bit < sealed.size() * 8; ++bit) {
            sealed[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
            ASSERT_FALSE(opens(5, header)) << bit;
            sealed[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
        }
        EXPECT_FALSE(opens(4, header));
        EXPECT_FALSE(opens(5, text_of("Header")));
        EXPECT_FALSE(opens(5, {}));
        EXPECT_TRUE(opens(5, header));
    }
}

/// Programs may write to what they send: the packet is then one or the other, and genuine.
TEST_F(IpsecMb, each_byte_of_a_text_is_read_once) {
    for (const CipherKind kind : both) {
        const auto sealer = fast->sealer(kind, secret_of(1));
        const auto opener = fast->opener(kind, secret_of(1));
        std::array<std::atomic<std::uint64_t>, 180> text{};
        std::atomic<bool> ends = false;
        std::atomic<std::uint64_t> written = 0;
        std::thread writer([&] {
            for (std::uint64_t value = 1; !ends; ++value) {
                for (auto& word : text) word.store(value, std::memory_order_relaxed);
                written = value;
            }
        });
        const Buffer front = some(41);
        const Bytes pieces[] = {front, std::as_bytes(std::span(text)), Bytes(front).first(3)};
        const std::size_t length = front.size() + sizeof text + 3;
        Buffer sealed(length + tag_length);
        Buffer opened(length);
        while (written == 0) std::this_thread::yield();
        for (std::uint64_t n = 0; n < 10'000; ++n) {
            EXPECT_TRUE(sealer->seal(n, {}, Pieces(pieces), sealed));
            EXPECT_TRUE(opener->open(n, {}, sealed, opened)) << n;
            EXPECT_TRUE(sealer->seal(n, {}, pieces[1], std::span(sealed).first(sizeof text + 16)));
            EXPECT_TRUE(opener->open(n, {}, Bytes(sealed).first(sizeof text + 16),
                                     std::span(opened).first(sizeof text)));
            if (HasFailure()) break;
        }
        ends = true;
        writer.join();
    }
}

TEST_F(IpsecMb, keys_are_overwritten_when_they_go) {
    for (const CipherKind kind : both) {
        const Secret key = secret_of(77);
        auto sealer = fast->sealer(kind, key);
        auto opener = fast->opener(kind, key);
        never_freed = &key;
        keys_freed = 0;
        sealer.reset();
        opener.reset();
        never_freed = nullptr;
        EXPECT_EQ(keys_freed, 0);
        // The look itself finds keys.
        Buffer copy(key.bytes().begin(), key.bytes().end());
        never_freed = &key;
        look_for_key(copy.data(), copy.size());
        never_freed = nullptr;
        EXPECT_EQ(keys_freed, 1);
    }
}

TEST(WithoutIpsecMb, all_is_as_before) {
    // Where it is not there the other one does it; whether it is, the name and the reason say.
    const auto name = ipsec_mb_name();
    EXPECT_FALSE((name ? *name : name.error()).empty());
    const auto crypto = with_ipsec_mb(load_libcrypto().value());
    PublicKey key{};
    PublicKey expected{};
    ASSERT_TRUE(crypto->public_key(secret_of(3), key));
    ASSERT_TRUE(library().public_key(secret_of(3), expected));
    EXPECT_EQ(key, expected);
}

}  // namespace

void note_freed(const void* memory, std::size_t length) { look_for_key(memory, length); }

}  // namespace via::secure::ipsec_mb_test

// Every object that knows its size is looked at when it is freed.
void* operator new(std::size_t size) {
    if (void* const memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    const auto to = static_cast<std::size_t>(alignment);
    if (void* const memory = std::aligned_alloc(to, (size + to - 1) / to * to)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t size) noexcept {
    via::secure::ipsec_mb_test::note_freed(memory, size);
    std::free(memory);
}
void operator delete(void* memory, std::size_t size, std::align_val_t) noexcept {
    via::secure::ipsec_mb_test::note_freed(memory, size);
    std::free(memory);
}
