#include "bench/remote_pair.hpp"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "bench/clock.hpp"

namespace via::bench {

namespace {

constexpr int greeting_ms = 10'000;
constexpr timeval connect_patience{5, 0};
// After one side's failure the other one may know the reason.
constexpr std::int64_t reason_ns = 1'000'000'000;

}  // namespace

Result<FileHandle> connect_to(const Address& address) {
    FileHandle made(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!made) return fail_errno("socket");
    const int on = 1;
    // Connecting sleeps as long as sending may.
    ::setsockopt(made.get(), SOL_SOCKET, SO_SNDTIMEO, &connect_patience, sizeof connect_patience);
    if (::connect(made.get(), address.get(), address.bytes()) < 0) {
        if (errno == EINPROGRESS) errno = ETIMEDOUT;
        return fail_errno(fmt::format("cannot connect to {} by TCP (connect)", address.text()));
    }
    if (::setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0) {
        return fail_errno("setsockopt TCP_NODELAY");
    }
    return made;
}

Result<std::shared_ptr<Peer>> Peer::connect(const std::string& where, int max_seconds) {
    const auto address = Address::resolve(where, default_control_port);
    if (!address) return fail("--peer {}", address.error().what);
    auto socket = connect_to(*address);
    if (!socket) {
        return fail("{}; 'via bench serve' must run there", socket.error().what);
    }
    auto peer = std::make_shared<Peer>();
    const auto own = Address::own_of(socket->get());
    if (!own) return std::unexpected(own.error());
    peer->own_ = *own;
    peer->address_ = *address;
    peer->line_ = ControlLine(std::move(*socket));
    const auto greeted = [&]() -> Status {
        const Hello hello{static_cast<std::uint32_t>(max_seconds)};
        if (auto said = peer->line_.send(to_bytes(hello)); !said) return said;
        auto welcome = peer->line_.receive(Kind::welcome, greeting_ms);
        return welcome ? Status{} : std::unexpected(welcome.error());
    }();
    if (!greeted) return fail("{}: {}", address->text(), greeted.error().what);
    return peer;
}

Result<std::unique_ptr<RemotePair>> RemotePair::start(std::unique_ptr<Channel> channel,
                                                      const PairSetup& setup, const Open& like,
                                                      std::shared_ptr<Peer> peer) {
    std::unique_ptr<RemotePair> pair(new RemotePair(std::move(channel), std::move(peer)));
    Open open = like;
    open.channel = pair->number_;
    // Of "udp:eth0" only udp concerns the other machine, where the interface has another name.
    open.name = medium_of(pair->channel_->name());
    open.arena_bytes = setup.arena_bytes;
    open.max_size = setup.max_size;
    if (auto opened = pair->open(setup, open); !opened) {
        pair->end(false);
        return fail("{}: {}", pair->channel_->name(), opened.error().what);
    }
    return pair;
}

Status RemotePair::open(PairSetup setup, Open open) {
    if (auto mapped = shared_.create(sizeof(Shared)); !mapped) return mapped;
    new (shared_.base()) Shared;
    if (auto made = channel_->prepare(setup.max_size); !made) return made;
    auto wire = wire_to_other(open, setup.word);
    if (!wire) return std::unexpected(wire.error());
    setup.wire = wire->get();
    auto started = child_.start(*channel_, shared_view(), Side::first, setup);
    channel_->drop_files();
    wire->reset();
    if (!started) return started;
    auto opened = collect(setup.open_timeout_ms);
    return opened ? Status{} : std::unexpected(opened.error());
}

Result<FileHandle> RemotePair::wire_to_other(const Open& open, std::uint64_t& word) {
    if (auto said = peer_->line().send(to_bytes(open)); !said) {
        return std::unexpected(said.error());
    }
    const auto body = peer_->line().receive(Kind::opening, greeting_ms);
    if (!body) return fail("{}: {}", peer_->address().text(), body.error().what);
    const auto opening = parse_opening(*body);
    if (!opening) return fail("{}: makes no sense", peer_->address().text());
    auto wire = connect_to(peer_->address().with_port(opening->port));
    if (!wire) return wire;
    word = opening->word;
    if (::send(wire->get(), &word, sizeof word, MSG_NOSIGNAL) != sizeof word) {
        return fail_errno("send");
    }
    return wire;
}

RemotePair::~RemotePair() { end(!broken_); }

void RemotePair::end(bool politely) {
    broken_ = true;
    if (politely) {
        (void)peer_->line().send(to_bytes(Close{number_}));
        child_.say_quit();
    } else if (shared_.base() != nullptr) {
        shared_view().abort.value.store(1, std::memory_order_relaxed);
    }
    child_.end(politely ? now_ns() + polite_ms * std::int64_t{1'000'000} : 0);
}

Result<RawSample> RemotePair::ask(const Question& question, const Effort& effort, int timeout_ms) {
    if (broken_) return fail("{}: this channel failed before", channel_->name());
    const auto sample = [&]() -> Result<RawSample> {
        const RemoteOrder order{number_, question, effort};
        if (auto said = peer_->line().send(to_bytes(order)); !said) {
            return std::unexpected(said.error());
        }
        if (!child_.send(Order{false, question, effort})) {
            return fail("our process (pid {}) {}", child_.pid(),
                        child_.how_it_ended(end_patience_ms));
        }
        auto answers = collect(timeout_ms);
        if (!answers) return std::unexpected(answers.error());
        return sample_of(*answers, timeout_ms);
    }();
    if (sample) return sample;
    end(false);
    return fail("{}: {}", channel_->name(), sample.error().what);
}

// What came from our process (side 0) or from the other machine.
Status RemotePair::hear(std::size_t side, std::array<Answer, 2>& answers) {
    if (side == 0) {
        if (child_.receive(answers[0])) {
            return answers[0].good ? Status{} : fail("{}", answers[0].failure.data());
        }
        return fail("our process (pid {}) {}", child_.pid(), child_.how_it_ended(end_patience_ms));
    }
    const auto body = peer_->line().receive(Kind::answer, greeting_ms);
    const std::string where = peer_->address().text();
    if (!body) return fail("{}: {}", where, body.error().what);
    const auto answer = parse_answer(*body);
    if (!answer || answer->channel != number_) return fail("{}: makes no sense", where);
    answers[1] = answer->answer;
    if (answers[1].good) return {};
    const std::string what = answers[1].failure.data();
    return what == called_off ? fail("{}", what) : fail("{}: {}", where, what);
}

Result<std::array<Answer, 2>> RemotePair::collect(int timeout_ms) {
    std::array<Answer, 2> answers;
    std::array<bool, 2> got{};
    std::int64_t deadline_ns = now_ns() + std::int64_t{timeout_ms} * 1'000'000;
    std::string failure;
    while (!got[0] || !got[1]) {
        std::array<pollfd, 2> polled{pollfd{got[0] ? -1 : child_.control(), POLLIN, 0},
                                     pollfd{got[1] ? -1 : peer_->line().get(), POLLIN, 0}};
        const std::int64_t left_ms =
            std::max<std::int64_t>((deadline_ns - now_ns()) / 1'000'000, 0);
        const int ready = ::poll(polled.data(), 2, static_cast<int>(left_ms));
        if (ready < 0 && errno == EINTR) continue;
        if (ready < 0) return fail_errno("poll");
        if (ready == 0 && failure.empty()) {
            failure =
                fmt::format("no answer of {} within {} s",
                            got[0] ? peer_->address().text() : "our process", timeout_ms / 1000);
        }
        if (ready == 0) break;
        for (std::size_t side = 0; side < 2; ++side) {
            if (polled[side].revents == 0) continue;
            got[side] = true;
            const auto heard = hear(side, answers);
            if (heard) continue;
            if (failure.empty() || failure == called_off) failure = heard.error().what;
            deadline_ns = std::min(deadline_ns, now_ns() + reason_ns);
        }
    }
    if (failure == called_off) return fail("the connection between the two processes broke");
    if (!failure.empty()) return fail("{}", failure);
    return answers;
}

// The other side's time, by our clock.
Result<RawSample> RemotePair::sample_of(const std::array<Answer, 2>& answers,
                                        int timeout_ms) const {
    RawSample sample;
    sample.remote = true;
    for (std::size_t side = 0; side < 2; ++side) {
        sample.readings[side] = answers[side].reading;
        sample.disturbances[side] = answers[side].disturbance;
    }
    Reading& theirs = sample.readings[1];
    if (theirs.last_ns == 0) return sample;
    const ClockGap& clocks = answers[0].clocks;
    const std::int64_t first_ns = sample.readings[0].first_ns;
    const auto took_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(theirs.last_ns) -
                                                   static_cast<std::uint64_t>(clocks.ahead_ns) -
                                                   static_cast<std::uint64_t>(first_ns));
    if (took_ns < -clocks.within_ns || took_ns > std::int64_t{timeout_ms} * 1'000'000) {
        return fail("{}: its clock does not fit to ours", peer_->address().text());
    }
    theirs.last_ns = first_ns + std::max<std::int64_t>(took_ns, 1);
    return sample;
}

}  // namespace via::bench
