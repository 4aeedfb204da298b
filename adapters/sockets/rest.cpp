#include <netinet/in.h>
#include <sys/syscall.h>

#include "hand_back.hpp"
#include "inbox.hpp"
#include "kernel_socket.hpp"

namespace via::sockets {

namespace {

int new_socket() {
    return static_cast<int>(real().syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

/// A connection of this process with itself.
struct Loop {
    Loop() {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        const auto of = reinterpret_cast<sockaddr*>(&address);
        const int listener = new_socket();
        writer = new_socket();
        if (listener >= 0 && writer >= 0 && bind(listener, of, length) == 0 &&
            ::listen(listener, 1) == 0 && getsockname(listener, of, &length) == 0 &&
            real().connect(writer, of, length) == 0)
            reader = real().accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (listener >= 0) real().close(listener);
    }
    ~Loop() {
        if (writer >= 0) real().close(writer);
        if (reader >= 0) real().close(reader);
    }
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;
    int writer = -1, reader = -1;
};

/// All descriptors of this process that are this connection become `other`.
void replace_everywhere(const Stream* stream, int other) {
    for_sockets([&](int fd, Entry& entry) {
        if (entry.stream.load() != stream) return;
        const int flags = real().fcntl(fd, F_GETFD);
        if (flags < 0) return;
        real().dup3(other, fd, (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
        if (!is_borrowed()) entry.kind.store(Kind::plain);
    });
}

}  // namespace

/// The peer is gone, and what it stored last is to be read by somebody who sees the kernel alone:
/// the descriptor becomes another socket, with those bytes and their end. Its addresses are not the
/// same.
void pass_on_the_rest(int fd, Entry& entry, const PipeEnd& end, Reason reason) {
    if (reason == Reason::nested) return;
    std::vector<std::byte> bytes(unread(fd, entry));
    if (bytes.empty()) return;
    const Loop loop;  // before anything is taken: there may be no descriptor left for it
    if (loop.reader < 0 || !end.reading().lock.take()) return;
    const iovec part{bytes.data(), bytes.size()};
    Buffers to(&part, 1);
    bool room = false;
    bytes.resize(take(fd, end, to, 0, room));
    end.reading().lock.let_go();
    send_all(loop.writer, bytes.data(), std::min(bytes.size(), room_in_kernel(loop.writer)));
    real().fcntl(loop.reader, F_SETFL, real().fcntl(fd, F_GETFL));
    replace_everywhere(entry.stream.load(), loop.reader);
    // Nothing of it is the old one's any more.
    end.own().wakes_drained.store(end.peer().wakes_sent.load());
    set_state(end.pipe(), returned);
}

}  // namespace via::sockets
