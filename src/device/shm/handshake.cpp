#include "device/shm/handshake.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/asymmetric_fence.hpp"
#include "device/shm/message.hpp"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace via::device::shm {

namespace {

Breakdown from(const Failure& failed) { return {failed.status, failed.text}; }

std::unexpected<Breakdown> nobody_there() {
    return std::unexpected(Breakdown{Status::no_match, {}});
}

}  // namespace

Handshake::Handshake(System& system) : system_(&system) {
    if (has_heavy_fence(FenceReach::host)) introduction_.features = feature_asymmetric_fences;
}

Refusal to_refusal(Status status) {
    return status == Status::error_resource ? Refusal::resources : Refusal::memory;
}

std::expected<Handshake, Breakdown> Handshake::begin(System& system, const HostAddress& address,
                                                     std::string target) {
    Handshake handshake(system);
    handshake.introduction_.address = address;
    handshake.target_ = std::move(target);
    handshake.introduction_.name = handshake.target_;
    handshake.introduction_.socket = Descriptor(system, system.socket());
    if (!handshake.introduction_.socket.valid()) {
        return std::unexpected(from(failure("cannot make a socket (socket)", errno).error()));
    }
    return handshake;
}

std::expected<Handshake, Breakdown> Handshake::accept(System& system, Descriptor socket) {
    Handshake handshake(system);
    handshake.introduction_.socket = std::move(socket);
    handshake.introduction_.accepted = true;
    handshake.connected_ = true;
    if (auto checked = handshake.check_credentials(); !checked) {
        return std::unexpected(checked.error());
    }
    return handshake;
}

Handshake::Step Handshake::advance(const Rendezvous& rendezvous, const Layout& layout,
                                   const HostAddress& ours) {
    return connected_ ? receive(rendezvous, layout) : connect(rendezvous, layout, ours);
}

Handshake::Step Handshake::connect(const Rendezvous& rendezvous, const Layout& layout,
                                   const HostAddress& ours) {
    const auto reach = rendezvous.connect(socket(), address(), target_);
    if (!reach) return std::unexpected(from(reach.error()));
    switch (*reach) {
        case Folder::Reach::connected:
            break;
        case Folder::Reach::busy:
            return Progress::again;
        case Folder::Reach::gone:
            return nobody_there();
        case Folder::Reach::failed:
            return std::unexpected(
                from(failure("cannot connect to " + target_ + " (connect)", errno).error()));
    }
    connected_ = true;
    if (auto checked = check_credentials(); !checked) return std::unexpected(checked.error());
    if (auto alive = watch_process(); !alive) return std::unexpected(alive.error());
    auto memory = OwnMemory::create(*system_, layout);
    if (!memory) return std::unexpected(from(memory.error()));
    introduction_.own = std::move(*memory);
    auto mailbox = MailboxMemory::create(*system_);
    if (!mailbox) return std::unexpected(from(mailbox.error()));
    introduction_.mailbox = std::move(*mailbox);
    if (auto sent = send_hello(ours, rendezvous.name()); !sent) {
        return std::unexpected(sent.error());
    }
    return Progress::waiting;
}

std::expected<void, Breakdown> Handshake::check_credentials() {
    ucred peer{};
    socklen_t length = sizeof peer;
    if (system_->getsockopt(socket(), SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) {
        return std::unexpected(
            from(failure("cannot tell whose NIC it is (SO_PEERCRED)", errno).error()));
    }
    if (peer.uid != system_->geteuid()) {
        return std::unexpected(turn_away(Refusal::user, "it belongs to another user"));
    }
    introduction_.pid = peer.pid;
    return {};
}

/// Gets the descriptor that tells of the peer's death. Without one (our own process, or a process
/// of another pid namespace before Linux 6.5) its socket has to tell.
std::expected<void, Breakdown> Handshake::watch_process() {
    if (introduction_.pid == system_->getpid()) return {};
    int fd = -1;
    socklen_t length = sizeof fd;
    if (system_->getsockopt(socket(), SOL_SOCKET, SO_PEERPIDFD, &fd, &length) < 0) {
        if (introduction_.pid <= 0) return {};
        fd = system_->pidfd_open(introduction_.pid);
        if (fd < 0 && errno == ESRCH) return nobody_there();
        if (fd < 0) {
            return std::unexpected(
                from(failure("cannot watch the peer (pidfd_open)", errno).error()));
        }
    }
    introduction_.process = Descriptor(*system_, fd);
    // A forked child may still hold the socket of a peer that has ended.
    if (system_->poll_input(fd) > 0) return nobody_there();
    return {};
}

std::expected<void, Breakdown> Handshake::send_hello(const HostAddress& ours,
                                                     const std::string& name) {
    const Hello hello = make_hello(introduction_.own.layout(), ours, name, introduction_.features);
    const int attached[] = {introduction_.own.descriptor(), introduction_.mailbox.descriptor()};
    const int error = send_message(*system_, socket(), std::as_bytes(std::span(&hello, 1)),
                                   std::span(attached).first(accepted() ? 1 : 2));
    introduction_.own.close_descriptor();
    introduction_.mailbox.close_descriptor();
    if (error == 0) return {};
    if (means_gone(error)) {
        if (accepted()) return nobody_there();
        return {};  // why, it may have said: receive() finds that, or nothing
    }
    return std::unexpected(from(failure("cannot greet the peer (sendmsg)", error).error()));
}

Handshake::Step Handshake::receive(const Rendezvous& rendezvous, const Layout& layout) {
    Message message(*system_);
    const int error = message.receive(socket());
    if (error == EAGAIN) return Progress::waiting;
    if (means_gone(error) || (error == 0 && message.bytes().empty())) return nobody_there();
    if (error != 0) {
        return std::unexpected(
            from(failure("cannot hear the peer's greeting (recvmsg)", error).error()));
    }
    if (message.cut()) {
        return std::unexpected(turn_away(Refusal::resources,
                                         "its memory did not arrive; raise the limit on open "
                                         "files (ulimit -n)"));
    }
    return consider(message.bytes(), message.descriptors(), rendezvous, layout);
}

Handshake::Step Handshake::consider(std::span<const std::byte> message,
                                    std::span<const int> descriptors, const Rendezvous& rendezvous,
                                    const Layout& layout) {
    const auto hello = check_hello(message);
    if (!hello) {
        const Unwelcome& why = hello.error();
        if (!why.by_peer) return std::unexpected(turn_away(why.reason, why.text));
        return std::unexpected(Breakdown{
            to_status(why.reason),
            "shm: the peer refused us (" + std::string(to_string(why.reason)) + "): " + why.text});
    }
    if (auto checked = check_address(*hello, rendezvous); !checked) {
        return std::unexpected(checked.error());
    }
    if (descriptors.size() != (accepted() ? 2 : 1)) {
        return std::unexpected(
            turn_away(Refusal::memory, accepted() ? "it did not attach exactly two descriptors"
                                                  : "it did not attach exactly one descriptor"));
    }
    auto peer = PeerMemory::map(*system_, descriptors[0], {hello->ring_slots, hello->arena_bytes});
    if (!peer) {
        refuse(to_refusal(peer.error().status), peer.error().text);
        return std::unexpected(from(peer.error()));
    }
    introduction_.peer = std::move(*peer);
    introduction_.features &= hello->features;
    if (!accepted()) return Progress::introduced;
    auto mailbox = MailboxMemory::map(*system_, descriptors[1]);
    if (!mailbox) {
        refuse(to_refusal(mailbox.error().status), mailbox.error().text);
        return std::unexpected(from(mailbox.error()));
    }
    introduction_.mailbox = std::move(*mailbox);
    // Only a name whose process the kernel confirms may serve later connections to it.
    int pid = 0;
    const std::string name(hello->name, hello->name_length);
    if (parse_nic_name(name, pid) && pid == introduction_.pid) introduction_.name = name;
    return prepare_reply(layout);
}

/// We have come to an address: who answers must be there. Who came to us must have its name in the
/// directory of the address that it gives: our programs are told that address.
std::expected<void, Breakdown> Handshake::check_address(const Hello& hello,
                                                        const Rendezvous& rendezvous) {
    HostAddress theirs;
    theirs.length = hello.address_length;
    std::memcpy(theirs.bytes.data(), hello.address, hello.address_length);
    if (!accepted()) {
        if (theirs == address()) return {};
        return std::unexpected(turn_away(Refusal::address, "it answers with another NIC address"));
    }
    const auto known = rendezvous.knows(theirs, {hello.name, hello.name_length});
    if (!known) {
        refuse(to_refusal(known.error().status), known.error().text);
        return std::unexpected(from(known.error()));
    }
    if (!*known) {
        return std::unexpected(
            turn_away(Refusal::address, "it is not in the directory of its NIC address"));
    }
    introduction_.address = theirs;
    return {};
}

Handshake::Step Handshake::prepare_reply(const Layout& layout) {
    if (auto alive = watch_process(); !alive) {
        refuse(to_refusal(alive.error().status), alive.error().text);
        return std::unexpected(alive.error());
    }
    auto own = OwnMemory::create(*system_, layout);
    if (!own) {
        refuse(to_refusal(own.error().status), own.error().text);
        return std::unexpected(from(own.error()));
    }
    introduction_.own = std::move(*own);
    return Progress::introduced;
}

std::expected<void, Breakdown> Handshake::reply(const HostAddress& ours,
                                                const std::string& our_name) {
    return send_hello(ours, our_name);
}

void Handshake::refuse(Refusal reason, const std::string& text) {
    const Farewell farewell = make_refusal(reason, text);
    // If it cannot be sent, the closed socket says enough.
    send_message(*system_, socket(), std::as_bytes(std::span(&farewell, 1)));
}

Breakdown Handshake::turn_away(Refusal reason, const std::string& text) {
    refuse(reason, text);
    return {to_status(reason), "shm: a peer (process " + std::to_string(introduction_.pid) +
                                   ") is refused (" + to_string(reason) + "): " + text};
}

}  // namespace via::device::shm
