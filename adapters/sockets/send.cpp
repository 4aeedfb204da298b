#include "hand_back.hpp"
#include "inbox.hpp"
#include "kernel_socket.hpp"
#include "waiting.hpp"

namespace via::sockets {

namespace {

/// The peer reads no more: the kernel answers what is sent.
bool nobody_reads(const PipeEnd& end) {
    std::uint32_t one = 1;
    if (end.peer_sending().fin.load() == 0 && end.own().at_end.load() == 1)
        end.own().at_end.compare_exchange_strong(one, 2);  // it ended without a word
    return end.peer().closed.load() != 0 || end.own().at_end.load() == 2 ||
           end.sending().fin.load() != 0;
}

/// What is left of a call that has sent `done` bytes already.
ssize_t finish_in_kernel(int fd, Buffers& from, std::size_t done, int flags) {
    while (!from.done()) {
        std::array<iovec, kernel_parts> parts;
        const int count = from.rest(parts.data(), kernel_parts);
        if (done > 0) flags |= MSG_NOSIGNAL;  // a call that sent something says so
        const ssize_t sent = kernel_send(fd, parts.data(), count, flags);
        if (sent < 0) return done > 0 ? static_cast<ssize_t>(done) : sent;
        std::size_t asked = 0;
        for (int at = 0; at < count; ++at) asked += parts[static_cast<std::size_t>(at)].iov_len;
        done += static_cast<std::size_t>(sent);
        from.use(static_cast<std::size_t>(sent));
        if (static_cast<std::size_t>(sent) < asked) break;
    }
    return static_cast<ssize_t>(done);
}

/// Adds to `done`. Nothing: the bytes go another way by now, and the rest is still to be sent.
std::optional<ssize_t> send_stored(int fd, Entry& entry, const PipeEnd& end, Buffers& from,
                                   int flags, std::size_t& done) {
    const auto sent_or = [&](int error) {
        return done > 0 ? static_cast<ssize_t>(done) : fails(error);
    };
    const bool nonblocking = is_nonblocking(entry, flags);
    if (time_to_look(entry, of_sends)) look_at_kernel(fd, end);
    for (Waited waited;;) {
        if (const int error = take_error(end)) {
            end.own().at_end.store(2);
            if (done == 0 && end.sending().fin.load() == 0) return fails(error);
        }
        if (nobody_reads(end))
            return done > 0 ? static_cast<ssize_t>(done) : finish_in_kernel(fd, from, done, flags);
        if (!end.sending().lock.take()) return sent_or(EINTR);
        if (end.pipe().state() != stored) {
            end.sending().lock.let_go();
            return std::nullopt;
        }
        SendEnd& sending = end.sending();
        std::size_t now = 0;
        do {
            const std::size_t some = end.store(from);
            now += some;
            if (some > 0) {
                std::atomic_thread_fence(std::memory_order_seq_cst);  // against about_to_sleep()
                wake(fd, end, for_data);
            }
            if (from.done()) break;
            // Whoever waits waits a little for room before there is a larger ring; whoever does
            // not has to find as much room as the kernel has.
            const bool larger = waited.rounds > 0 || sending.lines < PipeEnd::usual_lines ||
                                (nonblocking && sending.lines < PipeEnd::eager_lines);
            // The kernel has to take all of it, should this end hand back.
            if (!larger || (sending.lines >= PipeEnd::usual_lines &&
                            end.bytes_when_grown() > room_in_kernel(fd)))
                break;
            if (!end.grow()) break;
        } while (true);
        if (!from.done()) sending.full.fetch_add(1);
        end.sending().lock.let_go();
        done += now;
        if (from.done()) return static_cast<ssize_t>(done);
        if (nonblocking) return sent_or(EAGAIN);
        if (now > 0) waited.rounds = 0;
        if (!wait_for_room(fd, entry, end, waited)) return sent_or(errno);
        if (end.peer().wants_kernel.load() != 0 && !through_memory(fd, entry)) return std::nullopt;
    }
}

}  // namespace

ssize_t send(int fd, Entry& entry, const iovec* parts, int count, int flags) {
    if ((flags & (MSG_OOB | MSG_ZEROCOPY | MSG_FASTOPEN)) != 0)
        hand_back(fd, entry, Reason::unusual_call);
    Buffers from(parts, count);
    std::size_t done = 0;  // through memory, before the bytes went another way
    const auto by_kernel = [&] {
        return done > 0 ? finish_in_kernel(fd, from, done, flags)
                        : kernel_send(fd, parts, count, flags);
    };
    for (;;) {
        if (entry.kind.load(std::memory_order_relaxed) == Kind::plain) return by_kernel();
        ssize_t bytes = 0;
        Pipe* const pipe = pipe_or_kernel(fd, entry, entry.sends, bytes, by_kernel);
        if (pipe == nullptr) return bytes;
        const PipeEnd end = entry.end();
        if (pipe->state() == before) {
            const std::uint64_t one = one_send(end.side());
            if ((pipe->word.fetch_add(one) & state_mask) != before) {
                pipe->word.fetch_sub(one);
                continue;
            }
            const ssize_t sent = by_kernel();
            pipe->word.fetch_sub(one);
            if (sent > 0) step(fd, entry);
            return sent;
        }
        if (!through_memory(fd, entry)) continue;
        if (from.done()) return 0;
        if (pipe->state() == returned) return by_kernel();
        if (pipe->state() == returning) {
            if (is_deserted(fd, end)) return by_kernel();
            nap();
            continue;
        }
        if (const auto result = send_stored(fd, entry, end, from, flags, done)) return *result;
    }
}

}  // namespace via::sockets
