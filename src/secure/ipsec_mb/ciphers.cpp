#include "secure/ipsec_mb/ciphers.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "secure/nonce.hpp"
#include "secure/pieces.hpp"

namespace via::secure::ipsec_mb {

#if VIA_HAS_IPSEC_MB

namespace {

using Tag = std::array<std::byte, tag_length>;

const unsigned char* as_chars(Bytes bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* as_chars(Room room) { return reinterpret_cast<unsigned char*>(room.data()); }

/// The one piece that is not empty; nullptr: there are more.
const Bytes* only_piece(Pieces pieces) {
    static constexpr Bytes nothing;
    const Bytes* only = &nothing;
    for (const Bytes& piece : pieces) {
        if (piece.empty()) continue;
        if (!only->empty()) return nullptr;
        only = &piece;
    }
    return only;
}

/// AES-256-GCM: the key's schedule, and what is on its way through the cipher.
class Gcm {
public:
    Gcm(const Functions& library, const Secret& key) : library_(library) {
        library_.gcm_key(key.bytes().data(), &key_);
    }
    Gcm(const Gcm&) = delete;
    Gcm& operator=(const Gcm&) = delete;
    ~Gcm() {
        erase(std::as_writable_bytes(std::span(&key_, 1)));
        erase(std::as_writable_bytes(std::span(&text_, 1)));
    }

    void seal(std::uint64_t number, Bytes associated, Pieces plain, Room sealed) {
        const Nonce nonce = nonce_of(CipherKind::aes_256_gcm, number);
        const Room tag = sealed.last(tag_length);
        const Room to = sealed.first(sealed.size() - tag_length);
        if (const Bytes* const piece = only_piece(plain)) {
            VIA_ASSERT(piece->size() == to.size());
            library_.gcm_seal(&key_, &text_, as_chars(to), as_chars(*piece), to.size(),
                              nonce.data(), as_chars(associated), associated.size(), as_chars(tag),
                              tag_length);
            return;
        }
        library_.gcm_begin(&key_, &text_, nonce.data(), as_chars(associated), associated.size());
        seal_pieces(plain, to, [&](Room room, Bytes piece) {
            library_.gcm_seal_more(&key_, &text_, as_chars(room), as_chars(piece), piece.size());
            return true;
        });
        library_.gcm_seal_end(&key_, &text_, as_chars(tag), tag_length);
    }

    void open(std::uint64_t number, Bytes associated, Bytes sealed, Room plain, Tag& tag) {
        const Nonce nonce = nonce_of(CipherKind::aes_256_gcm, number);
        library_.gcm_open(&key_, &text_, as_chars(plain), as_chars(sealed), plain.size(),
                          nonce.data(), as_chars(associated), associated.size(),
                          as_chars(Room(tag)), tag_length);
    }

private:
    const Functions& library_;
    gcm_key_data key_{};
    gcm_context_data text_{};
};

class Chacha {
public:
    Chacha(const Functions& library, const Secret& key) : library_(library), key_(key) {}
    Chacha(const Chacha&) = delete;
    Chacha& operator=(const Chacha&) = delete;
    ~Chacha() { erase(std::as_writable_bytes(std::span(&text_, 1))); }

    void seal(std::uint64_t number, Bytes associated, Pieces plain, Room sealed) {
        const Room tag = sealed.last(tag_length);
        begin(number, associated);
        seal_pieces(plain, sealed.first(sealed.size() - tag_length), [&](Room room, Bytes piece) {
            library_.chacha_seal_more(key_.bytes().data(), &text_, room.data(), piece.data(),
                                      piece.size());
            return true;
        });
        library_.chacha_end(&text_, tag.data(), tag_length);
    }

    void open(std::uint64_t number, Bytes associated, Bytes sealed, Room plain, Tag& tag) {
        begin(number, associated);
        if (!plain.empty())
            library_.chacha_open_more(key_.bytes().data(), &text_, plain.data(), sealed.data(),
                                      plain.size());
        library_.chacha_end(&text_, tag.data(), tag_length);
    }

private:
    void begin(std::uint64_t number, Bytes associated) {
        const Nonce nonce = nonce_of(CipherKind::chacha20_poly1305, number);
        library_.chacha_begin(key_.bytes().data(), &text_, nonce.data(), associated.data(),
                              associated.size());
    }

    const Functions& library_;
    Secret key_;
    chacha20_poly1305_context_data text_{};
};

template <class Cipher>
class IpsecMbSealer final : public Sealer {
public:
    IpsecMbSealer(const Functions& library, const Secret& key) : cipher_(library, key) {}

    bool seal(std::uint64_t number, Bytes associated, Pieces plain, Room sealed) override {
        cipher_.seal(number, associated, plain, sealed);
        return true;
    }

private:
    Cipher cipher_;
};

template <class Cipher>
class IpsecMbOpener final : public Opener {
public:
    IpsecMbOpener(const Functions& library, const Secret& key) : cipher_(library, key) {}

    bool open(std::uint64_t number, Bytes associated, Bytes sealed, Room plain) override {
        VIA_ASSERT(sealed.size() == plain.size() + tag_length);
        Tag expected;
        cipher_.open(number, associated, sealed, plain, expected);
        const bool good = is_same(expected, sealed.last(tag_length));
        // What it is for a forged packet is nobody's to know.
        erase(expected);
        if (!good) erase(plain);
        return good;
    }

private:
    Cipher cipher_;
};

}  // namespace

bool has(const Functions& library, CipherKind kind) {
    return kind == CipherKind::aes_256_gcm || library.has_fast_chacha;
}

std::unique_ptr<Sealer> make_sealer(const Functions& library, CipherKind kind, const Secret& key) {
    if (kind == CipherKind::aes_256_gcm) return std::make_unique<IpsecMbSealer<Gcm>>(library, key);
    return std::make_unique<IpsecMbSealer<Chacha>>(library, key);
}

std::unique_ptr<Opener> make_opener(const Functions& library, CipherKind kind, const Secret& key) {
    if (kind == CipherKind::aes_256_gcm) return std::make_unique<IpsecMbOpener<Gcm>>(library, key);
    return std::make_unique<IpsecMbOpener<Chacha>>(library, key);
}

#else

bool has(const Functions&, CipherKind) { return false; }
std::unique_ptr<Sealer> make_sealer(const Functions&, CipherKind, const Secret&) { return nullptr; }
std::unique_ptr<Opener> make_opener(const Functions&, CipherKind, const Secret&) { return nullptr; }

#endif

}  // namespace via::secure::ipsec_mb
