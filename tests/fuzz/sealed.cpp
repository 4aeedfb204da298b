// Two datagram devices with a key talk; the first byte of the input says who disturbs them. A
// stranger sees every packet, and repeats, changes, cuts and forges: he can drop and delay, so what
// was said arrives as it was said. Who has the key says anything behind the AEAD: he may lie in
// paths and end them, no more. Libcrypto is real.
#include <algorithm>

#include "device/datagram/secure_port.hpp"
#include "path_scene.hpp"
#include "secure/libcrypto/libcrypto.hpp"
#include "wire/bytes.hpp"
#include "wire/sealed.hpp"

using namespace fuzz;

namespace {

constexpr int operations_max = 100;

class Scene {
public:
    explicit Scene(Input& input) : has_key_(input.byte() % 2 == 1) {
        limits_.packets = 8U + input.byte();
        a_ = std::make_unique<End>(network_, std::uint8_t{1}, wrap());
        b_ = std::make_unique<End>(network_, std::uint8_t{2}, wrap());
        a_->strangers_lie = b_->strangers_lie = has_key_;
        b_->device->listen(listener());
        a_->device->resolve({address(2, host_port), listener()}, 1);
        for (int n = 0; n < 20; ++n) wait(milliseconds(1));
        require(a_->is_up && b_->is_up, "they meet");
    }

    void run(Input& input) {
        for (int n = 0; n < operations_max && !input.empty(); ++n) {
            do_something(input);
            settle();
        }
        network_.fates.clear();
        for (int n = 0; n < 20 && !(a_->is_quiet() && b_->is_quiet()); ++n) wait(seconds(1));
        if (has_key_) return;
        require(network_.disturbed || (a_->is_up && b_->is_up), "no stranger ends a path");
        if (a_->is_over || b_->is_over) return;
        require(a_->is_quiet() && b_->is_quiet(), "everything is acknowledged");
        require(a_->expected == b_->sent() && b_->expected == a_->sent(), "everything arrived");
    }

private:
    End::Wrap wrap() {
        return [this](std::unique_ptr<Port> port, const DatagramOptions& options) {
            auto loaded = secure::load_libcrypto();
            require(loaded.has_value(), "libcrypto can be loaded");
            SecureOptions secure;
            secure.instance = options.instance;
            secure.cookie_key = options.cookie_key;
            secure.limits = limits_;
            secure.random = [this](secure::Secret& secret) {
                for (std::byte& byte : secret.room()) byte = static_cast<std::byte>(random_.next());
                return true;
            };
            require(make_cluster_key(**loaded, {}, secure.keys.emplace_back()), "there is a key");
            auto made = std::make_unique<SecurePort>(std::move(port), std::move(*loaded),
                                                     std::move(secure));
            ports_.push_back(made.get());
            return made;
        };
    }

    void do_something(Input& input) {
        const std::uint8_t what = input.byte();
        End& end = what % 2 == 0 ? *a_ : *b_;
        switch (what / 2 % 6) {
            case 0:
            case 1:
                return send(end, input);
            case 2:
                return wait(microseconds(input.half() * 4));
            case 3:
                return disturb(input);
            case 4:
                return change(input);
            default:
                return say(what % 2 == 0 ? 0 : 1, input);
        }
    }
    static void send(End& end, Input& input) {
        const std::uint32_t length = input.half() % 1500U;
        end.send(length, input.byte() % 4 != 0);
    }

    void settle() {
        for (int rounds = 0;; ++rounds) {
            require(rounds < 1000, "there is an end to what is to be done now");
            bool any = false;
            for (End* end : {a_.get(), b_.get()}) {
                if (!end->device->has_work()) continue;
                end->turn();
                any = true;
            }
            if (!any) return;
        }
    }
    void wait(Duration span) {
        const Time until = network_.now + span;
        for (int steps = 0; steps < 20'000; ++steps) {
            settle();
            const Time next =
                earlier(network_.next_arrival(),
                        earlier(a_->device->next_deadline(), b_->device->next_deadline()));
            if (next > until) break;
            network_.now = std::max(network_.now, next);
        }
        network_.now = std::max(network_.now, until);
        settle();
    }
    void disturb(Input& input) {
        for (int count = input.byte() % 8; count >= 0; --count) {
            const std::uint8_t fate = input.byte();
            network_.fates.push_back({static_cast<std::uint8_t>(fate % 4),
                                      microseconds(10 << fate / 4 % 16),
                                      fate < 192 ? Network::Fate::no_bit : input.half()});
        }
    }

    /// Something that was sent comes again, as it was or not, from where it came or not.
    void change(Input& input) {
        Datagram copy = network_.log[input.byte() % network_.log.size()];
        const std::uint8_t how = input.byte();
        for (int changes = how % 4; changes != 0; --changes) {
            const std::size_t at = input.half() % copy.bytes.size();
            copy.bytes[at] = static_cast<std::byte>(input.byte());
        }
        if (how & 4) copy.bytes.resize(input.half() % (copy.bytes.size() + 1));
        if (how & 8) copy.from = address(1 + input.byte() % 2, data_port);
        if (how & 16) copy.to = address(1 + input.byte() % 2, data_port);
        if (how & 32 && copy.bytes.size() >= 5) copy.bytes[4] = std::byte{wire::packet_version};
        if (how & 64 && copy.bytes.size() >= 16)
            wire::put(copy.bytes.data(), wire::crc32c(std::span(copy.bytes).subspan(4)));
        network_.inject(copy);
    }

    /// A packet of the input's to an identifier that was seen: bare, or with the key of `from`.
    void say(std::size_t from, Input& input) {
        const HostAddress to = address(from == 0 ? 2 : 1, data_port);
        const auto seen = std::ranges::find_if(network_.log, [&](const Datagram& datagram) {
            return datagram.to == to && datagram.bytes.size() > wire::data_header_length &&
                   datagram.bytes[5] == static_cast<std::byte>(wire::PacketKind::data);
        });
        if (seen == network_.log.end()) return;
        const auto connection = wire::get<std::uint64_t>(seen->bytes.data() + 8);
        Bytes packet(wire::data_header_length);
        const std::uint8_t what = input.byte();
        if (what % 8 == 0) {
            packet.resize(wire::connecting_length_max);
            packet.resize(wire::emit_close(connection, wire::CloseReason{1U + what / 8 % 3},
                                           std::span(packet).first<wire::connecting_length_max>()));
        } else {
            const auto chunks = std::as_bytes(input.bytes(input.half() % 1000U));
            packet.insert(packet.end(), chunks.begin(), chunks.end());
            wire::seal_data(packet, connection, what < 128 ? input.byte() : input.wide());
        }
        if (!has_key_) return network_.inject({address(from == 0 ? 1 : 2, data_port), to, packet});
        const Outgoing out{to, packet.data(), static_cast<std::uint32_t>(packet.size())};
        ports_[from]->send({&out, 1});
    }

    bool has_key_;
    secure::KeyLimits limits_;
    Random random_{1};
    Network network_;
    std::vector<SecurePort*> ports_;
    std::unique_ptr<End> a_;
    std::unique_ptr<End> b_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    Scene scene(input);
    scene.run(input);
    return 0;
}
