// Byte streams of the kernel: pipe, Unix socket, TCP over loopback. While polling they spin on
// non-blocking calls, TCP with TCP_NODELAY; while blocking they sleep in the call.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "bench/end.hpp"
#include "bench/file_handle.hpp"
#include "bench/loops.hpp"

namespace via::bench {

namespace {

struct StreamFiles {
    int in = -1;
    int out = -1;
};

class StreamEnd : public End {
public:
    StreamEnd(Link& link, StreamFiles files) : End(link), files_(files) {}

    bool begin(const Question& question, std::uint64_t messages) {
        // A stream has no empty message: one byte stands for it.
        bytes_ = std::max<std::size_t>(question.size, 1);
        return End::begin(question, messages) && set_spinning(question.wait == Wait::poll);
    }

    bool send(std::uint64_t i) {
        const std::byte* from = stamped(i);
        for (std::size_t done = 0; done < bytes_;) {
            const ssize_t put = ::write(files_.out, from + done, bytes_ - done);
            if (put > 0) {
                done += static_cast<std::size_t>(put);
            } else if (put < 0 && errno != EAGAIN && errno != EINTR) {
                return give_up_errno("write");
            }
        }
        return true;
    }

    bool receive(std::uint64_t i) {
        std::byte* to = pools_.receive.at(i);
        for (std::size_t done = 0; done < bytes_;) {
            const ssize_t got = ::read(files_.in, to + done, bytes_ - done);
            if (got > 0) {
                done += static_cast<std::size_t>(got);
            } else if (got == 0) {
                return give_up("the other process closed its end");
            } else if (errno != EAGAIN && errno != EINTR) {
                return give_up_errno("read");
            }
        }
        return check(i);
    }

private:
    bool set_spinning(bool spinning) {
        for (const int fd : {files_.in, files_.out}) {
            const int flags = ::fcntl(fd, F_GETFL);
            if (flags < 0) return give_up_errno("fcntl");
            const int wanted = spinning ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
            if (wanted != flags && ::fcntl(fd, F_SETFL, wanted) < 0) return give_up_errno("fcntl");
        }
        return true;
    }

    StreamFiles files_;
    std::size_t bytes_ = 1;
};

class StreamChannel : public Channel {
public:
    using Channel::Channel;

    Question adapt(const Question& asked) const override {
        Question question = asked;
        question.op = Op::send;
        question.cq = false;
        question.rotate_vis = false;
        question.vis = 0;
        return question;
    }
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
        in_[0] = FileHandle(ends[0]);
        in_[1] = FileHandle(ends[1]);
        return {};
    }
};

class TcpChannel final : public StreamChannel {
public:
    explicit TcpChannel(const Places& places) : StreamChannel("tcp-socket"), places_(places) {}

    Status prepare(std::uint64_t) override {
        auto listener = places_.make_socket(1, SOCK_STREAM);
        if (!listener) return std::unexpected(listener.error());
        auto caller = places_.make_socket(0, SOCK_STREAM);
        if (!caller) return std::unexpected(caller.error());
        in_[0] = std::move(*caller);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr = places_.address(1);
        auto* generic = reinterpret_cast<sockaddr*>(&address);
        socklen_t length = sizeof address;
        const std::string where = places_.address_text(1);
        if (::bind(listener->get(), generic, length) < 0) return fail_errno("bind to " + where);
        if (::listen(listener->get(), 1) < 0) return fail_errno("listen");
        if (::getsockname(listener->get(), generic, &length) < 0) return fail_errno("getsockname");
        if (::connect(in_[0].get(), generic, length) < 0) return fail_errno("connect to " + where);
        in_[1] = FileHandle(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!in_[1]) return fail_errno("accept");
        for (const FileHandle& end : in_) {
            const int on = 1;
            if (::setsockopt(end.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0) {
                return fail_errno("TCP_NODELAY");
            }
        }
        return {};
    }

private:
    Places places_;
};

}  // namespace

std::unique_ptr<Channel> make_pipe() { return std::make_unique<PipeChannel>(); }
std::unique_ptr<Channel> make_unix_socket() { return std::make_unique<UnixChannel>(); }
std::unique_ptr<Channel> make_tcp_socket(const Places& places) {
    return std::make_unique<TcpChannel>(places);
}

}  // namespace via::bench
