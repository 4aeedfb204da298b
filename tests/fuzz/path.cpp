// Two datagram devices talk; the input says what they send, what the network does to it, and what
// somebody else sends them: copies that were changed, packets of connecting, packets of data.
// The first byte says who that is. A stranger does not see the identifiers of paths: whatever he
// does, frames arrive as they were sent. Who sees them may end a path or lie in it, no more.
#include "path_scene.hpp"
#include "wire/bytes.hpp"

using namespace fuzz;

namespace {

constexpr int operations_max = 200;

class Scene {
public:
    explicit Scene(bool sees_all) : sees_all_(sees_all) {
        a_.strangers_lie = b_.strangers_lie = sees_all;
        b_.device->listen(listener());
        a_.device->resolve({address(2, host_port), listener()}, 1);
    }

    void run(Input& input) {
        for (int n = 0; n < operations_max && !input.empty(); ++n) {
            do_something(input);
            settle();
        }
        network_.fates.clear();
        for (End* end : {&a_, &b_}) end->port->send_max = ~std::size_t{0};
        wait(seconds(20), true);
        if (sees_all_ || closed_) return;
        require(network_.disturbed || (a_.is_up && b_.is_up), "no stranger keeps them apart");
        if (a_.is_over || b_.is_over || !a_.is_up) return;
        require(a_.is_quiet() && b_.is_quiet(), "everything is acknowledged");
        require(a_.expected == b_.sent() && b_.expected == a_.sent(), "everything arrived");
    }

private:
    void do_something(Input& input) {
        const std::uint8_t what = input.byte();
        End& end = what % 2 == 0 ? a_ : b_;
        switch (what / 2 % 10) {
            case 0:
            case 1:
                return send(end, input);
            case 2:
                return wait(microseconds(input.byte()), false);
            case 3:
                return wait(milliseconds(input.byte()), false);
            case 4:
                return disturb(input);
            case 5:
                return change(input);
            case 6:
                return connect(input);
            case 7:
                return say(input);
            case 8:
                return hint(end, input);
            default:
                return error(end, input);
        }
    }

    static void send(End& end, Input& input) {
        const std::uint32_t length = input.half() % 1500U;
        end.send(length, input.byte() % 4 != 0);
    }

    /// Turns both until they have nothing to do at this moment.
    void settle() {
        for (int rounds = 0;; ++rounds) {
            require(rounds < 1000, "there is an end to what is to be done now");
            bool any = false;
            for (End* end : {&a_, &b_}) {
                if (!end->device->has_work()) continue;
                end->turn();
                any = true;
            }
            if (!any) return;
        }
    }
    void wait(Duration span, bool until_quiet) {
        const Time until = network_.now + span;
        for (int steps = 0; steps < 20'000; ++steps) {
            settle();
            if (until_quiet && a_.is_up && b_.is_up && a_.is_quiet() && b_.is_quiet()) return;
            const Time next = earlier(network_.next_arrival(), earlier(a_.device->next_deadline(),
                                                                       b_.device->next_deadline()));
            if (next > until) break;
            network_.now = std::max(network_.now, next);
        }
        network_.now = std::max(network_.now, until_quiet ? network_.now : until);
        settle();
    }

    void disturb(Input& input) {
        for (int count = input.byte() % 8; count >= 0; --count) {
            const std::uint8_t fate = input.byte();
            const Duration delay = microseconds(10 << fate / 4 % 16);
            network_.fates.push_back({static_cast<std::uint8_t>(fate % 4), delay,
                                      fate < 192 ? Network::Fate::no_bit : input.half()});
        }
    }

    HostAddress somebody(Input& input) {
        const std::uint8_t who = input.byte();
        const std::uint8_t host = who % 4 == 3 ? attacker_host : static_cast<std::uint8_t>(who % 4);
        return address(host, who / 4 % 4 == 0 ? host_port : data_port);
    }
    std::uint64_t identifier(Input& input) {
        if (!sees_all_ || network_.log.empty() || input.byte() % 4 == 0) return input.wide();
        const Datagram& seen = network_.log[input.byte() % network_.log.size()];
        return wire::get<std::uint64_t>(seen.bytes.data() + 8);
    }
    void inject(const HostAddress& from, const HostAddress& to, Bytes bytes) {
        network_.inject({from, to, std::move(bytes)});
    }

    /// Something that was sent, changed. A stranger did not see it: he has another identifier. Or
    /// as it was: networks double, too.
    void change(Input& input) {
        if (network_.log.empty()) return;
        Datagram copy = network_.log[input.byte() % network_.log.size()];
        const std::uint8_t how = input.byte();
        if (how == 0) return inject(copy.from, copy.to, copy.bytes);
        for (int changes = how % 8; changes != 0; --changes) {
            const std::size_t at = input.half() % copy.bytes.size();
            copy.bytes[at] = static_cast<std::byte>(input.byte());
        }
        if (how & 8) copy.bytes.resize(input.half() % (copy.bytes.size() + 1));
        if (how & 16) copy.from = somebody(input);
        if (how & 32) copy.to = somebody(input);
        if (copy.bytes.size() >= 16) {
            if (!sees_all_) wire::put(copy.bytes.data() + 8, input.wide());
            if (how & 64)
                wire::put(copy.bytes.data(), wire::crc32c(std::span(copy.bytes).subspan(4)));
        }
        inject(copy.from, copy.to, copy.bytes);
    }

    wire::PathOffer offer(Input& input) {
        return {input.byte() % 2 ? 1000U : input.wide(), input.word(), input.word(),
                static_cast<std::uint16_t>(input.half()), host_port};
    }
    void connect(Input& input) {
        const std::uint8_t kind = input.byte();
        const HostAddress from = somebody(input);
        const HostAddress to = somebody(input);
        const std::uint64_t id = identifier(input);
        std::array<std::byte, wire::connecting_length_max> packet;
        const auto send = [&](std::uint32_t length) {
            inject(from, to, Bytes(packet.begin(), packet.begin() + length));
        };
        const std::uint64_t instance = input.byte() % 2 ? 2000 : input.wide();
        switch (kind % 8) {
            case 0:
                return send(wire::emit_query(id, {listener()}, packet));
            case 1:
                return send(wire::emit_answer(
                    id, {wire::AnswerCode{1U + input.byte() % 2}, input.half(), instance}, packet));
            case 2:
                return send(wire::emit_hello(
                    id, {instance, input.wide(), {input.wide(), input.wide()}, offer(input)},
                    packet));
            case 3:
                return send(wire::emit_retry(id, {input.wide(), input.wide()}, packet));
            case 4:
                return send(wire::emit_welcome(id, {identifier(input), input.wide(), offer(input)},
                                               packet));
            case 5:
                return send(
                    wire::emit_refuse(id, wire::PathRefusal{1U + input.byte() % 2}, packet));
            case 6:
                return send(wire::emit_unsupported(id, packet));
            default:
                return send(wire::emit_close(id, wire::CloseReason{1U + input.byte() % 3}, packet));
        }
    }

    /// A data packet of the input's.
    void say(Input& input) {
        Bytes packet(wire::data_header_length);
        const auto grow = [&](std::size_t length) {
            packet.resize(packet.size() + length);
            return packet.data() + packet.size() - length;
        };
        for (int chunks = input.byte() % 8; chunks != 0; --chunks) {
            const std::uint8_t what = input.byte();
            if (what % 4 == 0) {
                wire::Ack ack;
                ack.largest = what & 4 ? input.wide() : input.byte();
                ack.delay = input.word();
                ack.count = static_cast<std::uint8_t>(1 + what / 8);
                ack.ranges[0].there = 1U + input.byte();
                for (int n = 1; n < ack.count; ++n)
                    ack.ranges[n] = {1U + input.byte() % 8U, 1U + input.byte() % 8U};
                wire::emit_ack_chunk(ack, grow(wire::ack_length(ack)));
            } else if (what % 8 == 3) {
                wire::emit_ping_chunk(grow(wire::chunk_prefix_length));
            } else if (what % 8 == 7) {
                const Bytes frame(wire::part_length + 1U + input.half() % 2000U);
                const auto parts = wire::parts_of(static_cast<std::uint32_t>(frame.size()));
                std::byte* const to = grow(wire::part_chunk_overhead + wire::part_length);
                const std::uint32_t number = what & 64 ? input.word() : input.byte();
                const std::uint32_t length =
                    wire::emit_part_chunk(number, input.byte() % parts, frame, to);
                packet.resize(packet.size() - wire::part_chunk_overhead - wire::part_length +
                              length);
            } else {
                const bool reliable = what % 4 == 1;
                const std::uint32_t length = 1 + (what / 4 == 0 ? input.byte() : what / 4);
                std::byte* const to = grow(wire::frame_chunk_overhead + length);
                const std::uint32_t number = what & 64 ? input.word() : input.byte();
                wire::emit_frame_chunk(reliable, reliable ? number : 0, length, to);
                const auto content = input.bytes(length);
                std::memcpy(to + wire::frame_chunk_overhead, content.data(), content.size());
            }
        }
        const HostAddress from = somebody(input);
        const HostAddress to = somebody(input);
        const std::uint64_t number = input.byte() < 200 ? input.byte() : input.wide();
        wire::seal_data(packet, identifier(input), number);
        inject(from, to, packet);
    }

    /// The network says something, which may be a lie.
    void hint(End& end, Input& input) {
        const auto kind = static_cast<NetworkErrorKind>(input.byte() % 3);
        const HostAddress& to = somebody(input);
        const std::uint32_t length = input.half() % 2000U;
        end.port->network_errors.push_back({kind, to, length, identifier(input)});
        // Before a path, it is what refuses the question.
        if (!end.was_up) network_.disturbed = true;
    }

    void error(End& end, Input& input) {
        const std::uint8_t what = input.byte();
        if (what % 8 == 0) {
            closed_ = true;
            end.close_for_violation();
        } else if (what % 8 < 4) {
            end.port->send_max = what / 8;
            network_.disturbed = true;
        } else {
            end.port->send_max = ~std::size_t{0};
        }
    }

    bool sees_all_;
    bool closed_ = false;
    Network network_;
    End a_{network_, 1};
    End b_{network_, 2};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    Scene scene(input.byte() % 2 == 1);
    scene.run(input);
    return 0;
}
