#include "secure/libcrypto/ciphers.hpp"

#include <cstring>
#include <limits>

#include "base/assert.hpp"
#include "secure/nonce.hpp"
#include "secure/pieces.hpp"

namespace via::secure::libcrypto {
namespace {

const unsigned char* as_chars(Bytes bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* as_chars(Room room) { return reinterpret_cast<unsigned char*>(room.data()); }
int as_int(std::size_t length) {
    VIA_ASSERT(length <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
    return static_cast<int>(length);
}

/// What both directions have: the context with its key, and how the cipher writes numbers.
class Context {
public:
    Context(const Functions& library, CipherKind kind)
        : library_(&library), kind_(kind), context_(library.EVP_CIPHER_CTX_new()) {}
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    ~Context() { library_->EVP_CIPHER_CTX_free(context_); }

    const Functions& library() const { return *library_; }
    EVP_CIPHER_CTX* get() const { return context_; }
    const EVP_CIPHER* cipher() const {
        return kind_ == CipherKind::aes_256_gcm ? library_->aes_256_gcm
                                                : library_->chacha20_poly1305;
    }
    Nonce nonce(std::uint64_t number) const { return nonce_of(kind_, number); }

private:
    const Functions* library_;
    CipherKind kind_;
    EVP_CIPHER_CTX* context_;
};

class LibcryptoSealer final : public Sealer {
public:
    LibcryptoSealer(const Functions& library, CipherKind kind) : context_(library, kind) {}

    bool begin(const Secret& key) {
        return context_.get() != nullptr &&
               context_.library().EVP_EncryptInit_ex(context_.get(), context_.cipher(), nullptr,
                                                     as_chars(Bytes(key.bytes())), nullptr) == 1;
    }

    bool seal(std::uint64_t number, Bytes associated, Pieces plain, Room sealed) override {
        const Functions& library = context_.library();
        EVP_CIPHER_CTX* const context = context_.get();
        const Nonce nonce = context_.nonce(number);
        const Room tag = sealed.last(tag_length);
        int length = 0;
        return library.EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
               (associated.empty() ||
                library.EVP_EncryptUpdate(context, nullptr, &length, as_chars(associated),
                                          as_int(associated.size())) == 1) &&
               encrypt(plain, sealed.first(sealed.size() - tag_length)) &&
               library.EVP_EncryptFinal_ex(context, as_chars(tag), &length) == 1 &&
               library.EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, as_int(tag_length),
                                           tag.data()) == 1;
    }

private:
    bool encrypt(Pieces plain, Room to) {
        return seal_pieces(plain, to, [&](Room room, Bytes piece) {
            int length = 0;
            return context_.library().EVP_EncryptUpdate(context_.get(), as_chars(room), &length,
                                                        as_chars(piece), as_int(piece.size())) == 1;
        });
    }

    Context context_;
};

class LibcryptoOpener final : public Opener {
public:
    LibcryptoOpener(const Functions& library, CipherKind kind) : context_(library, kind) {}

    bool begin(const Secret& key) {
        return context_.get() != nullptr &&
               context_.library().EVP_DecryptInit_ex(context_.get(), context_.cipher(), nullptr,
                                                     as_chars(Bytes(key.bytes())), nullptr) == 1;
    }

    bool open(std::uint64_t number, Bytes associated, Bytes sealed, Room plain) override {
        VIA_ASSERT(sealed.size() == plain.size() + tag_length);
        if (decrypt(number, associated, sealed, plain)) return true;
        erase(plain);
        return false;
    }

private:
    bool decrypt(std::uint64_t number, Bytes associated, Bytes sealed, Room plain) {
        const Functions& library = context_.library();
        EVP_CIPHER_CTX* const context = context_.get();
        const Nonce nonce = context_.nonce(number);
        std::array<std::byte, tag_length> tag;
        std::memcpy(tag.data(), sealed.last(tag_length).data(), tag_length);
        int length = 0;
        unsigned char nothing = 0;  // what is left at the end
        return library.EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
               library.EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, as_int(tag_length),
                                           tag.data()) == 1 &&
               (associated.empty() ||
                library.EVP_DecryptUpdate(context, nullptr, &length, as_chars(associated),
                                          as_int(associated.size())) == 1) &&
               (plain.empty() ||
                library.EVP_DecryptUpdate(context, as_chars(plain), &length, as_chars(sealed),
                                          as_int(plain.size())) == 1) &&
               library.EVP_DecryptFinal_ex(context, &nothing, &length) == 1;
    }

    Context context_;
};

}  // namespace

std::unique_ptr<Sealer> make_sealer(const Functions& library, CipherKind kind, const Secret& key) {
    auto sealer = std::make_unique<LibcryptoSealer>(library, kind);
    if (!sealer->begin(key)) return nullptr;
    return sealer;
}

std::unique_ptr<Opener> make_opener(const Functions& library, CipherKind kind, const Secret& key) {
    auto opener = std::make_unique<LibcryptoOpener>(library, kind);
    if (!opener->begin(key)) return nullptr;
    return opener;
}

}  // namespace via::secure::libcrypto
