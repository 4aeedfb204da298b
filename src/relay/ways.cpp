#include "relay/ways.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/printable.hpp"

namespace via::relay {

namespace {

constexpr std::string_view blanks = " \t\r";

std::vector<std::string_view> words_of(std::string_view line) {
    line = line.substr(0, line.find('#'));
    std::vector<std::string_view> words;
    for (std::size_t at = line.find_first_not_of(blanks); at != line.npos;
         at = line.find_first_not_of(blanks, at)) {
        const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
        words.push_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

bool is_number(std::string_view text, std::uint64_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

/// Short, printable: it may be any file.
std::string shown(std::string_view text) {
    constexpr std::size_t most = 40;
    return '"' + printable(text.substr(0, most)) + '"' + (text.size() > most ? "..." : "");
}

}  // namespace

/// What is wrong, or nothing.
std::string Ways::take(std::span<const std::string_view> words, const ParseAddress& address) {
    const bool is_way = words.front() == "way" && words.size() == 5;
    if (!is_way && !(words.front() == "relay" && words.size() == 2))
        return "want \"way OWN TO NEXT NANOSECONDS\" or \"relay ADDRESS\", not " +
               shown(words.front());
    std::vector<HostAddress> addresses;
    for (const std::string_view word : words.subspan(1, is_way ? 3 : 1)) {
        const auto read = address(word);
        if (!read) return shown(word) + " is no address";
        addresses.push_back(with_port(*read, 0));
    }
    if (!is_way) {
        relays_.insert(HostOnly(addresses.front()));
        return {};
    }
    Way way{addresses[0], addresses[1], addresses[2], 0};
    if (!is_number(words[4], way.ns)) return shown(words[4]) + " is no number of nanoseconds";
    if (ways_.size() == ways_max) return "there are too many ways";
    if (std::ranges::find(own_, way.own) == own_.end()) own_.push_back(way.own);
    const auto [found, is_new] = fastest_.emplace(HostOnly(way.to), ways_.size());
    if (!is_new && way.ns < ways_[found->second].ns) found->second = ways_.size();
    ways_.push_back(way);
    return {};
}

std::expected<Ways, std::string> Ways::parse(std::string_view text, const std::string& file,
                                             const ParseAddress& address) {
    Ways ways;
    std::size_t number = 0;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const auto words = words_of(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        ++number;
        if (words.empty()) continue;
        const std::string wrong = ways.take(words, address);
        if (!wrong.empty()) {
            std::string where = file;
            where.append(":").append(std::to_string(number)).append(": ");
            return std::unexpected(where.append(wrong));
        }
    }
    return ways;
}

Ways::Nexts Ways::from(const HostAddress& own) const {
    const HostOnly ours(own);
    std::map<HostOnly, std::vector<const Way*>> found;
    for (const Way& way : ways_)
        if (HostOnly(way.own) == ours) found[HostOnly(way.to)].push_back(&way);
    Nexts nexts;
    for (auto& [to, ways] : found) {
        std::ranges::sort(ways, {}, [](const Way* way) { return std::pair(way->ns, way); });
        for (const Way* const way : ways) nexts[to].push_back(way->next);
    }
    return nexts;
}

const Way* Ways::fastest(const HostAddress& to) const {
    const auto found = fastest_.find(HostOnly(to));
    return found == fastest_.end() ? nullptr : &ways_[found->second];
}

}  // namespace via::relay
