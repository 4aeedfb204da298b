// Byte streams of the kernel: pipe, Unix socket, TCP over loopback (with TCP_NODELAY), bare and
// under TLS.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "bench/file_handle.hpp"
#include "bench/loops.hpp"
#include "bench/stream_end.hpp"
#include "bench/tls.hpp"

namespace via::bench {

namespace {

class StreamChannel : public Channel {
public:
    using Channel::Channel;

    Question adapt(const Question& asked) const override { return without_vis(asked); }
    std::string refuses(const Question&) const override { return {}; }
    std::unique_ptr<Endpoint> endpoint(Link& link) override {
        const std::size_t own = link.own();
        in_[link.other()].reset();
        out_[link.other()].reset();
        return std::make_unique<MessageEndpoint<StreamEnd>>(
            link, StreamFiles{in_[own].get(), out_[own] ? out_[own].get() : in_[own].get()});
    }

    void drop_files() override {
        for (auto* files : {&in_, &out_}) {
            for (FileHandle& file : *files) file.reset();
        }
    }

protected:
    std::array<FileHandle, 2> in_;  // by side; also out when there is no out_
    std::array<FileHandle, 2> out_;
};

class PipeChannel final : public StreamChannel {
public:
    PipeChannel() : StreamChannel("pipe") {}

    Status prepare(std::uint64_t) override {
        for (std::size_t from = 0; from < 2; ++from) {
            int ends[2];
            if (::pipe2(ends, O_CLOEXEC) < 0) return fail_errno("pipe2");
            in_[1 - from] = FileHandle(ends[0]);
            out_[from] = FileHandle(ends[1]);
            // As much as any user may have; a smaller pipe only costs switches.
            ::fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        }
        return {};
    }
};

class UnixChannel final : public StreamChannel {
public:
    UnixChannel() : StreamChannel("unix-socket") {}

    Status prepare(std::uint64_t) override {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
            return fail_errno("socketpair");
        }
        // As with pipes and UDP sockets: as much as any user may have, which the system bounds.
        constexpr int wanted = 1 << 20;
        for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof wanted);
        in_[0] = FileHandle(ends[0]);
        in_[1] = FileHandle(ends[1]);
        return {};
    }
};

Status without_delay(const FileHandle& end) {
    const int on = 1;
    const int done = ::setsockopt(end.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return done < 0 ? fail_errno("setsockopt TCP_NODELAY") : Status{};
}

Status connect_to(const FileHandle& end, const Address& address) {
    if (::connect(end.get(), address.get(), address.bytes()) < 0) {
        return fail_errno("connect to " + address.text());
    }
    return without_delay(end);
}

// Between machines the second side listens and the first one learns where. `end` is the first
// side's socket or the second side's listener; whatever hangs is ended by the parent's watchdog.
class RemoteTcpEndpoint final : public Endpoint {
public:
    RemoteTcpEndpoint(Link& link, const FileHandle& end, const Places& places)
        : link_(link), end_(end), places_(places) {}

    Status open() override {
        const auto own = Address::own_of(end_.get());
        if (!own) return std::unexpected(own.error());
        link_.mine().port = own->port();
        if (!link_.meet()) return fail("{}", called_off);
        const Address& other = places_.address(link_.other());
        if (link_.is_first()) {
            const auto port = static_cast<std::uint16_t>(link_.theirs().port);
            if (auto done = connect_to(end_, other.with_port(port)); !done) return done;
        } else if (auto done = accept_from(other); !done) {
            return done;
        }
        const int socket = link_.is_first() ? end_.get() : accepted_.get();
        stream_.emplace(link_, StreamFiles{socket, socket});
        return link_.meet() ? Status{} : fail("{}", called_off);
    }

    Result<Reading> measure(const Question& question, const Effort& effort) override {
        return run_messages(*stream_, link_, question, effort);
    }

private:
    // Nobody else's machine.
    Status accept_from(const Address& other) {
        for (;;) {
            accepted_ = FileHandle(::accept4(end_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!accepted_) return fail_errno("accept");
            const auto peer = Address::peer_of(accepted_.get());
            if (peer && peer->same_machine(other)) return without_delay(accepted_);
        }
    }

    Link& link_;
    const FileHandle& end_;
    const Places& places_;
    FileHandle accepted_;
    std::optional<StreamEnd> stream_;
};

class TcpChannel : public StreamChannel {
public:
    /// `congestion_control`: of the kernel's, by name; empty: its default.
    TcpChannel(const char* name, std::string congestion_control, const Places& places)
        : StreamChannel(name),
          congestion_control_(std::move(congestion_control)),
          places_(places) {}

    Status prepare(std::uint64_t) override {
        if (places_.remote()) return places_.own() == 0 ? make(0, in_[0]) : listen(in_[1]);
        FileHandle listener;
        if (auto listening = listen(listener); !listening) return listening;
        if (auto made = make(0, in_[0]); !made) return made;
        const auto there = Address::own_of(listener.get());
        if (!there) return std::unexpected(there.error());
        if (auto connected = connect_to(in_[0], *there); !connected) return connected;
        in_[1] = FileHandle(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!in_[1]) return fail_errno("accept");
        return without_delay(in_[1]);
    }

    std::unique_ptr<Endpoint> endpoint(Link& link) override {
        if (!places_.remote()) return StreamChannel::endpoint(link);
        return std::make_unique<RemoteTcpEndpoint>(link, in_[link.own()], places_);
    }

private:
    Status make(std::size_t side, FileHandle& end) const {
        auto made = places_.make_socket(side, SOCK_STREAM);
        if (!made) return std::unexpected(made.error());
        end = std::move(*made);
        if (congestion_control_.empty()) return {};
        const int done =
            ::setsockopt(end.get(), IPPROTO_TCP, TCP_CONGESTION, congestion_control_.data(),
                         static_cast<socklen_t>(congestion_control_.size()));
        return done < 0 ? fail_errno("setsockopt TCP_CONGESTION " + congestion_control_) : Status{};
    }
    Status listen(FileHandle& listener) const {
        if (auto made = make(1, listener); !made) return made;
        const Address& here = places_.address(1);
        if (::bind(listener.get(), here.get(), here.bytes()) < 0) {
            return fail_errno("bind to " + here.machine_text());
        }
        return ::listen(listener.get(), 1) < 0 ? fail_errno("listen") : Status{};
    }

    std::string congestion_control_;
    Places places_;
};

class TlsEndpoint final : public Endpoint {
public:
    TlsEndpoint(Link& link, int socket) : link_(link), socket_(socket) {}

    Status open() override {
        if (auto begun = begin_tls(socket_, link_.is_first()); !begun) return begun;
        stream_.emplace(link_, StreamFiles{socket_, socket_, tls_calls()});
        return link_.meet() ? Status{} : fail("{}", called_off);
    }

    Result<Reading> measure(const Question& question, const Effort& effort) override {
        return run_messages(*stream_, link_, question, effort);
    }

private:
    Link& link_;
    int socket_;
    std::optional<StreamEnd> stream_;
};

class TlsChannel final : public TcpChannel {
public:
    explicit TlsChannel(const Places& places) : TcpChannel("tls", "", places) {}

    std::string version() const override { return tls_version(); }

    std::unique_ptr<Endpoint> endpoint(Link& link) override {
        in_[link.other()].reset();
        return std::make_unique<TlsEndpoint>(link, in_[link.own()].get());
    }
};

}  // namespace

std::unique_ptr<Channel> make_pipe() { return std::make_unique<PipeChannel>(); }
std::unique_ptr<Channel> make_unix_socket() { return std::make_unique<UnixChannel>(); }
std::unique_ptr<Channel> make_tcp_socket(const Places& places) {
    return std::make_unique<TcpChannel>("tcp-socket", "", places);
}
std::unique_ptr<Channel> make_tcp_cubic(const Places& places) {
    return std::make_unique<TcpChannel>("tcp-cubic", "cubic", places);
}
std::unique_ptr<Channel> make_tls(const Places& places) {
    return std::make_unique<TlsChannel>(places);
}

}  // namespace via::bench
