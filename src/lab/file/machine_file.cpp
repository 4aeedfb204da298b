#include "lab/file/machine_file.hpp"

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lab/file/quantity.hpp"
#include "lab/file/text.hpp"

namespace via::lab::file {
namespace {

constexpr std::string_view texts[] = {"name", "title", "paper", "parts", "like"};
constexpr std::string_view standings[] = {"source", "assumed", "calibrated"};  // as Standing

/// How many letters differ, roughly: for "did you mean".
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row.back();
}

class Reader {
public:
    Reader(const toml::table& table, std::string name) : table_(table), name_(std::move(name)) {}

    std::expected<Machine, std::string> read() {
        machine_.at = place(table_.source());
        machine_.name = text_of(table_, "name", "");
        machine_.title = text_of(table_, "title", "");
        machine_.paper = text_of(table_, "paper", "");
        if (table_.contains("like")) begin_like(text_of(table_, "like", ""));
        if (table_.contains("parts") || !table_.contains("like")) read_parts();
        for (const auto& [key, node] : table_) read_group(std::string(key.str()), key, node);
        if (error_) return std::unexpected(*error_);
        return std::move(machine_);
    }

    /// What a host's file alone need not be.
    std::expected<Machine, std::string> read_whole() {
        auto machine = read();
        if (!machine) return machine;
        for (const Field& field : fields()) {
            if (machine->origins.contains(field.key) || !machine->needs(field.of)) continue;
            fail(table_.source(), "the cost " + std::string(field.key) + " is missing (" +
                                      std::string(field.meaning) + "); there are no defaults");
        }
        if (machine->needs(Has::adapter)) refuse_free_looks(*machine);
        if (machine->needs(Has::software)) refuse_small_room(*machine);
        if (error_) return std::unexpected(*error_);
        return machine;
    }

private:
    void fail(const toml::source_region& where, const std::string& what) {
        if (!error_) error_ = place(where) + ": " + what;  // the first one
    }
    /// A firmware that finds nothing looks again: for ever, if that takes no time.
    void refuse_free_looks(const Machine& machine) {
        const Costs& costs = machine.costs;
        for (const auto& [key, words] : {std::pair{"firmware.look", costs.words_look},
                                         std::pair{"firmware.look_dma", costs.words_look_dma}}) {
            if (error_ || costs.firmware_step + words * costs.firmware_word > 0) continue;
            error_ = machine.origins.at("firmware.step").at + ": firmware.step and " + key +
                     " words of firmware.word make a look without time; the firmware would look "
                     "for ever at one moment";
        }
    }
    /// A sender that waits for more room than there is waits for ever.
    void refuse_small_room(const Machine& machine) {
        const Costs& costs = machine.costs;
        const std::int64_t least = std::max<std::int64_t>(costs.software_frame, 64);
        if (error_ || costs.software_room >= least) return;
        error_ = machine.origins.at("software.room").at + ": software.room is " +
                 std::to_string(costs.software_room) + " B, and a frame takes " +
                 std::to_string(least) + " B (software.frame, and a line at least)";
    }
    std::string place(const toml::source_region& where) const {
        return std::string(name_) + ":" + std::to_string(where.begin.line);
    }
    std::string text_of(const toml::table& table, std::string_view key, std::string_view group) {
        const toml::node* node = table.get(key);
        const std::string full = std::string(group) + std::string(key);
        if (node == nullptr) {
            fail(table.source(), full + " is missing");
        } else if (!node->is_string()) {
            fail(node->source(), full + ": want a text in quotes");
        } else {
            return node->as_string()->get();
        }
        return {};
    }
    /// Everything of that machine or host, until this file says else.
    void begin_like(const std::string& name) {
        const auto same = [&](const BuiltIn& one) { return one.name == name; };
        const BuiltIn* found = nullptr;
        for (const auto* list : {&built_in(), &built_in_hosts()}) {
            const auto at = std::ranges::find_if(*list, same);
            if (at != list->end()) found = &*at;
        }
        if (found == nullptr) {
            return fail(table_.get("like")->source(),
                        "like: there is no machine or host \"" + name + "\"");
        }
        const toml::parse_result text = toml::parse(found->text);
        auto other = Reader(text.table(), std::string(found->name) + ".toml").read();
        if (!other) return fail(table_.get("like")->source(), "like: " + other.error());
        machine_.costs = other->costs;
        machine_.parts = other->parts;
        machine_.design = std::move(other->design);
        machine_.design_at = std::move(other->design_at);
        machine_.origins = std::move(other->origins);
        for (auto& [key, origin] : machine_.origins)
            if (origin.file.empty()) origin.file = name;
    }
    void read_parts() {
        machine_.parts = 0;
        const std::string text = text_of(table_, "parts", "");
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find('+', at), text.size());
            const std::string word = text.substr(at, end - at);
            const auto part =
                std::ranges::find_if(all_parts, [&](Has one) { return word == lab::name_of(one); });
            if (part == std::end(all_parts)) {
                return fail(table_.get("parts")->source(),
                            "parts: \"" + word + "\": want adapter, kernel, ethernet, window, or " +
                                "some of them as \"kernel+ethernet\"; or software");
            }
            machine_.parts |= static_cast<std::uint8_t>(*part);
            at = end + 1;
        }
        if (machine_.has(Has::software) && machine_.needs(Has::hardware))
            fail(table_.get("parts")->source(), "parts: software goes with nothing else");
    }
    void unknown(const std::string& key, const toml::source_region& where) {
        const auto nearest = std::ranges::min_element(
            fields(), {}, [&](const Field& field) { return distance(field.key, key); });
        fail(where,
             "there is no cost " + key + "; did you mean " + std::string(nearest->key) + "?");
    }
    void read_group(const std::string& group, const toml::key& key, const toml::node& node) {
        if (std::ranges::find(texts, group) != std::end(texts)) return;
        const toml::table* table = node.as_table();
        if (table == nullptr) return unknown(group, key.source());
        if (group == "design") machine_.at = place(key.source());
        for (const auto& [inner, value] : *table) {
            if (group == "design") {
                const std::string word(inner.str());
                machine_.design[word] = text_of(*table, word, "design.");
                machine_.design_at[word] = place(inner.source());
            } else {
                read_cost(group + "." + std::string(inner.str()), inner, value);
            }
        }
    }
    void read_cost(const std::string& key, const toml::key& inner, const toml::node& node) {
        const auto found = std::ranges::find(fields(), std::string_view(key), &Field::key);
        if (found == fields().end()) return unknown(key, inner.source());
        if (!machine_.needs(found->of)) {
            return fail(inner.source(), key + " is a cost of part " + lab::name_of(found->of) +
                                            ", which this machine does not have");
        }
        const toml::table* table = node.as_table();
        if (table == nullptr) {
            fail(node.source(), key + ": want { cost = \"...\", source = \"...\" }");
            return;
        }
        const auto value = quantity(text_of(*table, "cost", key + "."), found->unit);
        if (!value) return fail(table->source(), key + ": " + value.error());
        machine_.costs.*(found->place) = *value;
        machine_.origins[key] = origin_of(*table, key);
        machine_.origins[key].at = place(inner.source());
    }
    Origin origin_of(const toml::table& table, const std::string& key) {
        std::optional<Origin> origin;
        for (const auto& [word, node] : table) {
            if (word.str() == "cost") continue;
            const auto standing = std::ranges::find(standings, word.str());
            if (standing == std::end(standings) || origin) {
                fail(word.source(), key + ": want cost and one of source, assumed, calibrated");
                continue;
            }
            origin = {static_cast<Standing>(standing - std::begin(standings)),
                      text_of(table, word.str(), key + "."),
                      {},
                      {}};
            if (origin->source.empty()) fail(node.source(), key + ": an empty origin");
        }
        if (!origin) fail(table.source(), key + ": where from? source, assumed or calibrated");
        return origin.value_or(Origin{});
    }

    const toml::table& table_;
    std::string name_;
    Machine machine_;
    std::optional<std::string> error_;
};

}  // namespace

std::expected<Machine, std::string> parse(std::string_view text, std::string_view name) {
    const toml::parse_result result = toml::parse(text);
    if (!result) {
        return std::unexpected(std::string(name) + ":" +
                               std::to_string(result.error().source().begin.line) + ": " +
                               std::string(result.error().description()));
    }
    return Reader(result.table(), std::string(name)).read_whole();
}

std::expected<Machine, std::string> load(const std::string& name) {
    if (name.find('/') == std::string::npos && !name.ends_with(".toml")) {
        const auto found = std::ranges::find(built_in(), std::string_view(name), &BuiltIn::name);
        if (found != built_in().end()) return parse(found->text, name + ".toml");
        return std::unexpected("there is no machine \"" + name + "\"; 'via lab list' shows all");
    }
    const auto text = read_text(name);
    if (!text) return std::unexpected("cannot read " + name + ": " + text.error());
    return parse(*text, name);
}

}  // namespace via::lab::file
