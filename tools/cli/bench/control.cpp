#include "bench/control.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "bench/bytes.hpp"
#include "bench/clock.hpp"
#include "bench/questions.hpp"

namespace via::bench {

namespace {

constexpr std::uint32_t magic = 0x62616976;  // "viab"
constexpr std::size_t name_bytes = 16;
constexpr std::uint8_t in_turn = 255;  // in place of a percentage of buffers reused

// What a message consists of, in order: `io` writes it or reads it.
template <class Io>
void members(Io& io, Question& question) {
    io.one_of(question.bench, Bench::verify);
    io.one_of(question.op, Op::atomic);
    io.one_of(question.wait, Wait::block);
    io.one_of(question.reliability, Reliability::reception);
    io.flag(question.cq);
    io.flag(question.immediate);
    io.number(question.depth);
    io.number(question.vis);
    io.number(question.active_vis);
    io.number(question.segments);
    io.number(question.post_many);
    std::uint8_t reuse = question.reuse ? static_cast<std::uint8_t>(*question.reuse) : in_turn;
    io.number(reuse);
    question.reuse.reset();
    if (reuse != in_turn) question.reuse = reuse;
    io.number(question.size);
}

template <class Io>
void members(Io& io, Disturbance& told) {
    io.number(told.involuntary);
    io.number(told.own_switches);
    io.number(told.run_delay_ns);
    io.number(told.own_others_ns);
    io.number(told.steal_ticks);
    io.number(told.runnable);
    io.number(told.processors);
}

template <class Io>
void members(Io& io, Hello& hello) {
    io.number(hello.seconds);
}

template <class Io>
void members(Io& io, Open& open) {
    io.number(open.channel);
    io.text(open.name, name_bytes);
    members(io, open.like);
    io.number(open.arena_bytes);
    io.number(open.max_size);
}

template <class Io>
void members(Io& io, Opening& opening) {
    io.number(opening.port);
    io.number(opening.word);
}

template <class Io>
void members(Io& io, RemoteOrder& order) {
    io.number(order.channel);
    members(io, order.question);
    io.number(order.effort.warmup);
    io.number(order.effort.messages);
    io.number(order.effort.timed);
}

template <class Io>
void members(Io& io, RemoteAnswer& remote) {
    Answer& answer = remote.answer;
    io.number(remote.channel);
    io.flag(answer.good);
    io.number(answer.reading.last_ns);
    io.number(answer.reading.cpu_ns);
    // A year of processor time in a sample is no more of a lie than a year and a day.
    constexpr std::int64_t year_ns = 31'536'000'000'000'000;
    answer.reading.cpu_ns = std::clamp<std::int64_t>(answer.reading.cpu_ns, 0, year_ns);
    members(io, answer.disturbance);
    std::string failure = answer.failure.data();
    io.text(failure, answer.failure.size() - 1);
    note_failure(answer, failure);
}

template <class Io>
void members(Io& io, Close& close) {
    io.number(close.channel);
}

template <class Message>
std::vector<std::byte> written(Kind kind, Message message) {
    Writer writer;
    members(writer, message);
    return to_bytes(kind, writer.bytes());
}

template <class Message>
std::optional<Message> parsed(std::span<const std::byte> body) {
    Reader reader(body);
    Message message;
    members(reader, message);
    return reader.is_done() ? std::optional<Message>(message) : std::nullopt;
}

}  // namespace

std::vector<std::byte> to_bytes(Kind kind, std::span<const std::byte> body) {
    Writer writer;
    writer.number(magic);
    writer.number(control_version);
    writer.number(static_cast<std::uint16_t>(kind));
    writer.number(static_cast<std::uint32_t>(body.size()));
    std::vector<std::byte> bytes(writer.bytes().begin(), writer.bytes().end());
    bytes.insert(bytes.end(), body.begin(), body.end());
    return bytes;
}

std::optional<Header> parse_header(std::span<const std::byte> bytes) {
    Reader reader(bytes);
    const bool ours = reader.number<std::uint32_t>() == magic;
    Header header;
    header.version = reader.number<std::uint16_t>();
    header.kind = static_cast<Kind>(reader.number<std::uint16_t>());
    header.body_bytes = reader.number<std::uint32_t>();
    if (!ours || !reader.is_done() || header.body_bytes > most_control_bytes) return std::nullopt;
    return header;
}

std::vector<std::byte> to_bytes(const Hello& hello) { return written(Kind::hello, hello); }
std::vector<std::byte> to_bytes(const Open& open) { return written(Kind::open, open); }
std::vector<std::byte> to_bytes(const Opening& opening) { return written(Kind::opening, opening); }
std::vector<std::byte> to_bytes(const RemoteOrder& order) { return written(Kind::order, order); }
std::vector<std::byte> to_bytes(const RemoteAnswer& answer) {
    return written(Kind::answer, answer);
}
std::vector<std::byte> to_bytes(const Close& close) { return written(Kind::close, close); }

std::optional<Hello> parse_hello(std::span<const std::byte> body) { return parsed<Hello>(body); }
std::optional<Open> parse_open(std::span<const std::byte> body) { return parsed<Open>(body); }
std::optional<Opening> parse_opening(std::span<const std::byte> body) {
    return parsed<Opening>(body);
}
std::optional<RemoteOrder> parse_order(std::span<const std::byte> body) {
    return parsed<RemoteOrder>(body);
}
std::optional<RemoteAnswer> parse_answer(std::span<const std::byte> body) {
    return parsed<RemoteAnswer>(body);
}
std::optional<Close> parse_close(std::span<const std::byte> body) { return parsed<Close>(body); }

std::vector<std::byte> refusal(const std::string& why) {
    Writer writer;
    writer.text(why, std::min(why.size(), most_control_bytes));
    return to_bytes(Kind::refusal, writer.bytes());
}

std::string parse_refusal(std::span<const std::byte> body) {
    return Reader(body).text(body.size());
}

std::string objection_to(const Open& open, std::uint64_t memory_bytes) {
    if (open.max_size > most_message_bytes) {
        return fmt::format("messages of {} bytes are more than the {} that it takes", open.max_size,
                           most_message_bytes);
    }
    if (open.like.vis > most_vis) {
        return fmt::format("{} VIs are more than the {} that it makes", open.like.vis, most_vis);
    }
    if (const auto why = nonsense_of(open.like); !why.empty()) return why;
    if (open.arena_bytes > most_memory_bytes - std::min(memory_bytes, most_memory_bytes)) {
        return fmt::format("buffers of {} bytes, besides {} in use, are more than the {} it gives",
                           open.arena_bytes, memory_bytes, most_memory_bytes);
    }
    return {};
}

std::string objection_to(const Question& question, const Effort& effort, const Open& open) {
    if (question.size > open.max_size || question.depth < 1 || question.depth > most_depth ||
        question.vis > open.like.vis) {
        return "asks for more than it opened";
    }
    if (const auto why = nonsense_of(question); !why.empty()) return why;
    if (arena_bytes_for(question) > open.arena_bytes) return "asks for more than it opened";
    // Summed up one by one, or they could wrap.
    for (const std::uint64_t messages : {effort.warmup, effort.messages, effort.timed}) {
        if (messages > most_messages) {
            return fmt::format("{} messages are more than the {} of a sample", messages,
                               most_messages);
        }
    }
    return {};
}

ControlLine::ControlLine(FileHandle socket) : socket_(std::move(socket)) {}

Status ControlLine::send(std::span<const std::byte> message) {
    // Short messages, at most two under way: they fit into the socket of a peer that listens.
    const ssize_t sent = ::send(get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == static_cast<ssize_t>(message.size())) return {};
    if (sent >= 0 || errno == EAGAIN) return fail("the other machine does not listen");
    return fail("the other machine is gone (send): {}", std::strerror(errno));
}

Result<Message> ControlLine::receive(int timeout_ms) {
    const std::int64_t deadline_ns = now_ns() + std::int64_t{timeout_ms} * 1'000'000;
    const auto fill_up = [&](std::span<std::byte> to) -> Status {
        while (!to.empty()) {
            const std::int64_t left_ms = (deadline_ns - now_ns()) / 1'000'000;
            pollfd polled{get(), POLLIN, 0};
            const int ready =
                ::poll(&polled, 1, static_cast<int>(std::max<std::int64_t>(left_ms, 0)));
            if (ready < 0 && errno == EINTR) continue;
            if (ready < 0) return fail_errno("poll");
            if (ready == 0)
                return fail("the other machine said nothing for {} s", timeout_ms / 1000);
            const ssize_t got = ::recv(get(), to.data(), to.size(), MSG_DONTWAIT);
            if (got == 0) return fail("the other machine closed the connection");
            if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
            if (got < 0) return fail("the other machine is gone (recv): {}", std::strerror(errno));
            to = to.subspan(static_cast<std::size_t>(got));
        }
        return {};
    };
    std::array<std::byte, control_header_bytes> head{};
    if (auto heard = fill_up(head); !heard) return std::unexpected(heard.error());
    const auto header = parse_header(head);
    if (!header) return fail("the other machine does not speak as 'via bench' does");
    Message message{header->kind, std::vector<std::byte>(header->body_bytes)};
    if (auto heard = fill_up(message.body); !heard) return std::unexpected(heard.error());
    if (message.kind == Kind::refusal) return fail("{}", parse_refusal(message.body));
    if (header->version != control_version) {
        return fail("the other machine speaks version {} of the bench's protocol, we speak {}",
                    header->version, control_version);
    }
    return message;
}

Result<std::vector<std::byte>> ControlLine::receive(Kind kind, int timeout_ms) {
    auto message = receive(timeout_ms);
    if (!message) return std::unexpected(message.error());
    if (message->kind != kind) return fail("the other machine said something out of turn");
    return std::move(message->body);
}

}  // namespace via::bench
