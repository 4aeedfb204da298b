#include "secure/libcrypto/libcrypto.hpp"

#include "secure/libcrypto/ciphers.hpp"
#include "secure/libcrypto/functions.hpp"

namespace via::secure {
namespace {

using libcrypto::Functions;

const unsigned char* chars_of(Bytes bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* chars_of(Room room) { return reinterpret_cast<unsigned char*>(room.data()); }

template <class T>
using Owned = std::unique_ptr<T, void (*)(T*)>;

class Libcrypto final : public Crypto {
public:
    explicit Libcrypto(const Functions& library)
        : library_(library), digest_(library.EVP_MD_CTX_new(), library.EVP_MD_CTX_free) {}

    bool public_key(const Secret& own, PublicKey& key) override {
        const auto pair = private_key(own);
        std::size_t length = key.size();
        return pair &&
               library_.EVP_PKEY_get_raw_public_key(pair.get(), chars_of(Room(key)), &length) == 1;
    }

    bool agree(const Secret& own, const PublicKey& peer, Secret& shared) override {
        const auto pair = private_key(own);
        const Owned<EVP_PKEY> other(
            library_.EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, chars_of(Bytes(peer)),
                                                 peer.size()),
            library_.EVP_PKEY_free);
        if (!pair || !other) return false;
        const Owned<EVP_PKEY_CTX> context(library_.EVP_PKEY_CTX_new(pair.get(), nullptr),
                                          library_.EVP_PKEY_CTX_free);
        std::size_t length = key_length;
        // It refuses what gives nothing but zeros.
        return context && library_.EVP_PKEY_derive_init(context.get()) == 1 &&
               library_.EVP_PKEY_derive_set_peer(context.get(), other.get()) == 1 &&
               library_.EVP_PKEY_derive(context.get(), chars_of(Room(shared.room())), &length) == 1;
    }

    bool hash(Bytes first, Bytes second, Hash& hash) override {
        return digest_ &&
               library_.EVP_DigestInit_ex(digest_.get(), library_.sha256, nullptr) == 1 &&
               library_.EVP_DigestUpdate(digest_.get(), first.data(), first.size()) == 1 &&
               library_.EVP_DigestUpdate(digest_.get(), second.data(), second.size()) == 1 &&
               library_.EVP_DigestFinal_ex(digest_.get(), chars_of(Room(hash.room())), nullptr) ==
                   1;
    }

    std::unique_ptr<Sealer> sealer(CipherKind kind, const Secret& key) override {
        return libcrypto::make_sealer(library_, kind, key);
    }
    std::unique_ptr<Opener> opener(CipherKind kind, const Secret& key) override {
        return libcrypto::make_opener(library_, kind, key);
    }

private:
    Owned<EVP_PKEY> private_key(const Secret& own) {
        return {library_.EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr,
                                                      chars_of(Bytes(own.bytes())), key_length),
                library_.EVP_PKEY_free};
    }

    const Functions& library_;
    Owned<EVP_MD_CTX> digest_;
};

}  // namespace

std::expected<std::unique_ptr<Crypto>, std::string> load_libcrypto() {
    const auto& library = libcrypto::functions();
    if (!library) return std::unexpected(library.error());
    return std::make_unique<Libcrypto>(*library);
}

}  // namespace via::secure
