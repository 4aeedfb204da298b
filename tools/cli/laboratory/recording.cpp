#include "laboratory/recording.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace via::cli {
namespace {

using lab::study::TraceEvent;
using lab::study::TraceKind;

struct Line {
    char kind = 0;
    std::uint64_t time = 0;
    std::size_t order = 0;  ///< among all, as they were read
    std::uint32_t process = 0;
    std::vector<std::uint64_t> numbers;  ///< behind the time
    std::string role, asker, asked;      ///< of a connection
};

/// Of one connection, one end.
struct End {
    std::uint64_t time = 0;
    std::uint32_t process = 0;
    std::uint64_t vi = 0;
};

std::optional<Line> line_of(std::string_view text, std::uint32_t process) {
    std::vector<std::string_view> words;
    while (!text.empty()) {
        words.push_back(text.substr(0, text.find(' ')));
        text.remove_prefix(std::min(text.size(), words.back().size() + 1));
    }
    if (words.empty() || words[0].size() != 1) return std::nullopt;
    Line line;
    line.kind = words[0][0];
    if (words.size() < (line.kind == 'A' ? 2 : 3)) return std::nullopt;
    line.process = process;
    std::size_t numbers = words.size();
    if (line.kind == 'C') {
        if (words.size() != 6) return std::nullopt;
        line.role = words[3];
        line.asker = words[4];
        line.asked = words[5];
        numbers = 3;
    }
    for (std::size_t n = 1; n < numbers; ++n) {
        std::uint64_t value = 0;
        const char* const end = words[n].data() + words[n].size();
        const auto read = std::from_chars(words[n].data(), end, value, 16);
        if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
        if (n == 1) line.time = value;
        if (n > 1) line.numbers.push_back(value);
    }
    return line;
}

class Merger {
public:
    std::expected<Recording, std::string> all(const std::vector<std::string>& processes) {
        if (processes.size() > lab::study::trace_processes_max)
            return std::unexpected("there are too many processes");
        recording_.trace.processes = static_cast<std::uint32_t>(processes.size());
        for (std::uint32_t n = 0; n < processes.size(); ++n)
            if (auto read = read_process(processes[n], n); !read)
                return std::unexpected(read.error());
        std::ranges::sort(lines_, {},
                          [](const Line& line) { return std::pair(line.time, line.order); });
        connect();
        for (const Line& line : lines_) add(line);
        return std::move(recording_);
    }

private:
    std::expected<void, std::string> read_process(std::string_view text, std::uint32_t process) {
        while (!text.empty()) {
            const std::string_view one = text.substr(0, text.find('\n'));
            text.remove_prefix(std::min(text.size(), one.size() + 1));
            auto line = line_of(one, process);
            if (!line)
                return std::unexpected("a recording has a line \"" + std::string(one) + "\"");
            line->order = lines_.size();
            lines_.push_back(std::move(*line));
        }
        return {};
    }
    /// A connection begins at its own VI's line; posts before it are of receives.
    void connect() {
        std::map<std::tuple<bool, std::string, std::string>, std::vector<End>> ends;
        for (const Line& line : lines_) {
            if (line.kind != 'C') continue;
            const bool peers = line.role == "p";
            // An asker is on the first side, who accepts on the second; peers are in between.
            const std::string side = peers ? "p" : line.role == "q" ? "q" : "a";
            std::string names = line.asker + " " + line.asked;
            if (peers)
                names = std::min(line.asker, line.asked) + " " + std::max(line.asker, line.asked);
            const std::string of = peers && line.asker > line.asked ? "P" : side;
            ends[{peers, names, of}].push_back({line.time, line.process, line.numbers[0]});
        }
        for (const auto& [key, first] : ends) {
            const auto& [peers, names, side] = key;
            const bool same =
                peers && names.substr(0, names.find(' ')) == names.substr(names.find(' ') + 1);
            if (same) {
                for (std::size_t n = 0; n + 1 < first.size(); n += 2) join(first[n], first[n + 1]);
                continue;
            }
            if (side != "q" && side != "p") continue;
            const auto other = ends.find({peers, names, peers ? "P" : "a"});
            if (other == ends.end()) continue;
            const std::size_t count = std::min(first.size(), other->second.size());
            for (std::size_t n = 0; n < count; ++n) join(first[n], other->second[n]);
        }
    }
    void join(const End& one, const End& other) {
        const auto number = static_cast<std::uint32_t>(recording_.trace.connections.size());
        recording_.trace.connections.push_back({one.process, other.process});
        for (const End& end : {one, other})
            connected_[{end.process, end.vi}].push_back({end.time, number});
    }
    /// Of a VI at that time; before the first one, that.
    std::optional<std::uint32_t> connection_of(const Line& line) const {
        const auto found = connected_.find({line.process, line.numbers[0]});
        if (found == connected_.end()) return std::nullopt;
        std::uint32_t number = found->second.front().second;
        for (const auto& [time, later] : found->second)
            if (time <= line.time) number = later;
        return number;
    }
    void add(const Line& line) {
        constexpr std::string_view kinds = "RUVSWG";
        recording_.imports += line.kind == 'I' ? 1 : 0;
        recording_.all_memory += line.kind == 'A' ? 1 : 0;
        const std::size_t kind = kinds.find(line.kind);
        if (kind == std::string_view::npos) return;
        TraceEvent event;
        event.kind = static_cast<TraceKind>(kind);
        event.process = line.process;
        std::size_t at = 0;
        if (event.kind > TraceKind::deregister_memory) {
            const auto connection = connection_of(line);
            if (!connection) {
                ++recording_.alone;
                return;
            }
            event.connection = *connection;
            at = 1;
        }
        if (event.kind >= TraceKind::rdma_write && at < line.numbers.size())
            event.remote = line.numbers[at++];
        for (; at + 1 < line.numbers.size(); at += 2)
            event.pieces.push_back({line.numbers[at], line.numbers[at + 1]});
        recording_.trace.events.push_back(std::move(event));
    }

    std::vector<Line> lines_;
    std::map<std::pair<std::uint32_t, std::uint64_t>,
             std::vector<std::pair<std::uint64_t, std::uint32_t>>>
        connected_;
    Recording recording_;
};

}  // namespace

std::expected<Recording, std::string> recording_of(const std::vector<std::string>& processes) {
    return Merger().all(processes);
}

}  // namespace via::cli
