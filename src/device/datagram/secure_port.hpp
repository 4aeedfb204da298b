// A port whose datagrams nobody without the cluster's key can read, make or repeat: it stands
// between a DatagramDevice and the port that carries them, and turns packets of version 1 into
// those of version 2 and back (docs/design/wire-security.md). It knows paths by their identifiers.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "device/datagram/allowance.hpp"
#include "device/datagram/port_decorator.hpp"
#include "device/datagram/secure_session.hpp"
#include "device/datagram/siphash.hpp"
#include "device/datagram/whom.hpp"
#include "secure/mutation.hpp"

namespace via::device::datagram {

struct SecureOptions {
    std::uint64_t instance = 0;  ///< as DatagramOptions has them
    HashKey cookie_key{};
    /// The cluster's and our own. With the first one of a kind that is good still we ask, each is
    /// good for those who ask us.
    std::vector<Credential> keys;
    /// Hosts with keys of their own: they are asked with our own, and nothing else is good for
    /// those who ask from there. Of several the first one is asked.
    std::vector<PinnedKey> hosts;
    /// Hosts that are not among those may speak in the open, if they have no key.
    bool prefer = false;
    /// With which we ask; whoever is asked has both.
    secure::CipherKind cipher = secure::CipherKind::aes_256_gcm;
    secure::KeyLimits limits;
    /// Fills with fresh random bytes. False: there are none.
    std::function<bool(secure::Secret&)> random;
    /// Told the keys of every path: whoever has them reads it. nullptr: nobody is.
    KeyLog log_keys;
    /// Told who was refused, or refuses us, and why, for people.
    std::function<void(const HostAddress&, const char*)> report = [](const HostAddress&,
                                                                     const char*) {};
};

/// Owns the sessions with peers, from the first question until the path is forgotten, and decides
/// who is asked with which key, who is answered, and who is refused.
class SecurePort final : public PortDecorator {
public:
    /// What a sealed packet is longer than the bare one: its number and its tag.
    static constexpr std::uint32_t overhead = 8 + secure::tag_length;

    struct Totals {
        std::uint64_t bare = 0;  ///< packets that ought to be sealed and are not
        std::uint64_t malformed = 0;
        std::uint64_t strangers = 0;  ///< hellos of who has not the key
        std::uint64_t forged = 0;     ///< handshakes and packets
        std::uint64_t replayed = 0;
        std::uint64_t handshakes = 0;   ///< that cost multiplications
        std::uint64_t in_the_open = 0;  ///< packets of paths that may be
    };

    SecurePort(std::unique_ptr<Port> inner, std::unique_ptr<secure::Crypto> crypto,
               SecureOptions options);
    ~SecurePort() override;

    std::size_t send(std::span<const Outgoing> datagrams) override;
    std::size_t receive(std::span<Incoming> datagrams) override;
    bool authenticates() const override { return true; }
    std::uint32_t datagram_max() const override { return inner().datagram_max() - overhead; }
    bool next_network_error(NetworkError& error) override;
    void forget(std::uint64_t ours) override;
    void doubt(const HostAddress& to, Time arrived) override;
    const Totals& totals() const { return totals_; }
    std::size_t sessions() const { return sessions_.size(); }

    void release() override {
        refused_here_.clear();
        inner().release();
    }
    bool has_work() override { return !refusals_.empty() || inner().has_work(); }
    Time next_deadline() const override {
        return refusals_.empty() ? inner().next_deadline() : Time{};
    }

private:
    using Room = std::span<std::byte>;
    using Bytes = std::span<const std::byte>;

    // Out: each fills the front of `to` and returns its length; 0: it is not sent.
    std::uint32_t turn_out(const Outgoing& out, Room to);
    std::uint32_t say_hello(const Outgoing& out, Room to);
    std::uint32_t say_welcome(const Outgoing& out, Room to);
    std::uint32_t seal(const Outgoing& out, wire::PacketKind kind, Room to);
    std::uint32_t say_in_the_open(const Outgoing& out, wire::PacketKind kind, Room to);
    /// With which key of ours to ask a host, and for which key of its.
    struct Asking {
        const Credential* ours = nullptr;
        secure::PublicKey theirs{};
        const char* fault = nullptr;  ///< why there is none
        bool unknown = false;         ///< there is no key for such hosts
    };
    Asking asking(const HostAddress& host);
    bool draw(secure::Secret& key);
    void prepare_ephemeral();
    std::optional<secure::Ephemeral> take_ephemeral();
    bool begin_asking(SecureSession& session, std::uint64_t connection, Bytes hello);

    // In: each turns the datagram into a bare one in its place. False: it is dropped.
    bool turn_in(Incoming& in);
    bool take_bare(Incoming& in);
    bool take_refusal(Incoming& in, const wire::PacketPrefix& prefix);
    bool take_hello(Incoming& in, Room packet);
    bool take_welcome(Incoming& in, Room packet);
    bool open(Incoming& in, wire::PacketKind kind, Room packet);
    bool answer_hello(Incoming& in, Room packet, const wire::Cookie& cookie);
    bool is_of_same_peer(const SecureSession& session, std::uint64_t ours) const;
    std::size_t hand_up_refusals(std::span<Incoming> datagrams);
    /// Why that key of his is not good, for our user; nullptr: it is.
    const char* fault_of(const HostAddress& host, const secure::PublicKey& key);
    void refuse(const HostAddress& to, std::uint64_t connection, const char* why);
    bool hand_up_hello(Incoming& in, Room packet, const wire::Hello& hello);
    std::size_t admitting_key(Bytes packet) const;
    SecureSession* answering(Incoming& in, Bytes packet, std::size_t key);

    std::span<const PinnedKey> pinned(const HostAddress& host) const;
    bool may_be_open(const HostAddress& host) const {
        return options_.prefer &&
               (pinned(host).empty() || mutated(secure::Mutation::open_to_known_host));
    }
    void answer(const HostAddress& to, Bytes packet, const char* why);
    /// Once a second: anybody may be the reason.
    void tell(const HostAddress& whom, const char* what);
    SecureSession& add(const HostAddress& peer, bool asks);
    void remove(SecureSession& session);
    void sweep();
    SecureSession* by_ours(std::uint64_t ours) const;
    SecureSession* by_theirs(const HostAddress& peer, std::uint64_t theirs);
    void name_theirs(SecureSession& session);
    SecureSession* by_hello(const HostAddress& peer, std::uint64_t connection) const;
    void replace(SecureSession& session, std::uint64_t ours);

    std::unique_ptr<secure::Crypto> crypto_;
    SecureOptions options_;
    /// Of the next handshake, made when there was nothing else to do: half of what the peer would
    /// wait for.
    std::optional<secure::Ephemeral> ephemeral_;
    bool wants_ephemeral_ = false;
    Totals totals_;
    std::list<SecureSession> sessions_;
    std::unordered_map<std::uint64_t, SecureSession*> by_ours_;
    std::map<Whom, SecureSession*> by_theirs_;  ///< with keys
    /// What was looked for among those last: the packets of a burst are of one path.
    SecureSession* sealed_last_ = nullptr;
    /// Who asks us, by his identifier: it is not known yet whether the device wants that path, or
    /// goes on with another one that the peer knows by it.
    std::map<Whom, SecureSession*> by_hello_;
    std::list<SecureSession*> pending_;  ///< asked, and not welcomed so far; the oldest first
    std::list<SecureSession*> over_;     ///< to be forgotten soon; the oldest first
    Time next_report_{};
    Allowance answers_;
    Allowance handshakes_;
    Allowance hosts_handshakes_;  ///< of who asks for a host's own key, which is no secret
    /// Paths that are not even asked for, to be told to the device as if the host refused them.
    struct Refusal {
        HostAddress from;
        std::array<std::byte, wire::connecting_length_max> packet;
        std::uint32_t length = 0;
    };
    std::vector<Refusal> refusals_;
    std::vector<Refusal> refused_here_;  ///< handed up
    std::set<HostNumber> open_;          ///< hosts that said that they have no key
    std::vector<std::byte> room_;        ///< of a burst that leaves
    Time burst_began_{};
    std::vector<Outgoing> burst_;
    std::vector<std::size_t> which_;  ///< of the device's datagrams, for each of burst_
};

}  // namespace via::device::datagram
