// secure::Crypto by OpenSSL's libcrypto, which is loaded when somebody has a key: programs without
// one neither need it nor pay for it.
#pragma once

#include <expected>
#include <memory>
#include <string>

#include "secure/crypto.hpp"

namespace via::secure {

/// Loads the library at the first call and keeps it for good. Else: why not, for people. Any
/// thread; what it returns is used by one at a time.
std::expected<std::unique_ptr<Crypto>, std::string> load_libcrypto();

}  // namespace via::secure
