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

void put(Writer& writer, const Question& question) {
    writer.number(static_cast<std::uint8_t>(question.bench));
    writer.number(static_cast<std::uint8_t>(question.op));
    writer.number(static_cast<std::uint8_t>(question.wait));
    writer.number(static_cast<std::uint8_t>(question.reliability));
    writer.number(std::uint8_t{question.cq});
    writer.number(std::uint8_t{question.immediate});
    writer.number(question.depth);
    writer.number(question.vis);
    writer.number(question.active_vis);
    writer.number(question.segments);
    writer.number(question.post_many);
    writer.number(question.reuse ? static_cast<std::uint8_t>(*question.reuse) : in_turn);
    writer.number(question.size);
}

Question get_question(Reader& reader) {
    Question question;
    question.bench = reader.one_of(Bench::verify);
    question.op = reader.one_of(Op::read);
    question.wait = reader.one_of(Wait::block);
    question.reliability = reader.one_of(Reliability::reception);
    question.cq = reader.flag();
    question.immediate = reader.flag();
    question.depth = reader.number<std::uint32_t>();
    question.vis = reader.number<std::uint32_t>();
    question.active_vis = reader.number<std::uint32_t>();
    question.segments = reader.number<std::uint32_t>();
    question.post_many = reader.number<std::uint32_t>();
    const auto reuse = reader.number<std::uint8_t>();
    if (reuse != in_turn) question.reuse = reuse;
    question.size = reader.number<std::uint64_t>();
    return question;
}

void put(Writer& writer, const Disturbance& told) {
    writer.number(told.involuntary);
    writer.number(told.own_switches);
    writer.number(told.run_delay_ns);
    writer.number(told.own_others_ns);
    writer.number(told.steal_ticks);
    writer.number(told.runnable);
    writer.number(told.processors);
}

Disturbance get_disturbance(Reader& reader) {
    Disturbance told;
    told.involuntary = reader.number<std::uint64_t>();
    told.own_switches = reader.number<std::uint64_t>();
    told.run_delay_ns = reader.number<std::uint64_t>();
    told.own_others_ns = reader.number<std::uint64_t>();
    told.steal_ticks = reader.number<std::uint64_t>();
    told.runnable = reader.number<std::uint32_t>();
    told.processors = reader.number<std::uint32_t>();
    return told;
}

template <class T>
std::optional<T> if_done(const Reader& reader, const T& parsed) {
    return reader.is_done() ? std::optional<T>(parsed) : std::nullopt;
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
    if (!ours || header.body_bytes > most_control_bytes) return std::nullopt;
    return if_done(reader, header);
}

std::vector<std::byte> to_bytes(const Hello& hello) {
    Writer writer;
    writer.number(hello.seconds);
    return to_bytes(Kind::hello, writer.bytes());
}

std::optional<Hello> parse_hello(std::span<const std::byte> body) {
    Reader reader(body);
    Hello hello;
    hello.seconds = reader.number<std::uint32_t>();
    return if_done(reader, hello);
}

std::vector<std::byte> to_bytes(const Open& open) {
    Writer writer;
    writer.number(open.channel);
    writer.text(open.name, name_bytes);
    put(writer, open.like);
    writer.number(open.arena_bytes);
    writer.number(open.max_size);
    return to_bytes(Kind::open, writer.bytes());
}

std::optional<Open> parse_open(std::span<const std::byte> body) {
    Reader reader(body);
    Open open;
    open.channel = reader.number<std::uint16_t>();
    open.name = reader.text(name_bytes);
    open.like = get_question(reader);
    open.arena_bytes = reader.number<std::uint64_t>();
    open.max_size = reader.number<std::uint64_t>();
    return if_done(reader, open);
}

std::vector<std::byte> to_bytes(const Opening& opening) {
    Writer writer;
    writer.number(opening.port);
    writer.number(opening.word);
    return to_bytes(Kind::opening, writer.bytes());
}

std::optional<Opening> parse_opening(std::span<const std::byte> body) {
    Reader reader(body);
    Opening opening;
    opening.port = reader.number<std::uint16_t>();
    opening.word = reader.number<std::uint64_t>();
    return if_done(reader, opening);
}

std::vector<std::byte> to_bytes(const RemoteOrder& order) {
    Writer writer;
    writer.number(order.channel);
    put(writer, order.question);
    writer.number(order.effort.warmup);
    writer.number(order.effort.messages);
    writer.number(order.effort.timed);
    return to_bytes(Kind::order, writer.bytes());
}

std::optional<RemoteOrder> parse_order(std::span<const std::byte> body) {
    Reader reader(body);
    RemoteOrder order;
    order.channel = reader.number<std::uint16_t>();
    order.question = get_question(reader);
    order.effort.warmup = reader.number<std::uint64_t>();
    order.effort.messages = reader.number<std::uint64_t>();
    order.effort.timed = reader.number<std::uint64_t>();
    return if_done(reader, order);
}

std::vector<std::byte> to_bytes(const RemoteAnswer& answer) {
    Writer writer;
    writer.number(answer.channel);
    writer.number(std::uint8_t{answer.answer.good});
    writer.number(answer.answer.reading.last_ns);
    writer.number(answer.answer.reading.cpu_ns);
    put(writer, answer.answer.disturbance);
    writer.text(answer.answer.failure.data(), answer.answer.failure.size() - 1);
    return to_bytes(Kind::answer, writer.bytes());
}

std::optional<RemoteAnswer> parse_answer(std::span<const std::byte> body) {
    Reader reader(body);
    RemoteAnswer answer;
    answer.channel = reader.number<std::uint16_t>();
    answer.answer.good = reader.flag();
    answer.answer.reading.last_ns = reader.number<std::int64_t>();
    // A year of processor time in a sample is no more of a lie than a year and a day.
    constexpr std::int64_t year_ns = 31'536'000'000'000'000;
    answer.answer.reading.cpu_ns =
        std::clamp<std::int64_t>(reader.number<std::int64_t>(), 0, year_ns);
    answer.answer.disturbance = get_disturbance(reader);
    note_failure(answer.answer, reader.text(answer.answer.failure.size() - 1));
    return if_done(reader, answer);
}

std::vector<std::byte> to_bytes(const Close& close) {
    Writer writer;
    writer.number(close.channel);
    return to_bytes(Kind::close, writer.bytes());
}

std::optional<Close> parse_close(std::span<const std::byte> body) {
    Reader reader(body);
    Close close;
    close.channel = reader.number<std::uint16_t>();
    return if_done(reader, close);
}

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
