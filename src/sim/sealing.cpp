#include "sim/sealing.hpp"

#include <utility>

#include "base/assert.hpp"
#include "device/datagram/secure_port.hpp"
#include "sim/model.hpp"

namespace via::sim {
namespace {

secure::Secret draw_secret(Random& random) {
    secure::Secret secret;
    for (std::byte& byte : secret.room()) byte = static_cast<std::byte>(random.next());
    return secret;
}

}  // namespace

Sealing::Sealing(const DatagramWorld& world, std::uint64_t seed, const CryptoMaker& crypto,
                 device::sim::DatagramNetwork& network)
    : world_(world),
      crypto_(crypto),
      seed_(Random(seed ^ 0xDA7A'0000'000BULL).next()),
      random_(seed_),
      meddler_(network, random_.next()) {
    VIA_ASSERT(crypto_ != nullptr);
}

/// The same whenever a NIC is opened there.
secure::Secret Sealing::key_of(std::uint64_t whose) const {
    Random random(seed_ + whose * 0x9E37'79B9'7F4A'7C15ULL);
    return draw_secret(random);
}

std::unique_ptr<device::datagram::Port> Sealing::seal(
    std::unique_ptr<device::datagram::Port> port, const device::datagram::DatagramOptions& options,
    std::uint32_t host, device::sim::SocketId socket) {
    namespace datagram = device::datagram;
    std::unique_ptr<secure::Crypto> crypto = crypto_();
    datagram::SecureOptions secure;
    secure.instance = options.instance;
    secure.cookie_key = options.cookie_key;
    secure.limits.packets = world_.packets_per_key;
    secure.limits.age = world_.key_age;
    secure.cipher = static_cast<secure::CipherKind>(random_.below(2));
    secure.random = [random = Random(random_.next())](secure::Secret& secret) mutable {
        secret = draw_secret(random);
        return true;
    };
    secure.log_keys = [this, socket](const datagram::LoggedKeys& keys) {
        record_.note_keys(socket, keys);
    };
    bool good = true;
    if (world_.keys == KeysOf::cluster) {
        // On their way from one key to the next, hosts have both, in either order.
        const std::uint64_t first = random_.below(2);
        for (const std::uint64_t which : {first, 1 - first})
            good = good &&
                   datagram::make_cluster_key(*crypto, key_of(which), secure.keys.emplace_back());
    } else {
        good = datagram::make_own_key(*crypto, key_of(host), secure.keys.emplace_back());
        const std::uint32_t interfaces =
            world_.rails.interfaces.empty() || !world_.rails.keys_everywhere ? 1 : networks_max;
        for (std::uint32_t interface = 0; interface < interfaces; ++interface)
            for (std::uint32_t other = 0; other < world_.hosts; ++other) {
                datagram::PinnedKey& pinned = secure.hosts.emplace_back();
                pinned.host = datagram::number_of(address_of_host(other, interface));
                good = good && crypto->public_key(key_of(other), pinned.key);
            }
    }
    VIA_ASSERT(good);
    auto sealed = std::make_unique<datagram::SecurePort>(std::move(port), std::move(crypto),
                                                         std::move(secure));
    return std::make_unique<SealWatch>(std::move(sealed), record_);
}

}  // namespace via::sim
