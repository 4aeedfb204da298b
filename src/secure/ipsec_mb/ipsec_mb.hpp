// Packets sealed and opened by Intel's ipsec-mb, which takes a fraction of libcrypto's time for
// them; where it is, for it is not needed.
#pragma once

#include <expected>
#include <memory>
#include <string>

#include "secure/crypto.hpp"

namespace via::secure {

/// Texts by ipsec-mb, where that is faster; all else by `other`. Where ipsec-mb is not: `other`.
/// What it is called, or why it is not there, says ipsec_mb_name().
std::unique_ptr<Crypto> with_ipsec_mb(std::unique_ptr<Crypto> other);

/// Name, version and which instructions it uses. Else: why it is not there. Both for people. Loads
/// it at the first call, for good. Any thread.
std::expected<std::string, std::string> ipsec_mb_name();

}  // namespace via::secure
