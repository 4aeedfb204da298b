// The functions of Intel's ipsec-mb that we call, with the types of its own header.
#pragma once

#if defined(__x86_64__) && __has_include(<intel-ipsec-mb.h>)
#define VIA_HAS_IPSEC_MB 1
#include <intel-ipsec-mb.h>
#else
#define VIA_HAS_IPSEC_MB 0
#endif

#include <expected>
#include <string>

namespace via::secure::ipsec_mb {

#if VIA_HAS_IPSEC_MB
struct Functions {
    aes_gcm_pre_t gcm_key = nullptr;
    aes_gcm_enc_dec_t gcm_seal = nullptr;
    aes_gcm_enc_dec_t gcm_open = nullptr;
    aes_gcm_init_t gcm_begin = nullptr;
    aes_gcm_enc_dec_update_t gcm_seal_more = nullptr;
    aes_gcm_enc_dec_finalize_t gcm_seal_end = nullptr;
    chacha_poly_init_t chacha_begin = nullptr;
    chacha_poly_enc_dec_update_t chacha_seal_more = nullptr;
    chacha_poly_enc_dec_update_t chacha_open_more = nullptr;
    chacha_poly_finalize_t chacha_end = nullptr;
    /// With the instructions of this processor its ChaCha20-Poly1305 is faster than libcrypto's.
    bool has_fast_chacha = false;
    std::string name;  ///< for people
};
#else
struct Functions {
    std::string name;
};
#endif

/// For good: those for this processor's instructions. Else: what is missing, for people.
const std::expected<Functions, std::string>& functions();

}  // namespace via::secure::ipsec_mb
