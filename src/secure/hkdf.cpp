#include "secure/hkdf.hpp"

#include <algorithm>
#include <vector>

#include "base/assert.hpp"

namespace via::secure {
namespace {

constexpr std::size_t hash_block = 64;
constexpr std::size_t outputs_max = 3;

/// The key's block, each byte combined with `pad`; erased when it goes.
class PaddedKey {
public:
    PaddedKey(const Secret& key, std::byte pad) {
        bytes_.fill(pad);
        for (std::size_t n = 0; n < key_length; ++n) bytes_[n] ^= key.bytes()[n];
    }
    PaddedKey(const PaddedKey&) = delete;
    PaddedKey& operator=(const PaddedKey&) = delete;
    ~PaddedKey() { erase(bytes_); }
    Bytes bytes() const { return bytes_; }

private:
    std::array<std::byte, hash_block> bytes_;
};

}  // namespace

bool hmac(Crypto& crypto, const Secret& key, Bytes first, Bytes second, Hash& result) {
    const PaddedKey inner(key, std::byte{0x36});
    const PaddedKey outer(key, std::byte{0x5C});
    std::vector<std::byte> text(first.begin(), first.end());
    text.insert(text.end(), second.begin(), second.end());
    Hash sum;
    const bool done =
        crypto.hash(inner.bytes(), text, sum) && crypto.hash(outer.bytes(), sum.bytes(), result);
    erase(text);
    return done;
}

bool hkdf(Crypto& crypto, const Secret& chain, Bytes input, std::span<Secret* const> outputs) {
    VIA_ASSERT(outputs.size() <= outputs_max);
    Secret key;
    if (!hmac(crypto, chain, input, {}, key)) return false;
    Secret latest;
    std::byte number{1};
    for (Secret* const output : outputs) {
        const Bytes before = number == std::byte{1} ? Bytes{} : Bytes(latest.bytes());
        if (!hmac(crypto, key, before, {&number, 1}, latest)) return false;
        *output = latest;
        number = static_cast<std::byte>(std::to_integer<int>(number) + 1);
    }
    return true;
}

}  // namespace via::secure
