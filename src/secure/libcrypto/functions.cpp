#include "secure/libcrypto/functions.hpp"

#include <dlfcn.h>

namespace via::secure::libcrypto {
namespace {

// Of OpenSSL 3, whose binary interface stays.
constexpr const char* library_name = "libcrypto.so.3";

std::string last_error() {
    const char* const text = ::dlerror();
    return text != nullptr ? text : "unknown error";
}

std::expected<Functions, std::string> load() {
    void* const library = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return std::unexpected(last_error());
    Functions found;
#define VIA_LIBCRYPTO_LOAD(name)                                                  \
    found.name = reinterpret_cast<decltype(found.name)>(::dlsym(library, #name)); \
    if (found.name == nullptr) return std::unexpected(last_error());
    VIA_LIBCRYPTO_FUNCTIONS(VIA_LIBCRYPTO_LOAD)
#undef VIA_LIBCRYPTO_LOAD
    found.chacha20_poly1305 = found.EVP_CIPHER_fetch(nullptr, "ChaCha20-Poly1305", nullptr);
    found.aes_256_gcm = found.EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
    found.sha256 = found.EVP_MD_fetch(nullptr, "SHA2-256", nullptr);
    if (found.chacha20_poly1305 == nullptr || found.aes_256_gcm == nullptr ||
        found.sha256 == nullptr)
        return std::unexpected(std::string(library_name) + " has not the ciphers that are needed");
    return found;
}

}  // namespace

const std::expected<Functions, std::string>& functions() {
    static const std::expected<Functions, std::string> loaded = load();
    return loaded;
}

}  // namespace via::secure::libcrypto
