#include "secure/ipsec_mb/ipsec_mb.hpp"

#include <utility>

#include "secure/ipsec_mb/ciphers.hpp"
#include "secure/ipsec_mb/functions.hpp"

namespace via::secure {
namespace {

using ipsec_mb::Functions;

class IpsecMb final : public Crypto {
public:
    IpsecMb(const Functions& library, std::unique_ptr<Crypto> other)
        : library_(library), other_(std::move(other)) {}

    bool public_key(const Secret& own, PublicKey& key) override {
        return other_->public_key(own, key);
    }
    bool agree(const Secret& own, const PublicKey& peer, Secret& shared) override {
        return other_->agree(own, peer, shared);
    }
    bool hash(Bytes first, Bytes second, Hash& hash) override {
        return other_->hash(first, second, hash);
    }
    std::unique_ptr<Sealer> sealer(CipherKind kind, const Secret& key) override {
        return ipsec_mb::has(library_, kind) ? ipsec_mb::make_sealer(library_, kind, key)
                                             : other_->sealer(kind, key);
    }
    std::unique_ptr<Opener> opener(CipherKind kind, const Secret& key) override {
        return ipsec_mb::has(library_, kind) ? ipsec_mb::make_opener(library_, kind, key)
                                             : other_->opener(kind, key);
    }

private:
    const Functions& library_;
    std::unique_ptr<Crypto> other_;
};

}  // namespace

std::unique_ptr<Crypto> with_ipsec_mb(std::unique_ptr<Crypto> other) {
    const auto& library = ipsec_mb::functions();
    if (!library) return other;
    return std::make_unique<IpsecMb>(*library, std::move(other));
}

std::expected<std::string, std::string> ipsec_mb_name() {
    const auto& library = ipsec_mb::functions();
    if (!library) return std::unexpected(library.error());
    return library->name;
}

}  // namespace via::secure
