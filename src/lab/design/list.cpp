#include "lab/design/list.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "lab/design/numbers.hpp"
#include "lab/design/parts.hpp"

namespace via::lab::design {
namespace {

template <class PartKind>
using Make = std::unique_ptr<PartKind> (*)(const Costs&, const Numbers&, const Load&);

template <class PartKind>
struct Choice {
    std::string_view name;
    Make<PartKind> make;
};

constexpr Choice<Translation> translations[] = {{"1", make_at1}, {"2", make_at2}, {"3", make_at3}};
constexpr Choice<Doorbell> doorbells[] = {
    {"d1", make_d1}, {"d2", make_d2}, {"bitmap", make_bitmap}};
constexpr Choice<Descriptors> descriptors[] = {{"cached", make_cached}, {"fetched", make_fetched}};
constexpr Choice<Completions> completions[] = {{"1", make_cq1}, {"2", make_cq2}};
constexpr Choice<Payload> payloads[] = {{"pio", make_pio}, {"dma", make_dma}};

constexpr Alternative all[] = {
    {"at", "1", "addresses: host's tables, looked into by the host in the kernel"},
    {"at", "2", "addresses: a table of all pages in the NIC's memory"},
    {"at", "3", "addresses: host's tables, a cache of `cache` entries and `ways` on the NIC"},
    {"doorbell", "d1", "a doorbell of `slots` for each VI, polled by the firmware"},
    {"doorbell", "d2", "one central queue, through the kernel"},
    {"doorbell", "bitmap", "a bit for each VI, 32 read at once"},
    {"descriptors", "cached", "written to the NIC at the post: `rqc`, `csqc`, `watermark`"},
    {"descriptors", "fetched", "fetched by DMA when needed"},
    {"cq", "1", "the NIC writes completion entries"},
    {"cq", "2", "the program polls work queues"},
    {"payload", "pio", "up to `pio` bytes within the descriptor"},
    {"payload", "dma", "always by DMA"},
};

struct Number {
    std::string_view name;
    std::int64_t Numbers::* place;
    std::int64_t least;
    std::int64_t most;
};
constexpr Number numbers_of_designs[] = {
    {"pio", &Numbers::pio, 0, 4096},
    {"packet", &Numbers::packet, 1, 1 << 20},
    {"rqc", &Numbers::rqc, 1, 1 << 20},
    {"csqc", &Numbers::csqc, 1, 1 << 20},
    {"watermark", &Numbers::watermark, 0, 1 << 20},
    {"cache", &Numbers::cache, 1, 1 << 24},
    {"ways", &Numbers::ways, 1, 1 << 16},
    {"slots", &Numbers::slots, 1, 1 << 16},
};

bool is_part(std::string_view word) {
    return std::ranges::any_of(all, [&](const Alternative& one) { return one.part == word; });
}

std::string known() {
    std::string words = "at, doorbell, descriptors, cq, payload";
    for (const Number& number : numbers_of_designs) words += ", " + std::string(number.name);
    return words;
}

class Maker {
public:
    Maker(const Machine& machine, const Options& options, const Load& load)
        : machine_(machine), options_(options), load_(load) {}

    std::expected<Design, std::string> make() {
        for (const auto& [word, value] : options_) check(word, value);
        for (const Number& number : numbers_of_designs) read(number);
        if (!error_) check_numbers();
        Design design;
        if (!error_) {
            design.translation = choose<Translation>("at", translations);
            design.doorbell = choose<Doorbell>("doorbell", doorbells);
            design.descriptors = choose<Descriptors>("descriptors", descriptors);
            design.completions = choose<Completions>("cq", completions);
            design.payload = choose<Payload>("payload", payloads);
            design.packet = numbers_.packet;
        }
        if (!error_) check_memory(design);
        if (error_) return std::unexpected(*error_);
        return design;
    }

private:
    void fail(std::string what) {
        if (!error_) error_ = "design of " + machine_.name + ": " + std::move(what);
    }
    void check(std::string_view word, std::string_view value) {
        const bool number = std::ranges::find(numbers_of_designs, word, &Number::name) !=
                            std::end(numbers_of_designs);
        if (!number && !is_part(word))
            fail("there is no \"" + std::string(word) + "\"; there are " + known());
        if (number || !is_part(word)) return;
        std::string choices;
        for (const Alternative& one : all) {
            if (one.part != word) continue;
            if (one.name == value) return;
            choices += (choices.empty() ? "" : ", ") + std::string(one.name);
        }
        fail(std::string(word) + "=" + std::string(value) + ": want one of " + choices);
    }
    void read(const Number& number) {
        const auto found = options_.find(number.name);
        const std::string name(number.name);
        if (found == options_.end()) return fail(name + " is missing; there are no defaults");
        const std::string& text = found->second;
        std::int64_t value = 0;
        const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = result.ec == std::errc() && result.ptr == text.data() + text.size();
        if (!whole || value < number.least || value > number.most) {
            return fail(name + "=" + text + ": want a number from " + std::to_string(number.least) +
                        " to " + std::to_string(number.most));
        }
        numbers_.*(number.place) = value;
    }
    void check_numbers() {
        const Costs& costs = machine_.costs;
        const std::int64_t headers = costs.message_header + costs.switch_header;
        const std::int64_t most = std::min(
            {costs.packet_max - costs.message_header, costs.send_fifo, costs.receive_fifo - 16,
             costs.interface_buffer - headers, costs.switch_buffer - headers});
        if (numbers_.packet > most)
            fail("packet=" + std::to_string(numbers_.packet) + ": the machine's packets carry " +
                 std::to_string(most) + " bytes at most");
        if (numbers_.pio > numbers_.packet) fail("pio is more than a packet");
        if (numbers_.cache % numbers_.ways != 0) fail("cache is no multiple of ways");
    }
    void check_memory(const Design& design) {
        const std::int64_t wanted = design.nic_memory(load_);
        if (wanted > machine_.costs.nic_memory)
            fail("needs " + std::to_string(wanted) + " bytes of the NIC's memory for " +
                 std::to_string(load_.vis) + " VIs and " + std::to_string(load_.registered) +
                 " registered bytes; there are " + std::to_string(machine_.costs.nic_memory));
    }
    template <class PartKind, std::size_t count>
    std::unique_ptr<PartKind> choose(std::string_view part,
                                     const Choice<PartKind> (&choices)[count]) {
        const auto found = options_.find(part);
        if (found == options_.end()) {
            fail(std::string(part) + " is missing; there are no defaults");
            return nullptr;
        }
        const auto choice =
            std::ranges::find(choices, std::string_view(found->second), &Choice<PartKind>::name);
        return choice->make(machine_.costs, numbers_, load_);
    }

    const Machine& machine_;
    const Options& options_;
    Load load_;
    Numbers numbers_;
    std::optional<std::string> error_;
};

}  // namespace

std::span<const Alternative> alternatives() { return all; }

std::expected<void, std::string> add(Options& options, std::string_view words) {
    while (!words.empty()) {
        const std::string_view word = words.substr(0, words.find(','));
        words.remove_prefix(std::min(words.size(), word.size() + 1));
        const std::size_t sign = word.find('=');
        if (sign == std::string_view::npos || sign == 0)
            return std::unexpected("\"" + std::string(word) + "\": want WORD=VALUE, as at=3");
        options[std::string(word.substr(0, sign))] = word.substr(sign + 1);
    }
    return {};
}

std::expected<Design, std::string> make(const Machine& machine, const Options& options,
                                        const Load& load) {
    return Maker(machine, options, load).make();
}

}  // namespace via::lab::design
