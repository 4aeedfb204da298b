#include "bench/tls.hpp"

#include <dlfcn.h>
#include <openssl/ssl.h>

#include <cerrno>
#include <string>

namespace via::bench {

namespace {

#define VIA_LIBSSL_FUNCTIONS(each)                                                             \
    each(TLS_client_method) each(TLS_server_method) each(SSL_CTX_new) each(SSL_CTX_ctrl)       \
        each(SSL_CTX_set_psk_use_session_callback) each(SSL_CTX_set_psk_find_session_callback) \
            each(SSL_CTX_set_ciphersuites) each(SSL_new) each(SSL_set_fd) each(SSL_connect)    \
                each(SSL_accept) each(SSL_read) each(SSL_write) each(SSL_get_error)            \
                    each(SSL_CIPHER_find) each(SSL_SESSION_new) each(SSL_SESSION_set_cipher)   \
                        each(SSL_SESSION_set1_master_key) each(SSL_SESSION_set_protocol_version)

struct TlsLibrary {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name takes none
#define VIA_LIBSSL_MEMBER(name) decltype(&::name) name = nullptr;
    VIA_LIBSSL_FUNCTIONS(VIA_LIBSSL_MEMBER)
#undef VIA_LIBSSL_MEMBER

    Status load() {
        void* const library = ::dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return fail("{}; './dev setup --peers' installs it", ::dlerror());
#define VIA_LIBSSL_LOAD(name)                                         \
    name = reinterpret_cast<decltype(name)>(::dlsym(library, #name)); \
    if (name == nullptr) return fail("{}", ::dlerror());
        VIA_LIBSSL_FUNCTIONS(VIA_LIBSSL_LOAD)
#undef VIA_LIBSSL_LOAD
        return {};
    }
};

TlsLibrary tls_library;
SSL* tls_connection = nullptr;  // the process's only one, until it ends

constexpr const char* tls_suite = "TLS_AES_256_GCM_SHA384";
constexpr unsigned char tls_suite_number[] = {0x13, 0x02};
constexpr unsigned char tls_identity[] = {'b', 'e', 'n', 'c', 'h'};

// The key that both know is no secret: what is measured is the stream.
SSL_SESSION* known_session(SSL* ssl) {
    constexpr unsigned char key[48] = {1};
    SSL_SESSION* const session = tls_library.SSL_SESSION_new();
    const bool made = session != nullptr &&
                      tls_library.SSL_SESSION_set1_master_key(session, key, sizeof key) == 1 &&
                      tls_library.SSL_SESSION_set_cipher(
                          session, tls_library.SSL_CIPHER_find(ssl, tls_suite_number)) == 1 &&
                      tls_library.SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
    return made ? session : nullptr;
}

int use_session(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* id_length,
                SSL_SESSION** session) {
    *session = known_session(ssl);
    *id = tls_identity;
    *id_length = sizeof tls_identity;
    return *session != nullptr ? 1 : 0;
}

int find_session(SSL* ssl, const unsigned char*, std::size_t, SSL_SESSION** session) {
    *session = known_session(ssl);
    return *session != nullptr ? 1 : 0;
}

// As read() and write() say it.
ssize_t result_of(int moved) {
    if (moved > 0) return moved;
    const int before = errno;
    switch (tls_library.SSL_get_error(tls_connection, moved)) {
        case SSL_ERROR_WANT_READ:
        case SSL_ERROR_WANT_WRITE:
            errno = EAGAIN;
            return -1;
        case SSL_ERROR_ZERO_RETURN:
            return 0;
        case SSL_ERROR_SYSCALL:
            errno = before != 0 ? before : EPIPE;
            return -1;
        default:
            errno = EPROTO;
            return -1;
    }
}

ssize_t read_tls(int /*socket*/, void* to, std::size_t bytes) {
    errno = 0;
    return result_of(tls_library.SSL_read(tls_connection, to, static_cast<int>(bytes)));
}

ssize_t write_tls(int /*socket*/, const void* from, std::size_t bytes) {
    errno = 0;
    return result_of(tls_library.SSL_write(tls_connection, from, static_cast<int>(bytes)));
}

}  // namespace

std::string tls_version() {
    void* const library = ::dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return {};
    const auto version =
        reinterpret_cast<decltype(&::OpenSSL_version)>(::dlsym(library, "OpenSSL_version"));
    return version != nullptr ? version(OPENSSL_VERSION) : "";
}

Status begin_tls(int socket, bool is_client) {
    if (auto loaded = tls_library.load(); !loaded) return loaded;
    SSL_CTX* const context = tls_library.SSL_CTX_new(is_client ? tls_library.TLS_client_method()
                                                               : tls_library.TLS_server_method());
    if (context == nullptr) return fail("SSL_CTX_new");
    tls_library.SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, nullptr);
    tls_library.SSL_CTX_ctrl(context, SSL_CTRL_MODE,
                             SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER,
                             nullptr);
    if (tls_library.SSL_CTX_set_ciphersuites(context, tls_suite) != 1)
        return fail("libssl has not {}", tls_suite);
    if (is_client) {
        tls_library.SSL_CTX_set_psk_use_session_callback(context, use_session);
    } else {
        tls_library.SSL_CTX_set_psk_find_session_callback(context, find_session);
    }
    tls_connection = tls_library.SSL_new(context);
    if (tls_connection == nullptr || tls_library.SSL_set_fd(tls_connection, socket) != 1)
        return fail("SSL_new");
    const int done = is_client ? tls_library.SSL_connect(tls_connection)
                               : tls_library.SSL_accept(tls_connection);
    if (done != 1)
        return fail("the TLS handshake failed (SSL_get_error says {})",
                    tls_library.SSL_get_error(tls_connection, done));
    return {};
}

StreamCalls tls_calls() { return {read_tls, write_tls, ::fcntl}; }

}  // namespace via::bench
