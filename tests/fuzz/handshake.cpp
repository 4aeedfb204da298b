// A stranger's handshake: messages at random, and true ones that were changed or come again. The
// only message that is taken is the true one, and a refused one harms nothing. Libcrypto is real.
#include <algorithm>
#include <vector>

#include "input.hpp"
#include "secure/handshake.hpp"
#include "secure/libcrypto/libcrypto.hpp"

using namespace via::secure;

namespace {

using Buffer = std::vector<std::byte>;

Crypto& library() {
    static const auto loaded = load_libcrypto();
    fuzz::require(loaded.has_value(), "libcrypto can be loaded");
    return **loaded;
}

Secret secret_of(std::byte seed) {
    Secret secret;
    std::ranges::fill(secret.room(), seed);
    return secret;
}

/// The true message, or what the input makes of it, to `to` until the true one is taken.
void offer(fuzz::Input& input, Handshake& to, const Buffer& genuine, std::size_t overhead) {
    for (int tries = input.byte() % 4; tries != 0; --tries) {
        Buffer message = genuine;
        if (input.byte() % 2 == 0) {
            const auto random = std::as_bytes(input.bytes(input.byte()));
            message.assign(random.begin(), random.end());
        } else {
            message[input.byte() % message.size()] ^= static_cast<std::byte>(input.byte());
        }
        if (message == genuine) continue;
        Buffer payload(message.size() < overhead ? 0 : message.size() - overhead, std::byte{1});
        fuzz::require(to.read(message, payload) != Fault::none, "a forged message is refused");
    }
    Buffer payload(genuine.size() - overhead);
    fuzz::require(to.read(genuine, payload) == Fault::none, "the true message is taken");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::uint8_t how = input.byte();
    Identity asks{how % 2 == 0 ? CipherKind::aes_256_gcm : CipherKind::chacha20_poly1305,
                  secret_of(std::byte{1}), std::nullopt};
    if (how % 4 >= 2) asks.shared = secret_of(std::byte{9});
    Identity answers = asks;
    answers.own = secret_of(std::byte{2});
    PublicKey key{};
    fuzz::require(library().public_key(answers.own, key), "libcrypto has memory");
    const auto prologue = std::as_bytes(input.bytes(input.byte() % 32));
    Handshake asker = Handshake::ask(library(), asks, key, prologue);
    Handshake answerer = Handshake::answer(library(), answers, prologue);

    const auto payload = std::as_bytes(input.bytes(input.byte()));
    Buffer first(payload.size() + Handshake::first_overhead);
    fuzz::require(asker.write(secret_of(std::byte{3}), payload, first) == Fault::none, "it asks");
    offer(input, answerer, first, Handshake::first_overhead);
    Buffer second(payload.size() + Handshake::second_overhead);
    fuzz::require(answerer.write(secret_of(std::byte{4}), payload, second) == Fault::none,
                  "it answers");
    offer(input, asker, second, Handshake::second_overhead);

    ConnectionKeys keys;
    ConnectionKeys same;
    fuzz::require(asker.take_keys(keys) == Fault::none && answerer.take_keys(same) == Fault::none &&
                      std::ranges::equal(keys.from_asker.bytes(), same.from_asker.bytes()) &&
                      std::ranges::equal(keys.from_answerer.bytes(), same.from_answerer.bytes()),
                  "both ends have the same keys");
    return 0;
}
