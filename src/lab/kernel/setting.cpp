#include "lab/kernel/setting.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace via::lab::kernel {
namespace {

constexpr Choice all[] = {
    {"stack", "via", "messages by VIA"},
    {"stack", "tcp", "the same messages by sockets and TCP"},
    {"wait", "poll", "who waits polls"},
    {"wait", "block", "who waits polls for a while, then sleeps"},
    {"processors", "1", "one processor"},
    {"processors", "2", "two: interrupts go to the other one, and locks cost more"},
    {"wiring", "cable", "two hosts back to back"},
    {"wiring", "switch", "through a switch that stores a packet and sends it on"},
};
constexpr std::int64_t mtu_most = 65536;

class Chooser {
public:
    Chooser(const Machine& machine, const Options& options)
        : machine_(machine), options_(options) {}

    std::expected<Setting, std::string> make() {
        Setting setting;
        setting.tcp = chosen("stack") == "tcp";
        setting.blocks = chosen("wait") == "block";
        setting.smp = chosen("processors") == "2";
        setting.mtu = mtu();
        if (machine_.has(Has::ethernet)) {
            setting.switched = chosen("wiring") == "switch";
            for (const auto& [word, value] : options_)
                if (!is_word(machine_, word))
                    fail(word,
                         "there is no \"" + word +
                             "\" of this machine; there are stack, wait, processors, wiring, mtu");
        }
        if (error_) return std::unexpected(*error_);
        return setting;
    }

private:
    /// `word` is to blame.
    void fail(std::string_view word, const std::string& what) {
        if (!error_) error_ = refusal(machine_, options_, {word}, what);
    }
    std::string_view text(std::string_view word) {
        const auto found = options_.find(word);
        if (found != options_.end()) return found->second;
        if (!error_) error_ = missing(machine_, word);
        return {};
    }
    std::string_view chosen(std::string_view word) {
        const std::string_view value = text(word);
        std::string values;
        for (const Choice& choice : all) {
            if (choice.word != word) continue;
            if (choice.value == value) return value;
            values += (values.empty() ? "" : ", ") + std::string(choice.value);
        }
        fail(word, std::string(word) + "=" + std::string(value) + ": want one of " + values);
        return {};
    }
    std::int64_t mtu() {
        const std::string_view value = text("mtu");
        const std::int64_t least =
            std::max(machine_.costs.via_header, machine_.costs.tcp_header) + 1;
        const bool ethernet = machine_.has(Has::ethernet);
        const std::int64_t buffer = machine_.costs.nic_buffer;
        const std::int64_t room =
            buffer < machine_.costs.frame_least ? 0 : buffer - machine_.costs.frame;
        const bool roomy = !ethernet || room >= mtu_most;
        const std::int64_t most = roomy ? mtu_most : std::max(room, std::int64_t{0});
        std::int64_t bytes = 0;
        const auto read = std::from_chars(value.data(), value.data() + value.size(), bytes);
        const bool whole = read.ec == std::errc() && read.ptr == value.data() + value.size();
        if (!whole || bytes < least || bytes > most) {
            const std::string why = roomy ? "" : " (" + place_of(machine_, "ethernet.buffer") + ")";
            fail("mtu", "mtu=" + std::string(value) + ": want a number from " +
                            std::to_string(least) + " to " + std::to_string(most) + why);
        }
        return bytes;
    }

    const Machine& machine_;
    const Options& options_;
    std::optional<std::string> error_;
};

}  // namespace

std::span<const Choice> choices() { return all; }

bool is_word(const Machine& machine, std::string_view word) {
    if (machine.has(Has::ethernet) && word == "wiring") return true;
    return machine.has(Has::kernel) &&
           (word == "stack" || word == "wait" || word == "processors" || word == "mtu");
}

Options adapter_words(const Machine& machine, Options words) {
    std::erase_if(words, [&](const auto& word) { return is_word(machine, word.first); });
    return words;
}

std::expected<Setting, std::string> setting_of(const Machine& machine, const Options& options) {
    return Chooser(machine, options).make();
}

}  // namespace via::lab::kernel
