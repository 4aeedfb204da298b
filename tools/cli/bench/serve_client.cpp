#include "bench/serve_client.hpp"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <vector>

#include "bench/clock.hpp"
#include "bench/cpus.hpp"
#include "bench/pair.hpp"

namespace via::bench {

namespace {

constexpr int silence_ms = 60'000;      // of a client that is not being answered
constexpr int meeting_ms = 5'000;       // until the client's process comes to ours
constexpr int come_and_go_ms = 60'000;  // besides the client's own time

// A channel with our process of it.
struct Served {
    Open open;
    std::unique_ptr<Channel> channel;
    SharedMap shared;
    ChildProcess child;
};

// A client that vanishes without a word is noticed within half a minute.
void watch_over(int socket) {
    const int on = 1;
    const int seconds = 5;
    const int tries = 5;
    ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

class ServedClient {
public:
    ServedClient(FileHandle socket, const ServeOptions& options) : options_(options) {
        watch_over(socket.get());
        line_ = ControlLine(std::move(socket));
    }

    Status serve(const Hello& hello);
    std::string channels_text() const;

private:
    Status answer(const Message& message);
    Status open(const Open& open);
    Status start(Served& served);
    Status order(const RemoteOrder& order);
    Status close(const Close& close);
    Status pass_on_answer(Served& served, int timeout_ms);
    Result<FileHandle> listen_for_process(std::uint16_t& port);
    Result<FileHandle> meet_process(const FileHandle& listener, std::uint64_t word);
    int left_ms() const { return static_cast<int>((deadline_ns_ - now_ns()) / 1'000'000); }

    const ServeOptions& options_;
    ControlLine line_;
    Address own_;
    Address peer_;
    std::int64_t deadline_ns_ = 0;
    std::uint64_t memory_bytes_ = 0;
    std::vector<std::unique_ptr<Served>> channels_;
};

Status ServedClient::serve(const Hello& hello) {
    const auto own = Address::own_of(line_.get());
    const auto peer = Address::peer_of(line_.get());
    if (!own || !peer) return fail("left before it was served");
    own_ = *own;
    peer_ = *peer;
    deadline_ns_ = now_ns() + std::int64_t{hello.seconds} * 1'000'000'000 +
                   std::int64_t{come_and_go_ms} * 1'000'000;
    if (auto said = line_.send(to_bytes(Kind::welcome, {})); !said) return said;
    options_.tell(peer_.text() + ": begins");
    for (;;) {
        pollfd polled{line_.get(), POLLIN, 0};
        const int ready = ::poll(&polled, 1, std::clamp(left_ms(), 0, silence_ms));
        if (ready < 0 && errno != EINTR) return fail_errno("poll");
        if (ready == 0) {
            const std::string why = left_ms() <= 0 ? "its time is over" : "it said nothing more";
            (void)line_.send(refusal(why));
            return fail("{}", why);
        }
        if (ready < 0) continue;
        std::byte next{};
        if (::recv(line_.get(), &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0) return {};
        auto message = line_.receive(meeting_ms);
        if (!message) return std::unexpected(message.error());
        if (auto answered = answer(*message); !answered) {
            // In words, as far as there is somebody to hear them.
            (void)line_.send(refusal(answered.error().what));
            return answered;
        }
    }
}

Status ServedClient::answer(const Message& message) {
    switch (message.kind) {
        case Kind::open:
            if (const auto parsed = parse_open(message.body)) return open(*parsed);
            break;
        case Kind::order:
            if (const auto parsed = parse_order(message.body)) return order(*parsed);
            break;
        case Kind::close:
            if (const auto parsed = parse_close(message.body)) return close(*parsed);
            break;
        default:
            break;
    }
    return fail("a message makes no sense");
}

// The channel of that name, from our side.
std::unique_ptr<Channel> make_served(const Open& open, const Places& places) {
    if (open.name == "udp" || open.name == "auto") {
        return make_via_device({open.name, places, open.like, false});
    }
    return goes_between_machines(open.name) ? make_comparison(open.name, places) : nullptr;
}

Status ServedClient::open(const Open& open) {
    if (open.channel != channels_.size() || channels_.size() == most_channels) {
        return fail("at most {} channels, one after another", most_channels);
    }
    if (const std::string why = objection_to(open, memory_bytes_); !why.empty()) {
        return fail("{}: {}", open.name, why);
    }
    auto places = Places::between_machines(1, own_, peer_);
    if (!places) return std::unexpected(places.error());
    auto served = std::make_unique<Served>();
    served->open = open;
    served->channel = make_served(open, *places);
    if (!served->channel) return fail("{}: no channel between machines", open.name);
    memory_bytes_ += open.arena_bytes;
    channels_.push_back(std::move(served));
    return start(*channels_.back());
}

Status ServedClient::start(Served& served) {
    if (auto mapped = served.shared.create(sizeof(Shared)); !mapped) return mapped;
    auto* shared = new (served.shared.base()) Shared;
    if (auto made = served.channel->prepare(served.open.max_size); !made) return made;
    PairSetup setup;
    setup.cpus = {options_.cpu, options_.cpu};
    setup.processors = online_processors();
    setup.arena_bytes = served.open.arena_bytes;
    setup.max_size = served.open.max_size;
    if (::getrandom(&setup.word, sizeof setup.word, 0) != sizeof setup.word) {
        return fail_errno("getrandom");
    }
    Opening opening{0, setup.word};
    auto listener = listen_for_process(opening.port);
    if (!listener) return std::unexpected(listener.error());
    if (auto said = line_.send(to_bytes(opening)); !said) return said;
    auto wire = meet_process(*listener, setup.word);
    if (!wire) return std::unexpected(wire.error());
    setup.wire = wire->get();
    listener->reset();
    auto started = served.child.start(*served.channel, *shared, Side::second, setup);
    served.channel->drop_files();
    if (!started) return started;
    wire->reset();
    return pass_on_answer(served, sample_timeout_ms + static_cast<int>(served.open.like.vis) * 50);
}

Result<FileHandle> ServedClient::listen_for_process(std::uint16_t& port) {
    FileHandle listener(::socket(own_.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!listener) return fail_errno("socket");
    const Address any_port = own_.with_port(0);
    if (::bind(listener.get(), any_port.get(), any_port.bytes()) < 0 ||
        ::listen(listener.get(), 4) < 0) {
        return fail_errno("bind to " + any_port.machine_text());
    }
    const auto bound = Address::own_of(listener.get());
    if (!bound) return std::unexpected(bound.error());
    port = bound->port();
    return listener;
}

// Others who find that port are not taken for the client's process: they do not know the word.
Result<FileHandle> ServedClient::meet_process(const FileHandle& listener, std::uint64_t word) {
    const std::int64_t deadline_ns = now_ns() + meeting_ms * std::int64_t{1'000'000};
    const auto left = [&] {
        return std::max<int>(static_cast<int>((deadline_ns - now_ns()) / 1'000'000), 0);
    };
    for (;;) {
        std::array<pollfd, 2> polled{pollfd{listener.get(), POLLIN, 0},
                                     pollfd{line_.get(), POLLRDHUP, 0}};
        if (::poll(polled.data(), polled.size(), left()) == 0) {
            return fail("its process did not come");
        }
        if (polled[1].revents != 0) return fail("it left before its process came");
        FileHandle wire(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!wire) continue;
        const auto from = Address::peer_of(wire.get());
        if (!from || !from->same_machine(peer_)) continue;
        std::uint64_t heard = 0;
        pollfd speaking{wire.get(), POLLIN, 0};
        if (::poll(&speaking, 1, std::min(left(), 1'000)) <= 0) continue;
        const ssize_t got = ::recv(wire.get(), &heard, sizeof heard, MSG_DONTWAIT);
        if (got != sizeof heard || heard != word) continue;
        const int on = 1;
        ::setsockopt(wire.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        return wire;
    }
}

Status ServedClient::order(const RemoteOrder& order) {
    if (order.channel >= channels_.size()) return fail("there is no channel {}", order.channel);
    Served& served = *channels_[order.channel];
    if (const auto why = objection_to(order.question, order.effort, served.open); !why.empty()) {
        return fail("{}: {}", served.open.name, why);
    }
    if (const auto why = served.channel->refuses(order.question); !why.empty()) {
        return fail("{}: it {}", served.open.name, why);
    }
    if (!served.child.send(Order{false, order.question, order.effort})) {
        return fail("{}: our process {}", served.open.name,
                    served.child.how_it_ended(end_patience_ms));
    }
    return pass_on_answer(served, sample_timeout_ms);
}

// What our process says, unless the client goes away meanwhile.
Status ServedClient::pass_on_answer(Served& served, int timeout_ms) {
    std::array<pollfd, 2> polled{pollfd{served.child.control(), POLLIN, 0},
                                 pollfd{line_.get(), POLLIN | POLLRDHUP, 0}};
    const int patience_ms = std::clamp(left_ms(), 0, timeout_ms);
    int ready = 0;
    do {
        ready = ::poll(polled.data(), polled.size(), patience_ms);
    } while (ready < 0 && errno == EINTR);
    if (ready < 0) return fail_errno("poll");
    if (ready == 0) return fail("{}: took longer than {} s", served.open.name, patience_ms / 1000);
    if (polled[0].revents == 0) return fail("it left, or spoke, in the middle of a sample");
    RemoteAnswer answer;
    answer.channel = served.open.channel;
    if (!served.child.receive(answer.answer)) {
        return fail("{}: our process {}", served.open.name,
                    served.child.how_it_ended(end_patience_ms));
    }
    return line_.send(to_bytes(answer));
}

Status ServedClient::close(const Close& close) {
    if (close.channel >= channels_.size()) return fail("there is no channel {}", close.channel);
    ChildProcess& child = channels_[close.channel]->child;
    child.say_quit();
    child.end(now_ns() + polite_ms * std::int64_t{1'000'000});
    return {};
}

std::string ServedClient::channels_text() const {
    std::string text;
    for (const auto& served : channels_) text += (text.empty() ? "" : ", ") + served->open.name;
    return text.empty() ? "nothing" : text;
}

}  // namespace

void serve_client(FileHandle socket, const Hello& hello, const ServeOptions& options) {
    const auto peer = Address::peer_of(socket.get());
    const std::string name = peer ? peer->text() : "somebody";
    const std::int64_t since_ns = now_ns();
    ServedClient client(std::move(socket), options);
    const auto served = client.serve(hello);
    options.tell(fmt::format("{}: {}{}, after {} s", name, client.channels_text(),
                             served ? " done" : fmt::format(", ended: {}", served.error().what),
                             (now_ns() - since_ns) / 1'000'000'000));
}

}  // namespace via::bench
