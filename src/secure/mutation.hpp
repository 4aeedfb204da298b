// Ways to break what keys promise on purpose, for the proof that worlds and tests notice. In every
// build but one made for that (VIA_MUTATIONS), mutated() is a constant and costs nothing.
#pragma once

#include <cstdint>

namespace via::secure {

enum class Mutation : std::uint8_t {
    none,
    // Packets
    forget_replay_window,  ///< a number that came counts as new
    skip_tag_check,        ///< a packet that is not genuine is taken
    skip_header_check,     ///< the prefix is not authenticated
    reuse_number,          ///< every other packet has the number of the one before
    keep_key,              ///< the same key for all numbers, at both ends
    change_key_early,      ///< the first number of a key is still under the one before
    advance_unproved,      ///< a forged number counts as the newest one
    expect_any_key,        ///< keys that nobody can have reached yet are derived
    forgive_forgeries,     ///< forged packets wear no key out
    begin_numbers_anew,    ///< behind the last one
    keep_old_key,          ///< however old it is
    age_unheard,           ///< keys change though the peer hears nothing
    // The handshake
    skip_prologue,          ///< what both ends know besides does not go in
    forget_transcript,      ///< what was sealed does not go into what follows
    skip_shared_key,        ///< the pre-shared key does not go in
    skip_own_agreement,     ///< who asks need not have the private key of the one that it names
    accept_any_point,       ///< public keys that give the same secret to all
    keep_after_fault,       ///< a refused message stays in the handshake
    keep_ephemeral,         ///< the key that is made for a handshake is always the same
    keep_handshake_keys,    ///< they are not overwritten when the connection's are taken
    take_prepared_for_any,  ///< what was made beforehand for another peer
    reuse_ephemeral,        ///< the key that was made beforehand is used for all handshakes
    // What stands before the handshake
    skip_cookie,            ///< a hello needs no proof of its address
    skip_admission,         ///< nor that its maker has a key
    skip_handshakes_limit,  ///< nor is there a limit for those who have
    skip_pinned_key,        ///< a host's key may be any
    skip_known_host,        ///< a host need not be known
    skip_expiry,            ///< a key is good for ever
    skip_pinned_expiry,     ///< a host's key is
    ask_with_expired_key,   ///< or for an expired one
    answer_old_hello,       ///< a hello that came before has a handshake again
    join_any_path,          ///< of another host
    keep_pending,           ///< handshakes that lead to no path are kept for ever
    // What is believed in the open
    take_bare_packets,      ///< of a path with keys
    open_sealed_paths,      ///< the same, of hosts that may speak in the open
    open_to_known_host,     ///< a host whose key is known may
    take_bare_hello,        ///< with a cookie
    skip_answers_limit,     ///< each stranger's hello is answered
    believe_refusal,        ///< at once
    take_welcome_from_any,  ///< address
};
constexpr std::uint8_t mutation_max = static_cast<std::uint8_t>(Mutation::take_welcome_from_any);
const char* to_string(Mutation mutation);

#if defined(VIA_MUTATIONS)
extern Mutation present_mutation;
inline bool mutated(Mutation mutation) { return present_mutation == mutation; }
#else
constexpr bool mutated(Mutation /*mutation*/) { return false; }
#endif

}  // namespace via::secure
