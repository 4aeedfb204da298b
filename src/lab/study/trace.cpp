#include "lab/study/trace.hpp"

#include <limits>
#include <optional>

namespace via::lab::study {
namespace {

constexpr std::string_view magic = "VIATRACE1\n";
constexpr std::uint8_t end_of_events = 255;

/// Addresses are written as steps from the last one of the same process, to either side.
std::uint64_t step_between(std::uint64_t from, std::uint64_t to) {
    const std::uint64_t up = to - from;
    return to >= from ? up << 1 : (from - to) << 1 | 1;
}
std::uint64_t stepped(std::uint64_t from, std::uint64_t step) {
    return (step & 1) == 0 ? from + (step >> 1) : from - (step >> 1);
}

class TraceWriter {
public:
    explicit TraceWriter(const Trace& trace) : trace_(trace), last_(trace.processes, 0) {}

    std::string all() {
        number(trace_.processes);
        number(trace_.connections.size());
        for (const TraceConnection& connection : trace_.connections) {
            number(connection.from);
            number(connection.to);
        }
        for (const TraceEvent& event : trace_.events) add(event);
        bytes_ += static_cast<char>(end_of_events);
        number(trace_.events.size());
        return std::move(bytes_);
    }

private:
    void number(std::uint64_t value) {
        for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
        bytes_ += static_cast<char>(value);
    }
    void address(std::uint32_t process, std::uint64_t value) {
        number(step_between(last_[process], value));
        last_[process] = value;
    }
    void add(const TraceEvent& event) {
        bytes_ += static_cast<char>(event.kind);
        number(event.process);
        if (event.kind > TraceKind::deregister_memory) number(event.connection);
        if (event.kind >= TraceKind::rdma_write) address(trace_.peer_of(event), event.remote);
        number(event.pieces.size());
        for (const TracePiece& piece : event.pieces) {
            address(event.process, piece.address);
            number(piece.length);
        }
    }

    const Trace& trace_;
    std::vector<std::uint64_t> last_;
    std::string bytes_{magic};
};

class TraceReader {
public:
    explicit TraceReader(std::string_view bytes) : bytes_(bytes) {}

    std::expected<Trace, std::string> all() {
        if (!bytes_.starts_with(magic)) return std::unexpected("this is no trace");
        at_ = magic.size();
        trace_.processes =
            static_cast<std::uint32_t>(number(1, trace_processes_max, "number of processes"));
        const std::uint64_t connections = number(0, trace_connections_max, "number of connections");
        last_.assign(trace_.processes, 0);
        for (std::uint64_t n = 0; n < connections && !error_; ++n) {
            const std::uint32_t from = process();
            trace_.connections.push_back({from, process()});
        }
        in_events_ = true;
        while (!error_ && next()) continue;
        in_events_ = false;
        if (!error_ && at_ != bytes_.size()) fail("bytes behind the end");
        if (error_) return std::unexpected(*error_);
        return std::move(trace_);
    }

private:
    void fail(const std::string& what) {
        if (error_) return;
        const std::string event =
            in_events_ ? "event " + std::to_string(trace_.events.size() + 1) + ", " : "";
        error_ = "trace, " + event + "byte " + std::to_string(at_) + ": " + what;
    }
    void fail_above(const char* what, std::uint64_t bytes, std::uint64_t most) {
        fail(std::string(what) + std::to_string(bytes) + " bytes, at most " + std::to_string(most) +
             " are allowed");
    }
    std::uint8_t byte() {
        if (at_ == bytes_.size()) {
            fail("it ends too early");
            return 0;
        }
        return static_cast<std::uint8_t>(bytes_[at_++]);
    }
    /// Of at most 9 bytes, in the shortest way.
    std::uint64_t number(std::uint64_t least, std::uint64_t most, const char* what) {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 63 && !error_; shift += 7) {
            const std::uint8_t part = byte();
            value |= std::uint64_t{part & 127U} << shift;
            if (part >= 128) continue;
            if (part == 0 && shift != 0) fail(std::string(what) + ": written too long");
            if (value < least || value > most) fail(std::string(what) + " is out of range");
            return error_ ? least : value;
        }
        fail(std::string(what) + ": too long a number");
        return least;
    }
    std::uint32_t process() {
        const std::uint64_t most = trace_.processes == 0 ? 0 : trace_.processes - 1;
        return static_cast<std::uint32_t>(number(0, most, "process"));
    }
    std::uint64_t address(std::uint32_t of, std::uint64_t length) {
        const std::uint64_t step = number(0, (trace_address_max << 1) | 1, "address");
        if (error_) return 0;
        const std::uint64_t value = stepped(last_[of], step);
        if (value > trace_address_max || length > trace_address_max - value || step == 1)
            fail("an address that is none");
        return last_[of] = error_ ? 0 : value;
    }
    /// False: that was the last one.
    bool next() {
        const std::uint8_t kind = byte();
        if (kind == end_of_events) {
            const std::uint64_t count = trace_.events.size();
            number(count, count, "number of events");
            return false;
        }
        if (kind >= trace_kinds) fail("an event of no kind");
        if (error_) return false;
        TraceEvent event;
        event.kind = static_cast<TraceKind>(kind);
        event.process = process();
        if (event.kind > TraceKind::deregister_memory && !error_) read_connection(event);
        if (error_) return false;
        if (event.kind >= TraceKind::rdma_write) event.remote = address(trace_.peer_of(event), 0);
        const bool post = event.kind > TraceKind::deregister_memory;
        const std::uint64_t count =
            number(post ? 0 : 1, post ? trace_pieces_max : 1, "number of pieces");
        for (std::uint64_t n = 0; n < count && !error_; ++n) read_piece(event);
        if (!error_) check_length(event);
        trace_.events.push_back(std::move(event));
        return !error_;
    }
    void read_connection(TraceEvent& event) {
        const std::uint64_t count = trace_.connections.size();
        if (count == 0) return fail("a post without connections");
        event.connection = static_cast<std::uint32_t>(number(0, count - 1, "connection"));
        const TraceConnection& connection = trace_.connections[event.connection];
        if (connection.from != event.process && connection.to != event.process)
            fail("a post on others' connection");
    }
    void read_piece(TraceEvent& event) {
        TracePiece piece;
        piece.address = address(event.process, 0);
        piece.length = number(0, std::numeric_limits<std::uint64_t>::max() >> 1, "length");
        if (piece.length > trace_piece_max)
            fail_above("a piece of ", piece.length, trace_piece_max);
        if (piece.length > trace_address_max - piece.address) fail("a piece beyond all addresses");
        event.pieces.push_back(piece);
    }

    /// Without an end a few bytes would be replayed for ever.
    void check_length(const TraceEvent& event) {
        const std::uint64_t length = event.length();
        if (event.kind < TraceKind::send) return;
        if (length > trace_message_max)
            return fail_above("a message of ", length, trace_message_max);
        messages_bytes_ += length;
        if (messages_bytes_ > trace_messages_max)
            fail_above("messages with ", messages_bytes_, trace_messages_max);
    }

    std::string_view bytes_;
    std::size_t at_ = 0;
    bool in_events_ = false;
    std::uint64_t messages_bytes_ = 0;  ///< of all so far
    Trace trace_;
    std::vector<std::uint64_t> last_;
    std::optional<std::string> error_;
};

}  // namespace

std::string encode(const Trace& trace) { return TraceWriter(trace).all(); }

std::expected<Trace, std::string> decode(std::string_view bytes) {
    return TraceReader(bytes).all();
}

}  // namespace via::lab::study
