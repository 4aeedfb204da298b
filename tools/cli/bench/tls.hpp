// TLS 1.3 by OpenSSL's libssl over a connected socket, as programs have it that encrypt a stream:
// to compare with. The library is loaded by name when it is asked for.
#pragma once

#include <string>

#include "bench/stream_end.hpp"
#include "bench/types.hpp"

namespace via::bench {

/// Of the library, as it says; empty: there is none.
std::string tls_version();
/// Both ends, at the same time: the handshake, with AES-256-GCM and a key that both know already.
/// One connection in a process. Error: why there is none.
Status begin_tls(int socket, bool is_client);
/// What reads and writes that connection.
StreamCalls tls_calls();

}  // namespace via::bench
