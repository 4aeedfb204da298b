// The functions of libcrypto that we call, with the types of OpenSSL's own headers.
#pragma once

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <expected>
#include <string>

namespace via::secure::libcrypto {

#define VIA_LIBCRYPTO_FUNCTIONS(each)                                                      \
    each(EVP_CIPHER_CTX_new) each(EVP_CIPHER_CTX_free) each(EVP_CIPHER_CTX_ctrl)           \
        each(EVP_CIPHER_fetch) each(EVP_EncryptInit_ex) each(EVP_EncryptUpdate)            \
            each(EVP_EncryptFinal_ex) each(EVP_DecryptInit_ex) each(EVP_DecryptUpdate)     \
                each(EVP_DecryptFinal_ex) each(EVP_MD_fetch) each(EVP_MD_CTX_new)          \
                    each(EVP_MD_CTX_free) each(EVP_DigestInit_ex) each(EVP_DigestUpdate)   \
                        each(EVP_DigestFinal_ex) each(EVP_PKEY_new_raw_private_key)        \
                            each(EVP_PKEY_get_raw_public_key) each(EVP_PKEY_free)          \
                                each(EVP_PKEY_CTX_new) each(EVP_PKEY_CTX_new_from_name)    \
                                    each(EVP_PKEY_fromdata_init) each(EVP_PKEY_fromdata)   \
                                        each(EVP_PKEY_CTX_free) each(EVP_PKEY_derive_init) \
                                            each(EVP_PKEY_derive_set_peer_ex)              \
                                                each(EVP_PKEY_derive)

struct Functions {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name takes none
#define VIA_LIBCRYPTO_MEMBER(name) decltype(&::name) name = nullptr;
    VIA_LIBCRYPTO_FUNCTIONS(VIA_LIBCRYPTO_MEMBER)
#undef VIA_LIBCRYPTO_MEMBER
    /// Once for all: to look them up takes longer than to use them.
    EVP_CIPHER* chacha20_poly1305 = nullptr;
    EVP_CIPHER* aes_256_gcm = nullptr;
    EVP_MD* sha256 = nullptr;
};

/// For good. Else: what is missing.
const std::expected<Functions, std::string>& functions();

}  // namespace via::secure::libcrypto
