#include "lab/design/list.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>

#include "lab/design/numbers.hpp"
#include "lab/design/parts.hpp"

namespace via::lab::design {

// The list. Whoever adds an alternative names its maker here, and adds its line to those of its
// kind below.
Maker<Translation> make_at1, make_at2, make_at3, make_both, make_pinned, make_dynamic;
Maker<Doorbell> make_d1, make_d2, make_bitmap, make_register;
Maker<Descriptors> make_cached, make_fetched, make_token, make_record;
Maker<Completions> make_cq1, make_cq2, make_cq3;
Maker<Payload> make_pio, make_dma, make_merged;
Maker<Rdma> make_translated, make_buffered;
Maker<Lookup> make_no_lookup, make_static_buffers, make_dynamic_buffers, make_static_processes,
    make_dynamic_processes;

namespace {

/// A word for an alternative, what it is, and its maker.
template <class PartKind>
struct Choice {
    std::string_view name;
    std::string_view what;
    Maker<PartKind>* make;
};

constexpr Choice<Translation> translations[] = {
    {"1", "addresses: host's tables, looked into by the host in the kernel", make_at1},
    {"2", "addresses: a table of all pages in the NIC's memory", make_at2},
    {"3", "addresses: host's tables, a cache of `cache` entries and `ways` on the NIC", make_at3},
    {"both", "addresses: tables of exported and of imported pages on the NIC, with tags",
     make_both},
    {"pinned", "addresses: one pinned area, known to both; no registering of memory", make_pinned},
    {"dynamic", "addresses: the same in lines of `line`, a miss asks a thread of the host",
     make_dynamic},
};
constexpr Choice<Doorbell> doorbells[] = {
    {"d1", "a doorbell of `slots` for each VI, `pairs` a page, polled by the firmware", make_d1},
    {"d2", "one central queue, through the kernel", make_d2},
    {"bitmap", "a bit for each VI, 32 read at once", make_bitmap},
    {"register", "a register that takes `slots` words in hardware", make_register},
};
constexpr Choice<Descriptors> descriptors[] = {
    {"cached", "written to the NIC at the post: `rqc`, `csqc`, `watermark`", make_cached},
    {"fetched", "fetched by DMA when needed", make_fetched},
    {"record", "sends written at the post; receives in host memory, fetched `rqc` at a time",
     make_record},
    {"token", "none: the doorbell's token names the buffer", make_token},
};
constexpr Choice<Completions> completions[] = {
    {"1", "the NIC writes completion entries", make_cq1},
    {"2", "the program polls work queues", make_cq2},
    {"3", "the NIC writes completion entries that hold the status, and nothing else", make_cq3},
};
constexpr Choice<Payload> payloads[] = {
    {"pio", "up to `pio` bytes within the descriptor", make_pio},
    {"dma", "always by DMA", make_dma},
    {"merged", "up to `pio` bytes behind the descriptor, fetched with it", make_merged},
};

constexpr Choice<Rdma> rdmas[] = {
    {"translated", "RDMA is translated on arrival, while the NIC receives nothing else",
     make_translated},
    {"buffered", "RDMA goes into a kernel's buffer and is copied by the host", make_buffered},
};
constexpr Choice<Lookup> buffer_lookups[] = {
    {"none", "buffers have no handles that the NIC looks up", make_no_lookup},
    {"static", "handles of `buffers` buffers in the NIC's memory, and of as many remote ones",
     make_static_buffers},
    {"dynamic", "handles of buffers: host's tables, a cache of `buffer_cache` on the NIC",
     make_dynamic_buffers},
};
constexpr Choice<Lookup> process_lookups[] = {
    {"none", "processes have no handles that the NIC looks up", make_no_lookup},
    {"static", "handles of `processes` processes in the NIC's memory", make_static_processes},
    {"dynamic", "handles of processes: host's table, a cache of `process_cache` on the NIC",
     make_dynamic_processes},
};
/// A part that is no class.
constexpr Alternative misses[] = {
    {"miss", "drop", "of dynamic look-up: what misses is dropped, and its sender sends it again"},
    {"miss", "hold", "of dynamic look-up: what misses waits on the NIC, and all behind it"},
};

/// All of them, as the command shows them.
constexpr auto all = [] {
    std::array<Alternative, std::size(translations) + std::size(doorbells) +
                                std::size(descriptors) + std::size(completions) +
                                std::size(payloads) + std::size(rdmas) + std::size(buffer_lookups) +
                                std::size(process_lookups) + std::size(misses)>
        made{};
    std::size_t count = 0;
    const auto add = [&](std::string_view part, const auto& choices) {
        for (const auto& one : choices) made[count++] = {part, one.name, one.what};
    };
    add("at", translations);
    add("doorbell", doorbells);
    add("descriptors", descriptors);
    add("cq", completions);
    add("payload", payloads);
    add("rdma", rdmas);
    add("cbh", buffer_lookups);
    add("pch", process_lookups);
    for (const Alternative& one : misses) made[count++] = one;
    return made;
}();

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
    {"line", &Numbers::line, 1, 1 << 16},
    {"buffers", &Numbers::buffers, 1, 1 << 24},
    {"buffer_cache", &Numbers::buffer_cache, 16, 1 << 24},
    {"processes", &Numbers::processes, 1, 1 << 16},
    {"process_cache", &Numbers::process_cache, 4, 1 << 16},
    {"high_water", &Numbers::high_water, 0, std::int64_t{1} << 32},
    {"slots", &Numbers::slots, 1, 1 << 16},
    {"pairs", &Numbers::pairs, 1, 1 << 16},
    {"staged", &Numbers::staged, 0, 1},
};

bool is_part(std::string_view word) {
    return std::ranges::any_of(all, [&](const Alternative& one) { return one.part == word; });
}

std::string known() {
    std::string words;
    std::string_view last;  // those of one part stand together
    for (const Alternative& one : all) {
        if (one.part == last) continue;
        (words += words.empty() ? "" : ", ") += one.part;
        last = one.part;
    }
    for (const Number& number : numbers_of_designs) words += ", " + std::string(number.name);
    return words;
}

class Putting {
public:
    Putting(const Machine& machine, const Options& options, const Load& load)
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
            design.rdma = choose<Rdma>("rdma", rdmas);
            design.buffers = choose<Lookup>("cbh", buffer_lookups);
            design.processes = choose<Lookup>("pch", process_lookups);
            design.holds = word("miss") == "hold";
            design.high_water = numbers_.high_water;
            design.packet = numbers_.packet;
            design.staged = numbers_.staged == 1;
        }
        if (!error_) check_memory(design);
        if (error_) return std::unexpected(*error_);
        return design;
    }

private:
    /// `words` are to blame.
    void fail(std::initializer_list<std::string_view> words, const std::string& what) {
        if (!error_) error_ = refusal(machine_, options_, words, what);
    }
    void fail_missing(std::string_view word) {
        if (!error_) error_ = missing(machine_, word);
    }
    void check(std::string_view word, std::string_view value) {
        const bool number = std::ranges::find(numbers_of_designs, word, &Number::name) !=
                            std::end(numbers_of_designs);
        if (!number && !is_part(word))
            fail({word}, "there is no \"" + std::string(word) + "\"; there are " + known());
        if (number || !is_part(word)) return;
        std::string choices;
        for (const Alternative& one : all) {
            if (one.part != word) continue;
            if (one.name == value) return;
            choices += (choices.empty() ? "" : ", ") + std::string(one.name);
        }
        fail({word}, std::string(word) + "=" + std::string(value) + ": want one of " + choices);
    }
    void read(const Number& number) {
        const auto found = options_.find(number.name);
        const std::string name(number.name);
        if (found == options_.end()) return fail_missing(name);
        const std::string& text = found->second;
        std::int64_t value = 0;
        const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = result.ec == std::errc() && result.ptr == text.data() + text.size();
        if (!whole || value < number.least || value > number.most) {
            return fail({name}, name + "=" + text + ": want a number from " +
                                    std::to_string(number.least) + " to " +
                                    std::to_string(number.most));
        }
        numbers_.*(number.place) = value;
    }
    /// "pio=8"
    std::string said(std::string_view word) const {
        return std::string(word) + "=" + options_.find(word)->second;
    }
    void check_numbers() {
        const Costs& costs = machine_.costs;
        const std::int64_t headers = costs.message_header + costs.switch_header;
        using Room = std::pair<std::int64_t, const char*>;
        const auto [most, cost] = std::ranges::min(
            {Room{costs.packet_max - costs.message_header, "link.packet_max"},
             Room{costs.send_fifo, "fifo.send"}, Room{costs.receive_fifo - 16, "fifo.receive"},
             Room{costs.interface_buffer - headers, "fifo.interface"},
             Room{costs.switch_buffer - headers, "link.switch_buffer"}},
            {}, &Room::first);
        if (numbers_.packet > most)
            fail({"packet"}, said("packet") + ": the machine's packets carry " +
                                 std::to_string(std::max(most, std::int64_t{0})) +
                                 " bytes at most (" + place_of(machine_, cost) + ")");
        if (numbers_.pio > numbers_.packet)
            fail({"pio", "packet"}, said("pio") + " is more than " + said("packet"));
        check_caches();
        check_window();
    }
    void check_window() {
        const Costs& costs = machine_.costs;
        const bool window = machine_.has(Has::window);
        if (word("at") == "both" && !window)
            fail({"at"}, "at=both: the machine imports no memory (its parts have no window)");
        if (!window) return;
        const std::int64_t room =
            std::min(costs.interface_buffer, costs.switch_buffer) - costs.switch_header;
        if (costs.stream > room)
            fail({}, place_of(machine_, "window.stream") + ": more than the " +
                         std::to_string(room) + " bytes that interface and switch have room for");
        if (costs.combine > costs.stream || costs.stream % costs.combine != 0)
            fail({}, place_of(machine_, "window.stream") + ": no multiple of window.combine");
    }
    /// A part that is no class.
    std::string_view word(std::string_view part) {
        const auto found = options_.find(part);
        if (found == options_.end()) fail_missing(part);
        return found == options_.end() ? std::string_view() : found->second;
    }
    void check_caches() {
        const bool dynamic = word("at") == "dynamic";
        if (numbers_.cache % numbers_.ways != 0)
            fail({"cache", "ways"}, said("cache") + " is no multiple of " + said("ways"));
        if (dynamic && numbers_.cache % (numbers_.ways * numbers_.line) != 0)
            fail({"cache", "ways", "line"},
                 said("cache") + " is no multiple of " + said("ways") + " times " + said("line"));
        if (numbers_.buffer_cache % 16 != 0)
            fail({"buffer_cache"}, said("buffer_cache") + " is no multiple of 16");
        if (numbers_.process_cache % 4 != 0)
            fail({"process_cache"}, said("process_cache") + " is no multiple of 4");
    }
    void check_memory(const Design& design) {
        const std::int64_t wanted = design.nic_memory(load_);
        if (wanted > machine_.costs.nic_memory)
            fail({}, "needs " + std::to_string(wanted) + " bytes of the NIC's memory for " +
                         std::to_string(load_.vis) + " VIs and " +
                         std::to_string(load_.registered) + " registered bytes, with " +
                         std::to_string(numbers_.rqc) + " descriptors a receive queue (rqc) and " +
                         std::to_string(numbers_.csqc) + " sends (csqc); there are " +
                         std::to_string(machine_.costs.nic_memory) + " (" +
                         place_of(machine_, "nic.memory") + ")");
    }
    template <class PartKind, std::size_t count>
    std::unique_ptr<PartKind> choose(std::string_view part,
                                     const Choice<PartKind> (&choices)[count]) {
        const auto found = options_.find(part);
        if (found == options_.end()) {
            fail_missing(part);
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

std::int64_t number_of(const Options& options, std::string_view word) {
    const std::string& text = options.find(word)->second;
    std::int64_t number = 1;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

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
    return Putting(machine, options, load).make();
}

}  // namespace via::lab::design
