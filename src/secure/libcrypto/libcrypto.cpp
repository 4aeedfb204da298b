#include "secure/libcrypto/libcrypto.hpp"

#include <initializer_list>

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
        : library_(library),
          digest_(library.EVP_MD_CTX_new(), library.EVP_MD_CTX_free),
          pairs_(library.EVP_PKEY_CTX_new_from_name(nullptr, "X25519", nullptr),
                 library.EVP_PKEY_CTX_free) {
        if (pairs_ && library.EVP_PKEY_fromdata_init(pairs_.get()) != 1) pairs_.reset();
    }

    bool public_key(const Secret& own, PublicKey& key) override {
        const auto pair = private_key(own);
        std::size_t length = key.size();
        return pair &&
               library_.EVP_PKEY_get_raw_public_key(pair.get(), chars_of(Room(key)), &length) == 1;
    }

    bool agree(const Secret& own, const PublicKey& peer, Secret& shared) override {
        Secret key = own;
        PublicKey half = peer;
        // Of a private key alone the library makes the public one, which takes as long as to agree.
        // It has no part in that, so any will do.
        PublicKey any{};
        const auto pair = key_of({part(OSSL_PKEY_PARAM_PUB_KEY, any),
                                  part(OSSL_PKEY_PARAM_PRIV_KEY, key.room()), OSSL_PARAM_END},
                                 EVP_PKEY_KEYPAIR);
        const auto other =
            key_of({part(OSSL_PKEY_PARAM_PUB_KEY, half), OSSL_PARAM_END}, EVP_PKEY_PUBLIC_KEY);
        if (!pair || !other) return false;
        const Owned<EVP_PKEY_CTX> context(library_.EVP_PKEY_CTX_new(pair.get(), nullptr),
                                          library_.EVP_PKEY_CTX_free);
        std::size_t length = key_length;
        // The other one's is not looked at beforehand (0): of X25519 there is nothing to be seen.
        // It refuses what gives nothing but zeros.
        return context && library_.EVP_PKEY_derive_init(context.get()) == 1 &&
               library_.EVP_PKEY_derive_set_peer_ex(context.get(), other.get(), 0) == 1 &&
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

    static OSSL_PARAM part(const char* name, Room bytes) {
        return OSSL_PARAM_octet_string(name, bytes.data(), bytes.size());
    }
    /// Of the halves that are there.
    Owned<EVP_PKEY> key_of(std::initializer_list<OSSL_PARAM> parts, int selection) {
        EVP_PKEY* made = nullptr;
        if (!pairs_ || library_.EVP_PKEY_fromdata(pairs_.get(), &made, selection,
                                                  const_cast<OSSL_PARAM*>(parts.begin())) != 1)
            made = nullptr;
        return {made, library_.EVP_PKEY_free};
    }

    const Functions& library_;
    Owned<EVP_MD_CTX> digest_;
    Owned<EVP_PKEY_CTX> pairs_;  ///< makes keys of their halves
};

}  // namespace

std::expected<std::unique_ptr<Crypto>, std::string> load_libcrypto() {
    const auto& library = libcrypto::functions();
    if (!library) return std::unexpected(library.error());
    return std::make_unique<Libcrypto>(*library);
}

}  // namespace via::secure
