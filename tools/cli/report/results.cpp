#include "report/results.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

namespace via::report {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view figure_schema = "via-bench-1";
constexpr std::string_view our_schemas = "via-bench-";

// Members of a figure that tell its answer, as lists do; every other one belongs to the question.
constexpr std::array answer_members{"schema", "bench",    "device", "ours",     "size",
                                    "unit",   "median",   "min",    "max",      "p99",
                                    "p999",   "cpu_us",   "rounds", "fairness", "version",
                                    "mode",   "probe_ns", "ratio",  "dropped",  "against"};

constexpr int depth_max = 16;  // of JSON; ours is not half as deep

std::string text_of(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
}

// Refuses also what is so deep that whoever goes down into it would run out of stack.
Json parse_json(std::string_view text) {
    bool too_deep = false;
    const auto keep = [&](int depth, Json::parse_event_t, Json&) {
        too_deep |= depth > depth_max;
        return !too_deep;
    };
    Json value = Json::parse(text, keep, false);
    return too_deep ? Json(Json::value_t::discarded) : value;
}

void flatten(const Json& object, const std::string& prefix, Fields& fields) {
    for (const auto& [name, value] : object.items()) {
        if (value.is_object()) {
            flatten(value, prefix + name + '.', fields);
            continue;
        }
        std::string text = value.is_array() ? "" : text_of(value);
        if (value.is_array()) {
            for (const Json& part : value) text += (text.empty() ? "" : "\n") + text_of(part);
        }
        fields.emplace_back(prefix + name, text);
    }
}

// Reads members of one line, and remembers the first that is not as it should be.
class Reader {
public:
    explicit Reader(const Json& object) : object_(object) {}

    std::string text(const char* name) {
        const auto at = object_.find(name);
        if (at == object_.end() || !at->is_string() || at->get<std::string>().empty()) {
            complain(name, "no text");
            return {};
        }
        return at->get<std::string>();
    }
    bool boolean(const char* name) {
        const auto at = object_.find(name);
        if (at != object_.end() && at->is_boolean()) return at->get<bool>();
        complain(name, "not true or false");
        return false;
    }
    std::uint64_t count(const char* name) {
        const auto at = object_.find(name);
        if (at != object_.end() && at->is_number_unsigned()) return at->get<std::uint64_t>();
        complain(name, "no count");
        return 0;
    }
    // A member that is null or not there is none.
    std::optional<double> number_if_any(const char* name) {
        const auto at = object_.find(name);
        if (at == object_.end() || at->is_null()) return std::nullopt;
        return number(*at, name);
    }
    double number(const char* name) {
        const auto at = object_.find(name);
        return number(at == object_.end() ? Json() : *at, name);
    }
    std::vector<double> numbers(const char* name) {
        std::vector<double> list;
        const auto at = object_.find(name);
        if (at == object_.end() || !at->is_array() || at->empty()) {
            complain(name, "no list of numbers");
            return list;
        }
        for (const Json& part : *at) list.push_back(number(part, name));
        return list;
    }

    const std::string& failure() const { return failure_; }

private:
    double number(const Json& value, const char* name) {
        const double got = value.is_number() ? value.get<double>() : -1;
        if (std::isfinite(got) && got >= 0) return got;
        complain(name, "no number");
        return 0;
    }
    void complain(const char* name, const char* what) {
        if (failure_.empty()) failure_ = fmt::format("its {} is {}", name, what);
    }

    const Json& object_;
    std::string failure_;
};

bool is_mode(const std::string& mode) {
    constexpr std::array modes{"near", "between", "far", "remote"};
    return std::ranges::find(modes, mode) != modes.end();
}

Result<Figure> figure_of(const Json& object) {
    Reader reader(object);
    Figure figure;
    figure.bench = reader.text("bench");
    figure.device = reader.text("device");
    if (object.contains("version")) figure.version = reader.text("version");
    figure.mode = reader.text("mode");
    figure.unit = reader.text("unit");
    figure.ours = reader.boolean("ours");
    figure.size = reader.count("size");
    figure.median = reader.number("median");
    figure.p99 = reader.number_if_any("p99");
    figure.p999 = reader.number_if_any("p999");
    figure.cpu_us = reader.number_if_any("cpu_us");
    figure.probe_ns = reader.number_if_any("probe_ns");
    if (!figure.ours) figure.ratio = reader.number_if_any("ratio");
    figure.values = reader.numbers("values");
    figure.dropped = reader.count("dropped");
    if (!reader.failure().empty()) return fail("{}", reader.failure());
    if (!is_mode(figure.mode)) return fail("there is no mode {}", figure.mode);
    for (const auto& [name, value] : object.items()) {
        const bool answers = std::ranges::find(answer_members, name) != answer_members.end();
        if (!answers && !value.is_structured() && !value.is_null())
            figure.question.emplace_back(name, text_of(value));
    }
    return figure;
}

// Ours comes once for each channel that it was compared with.
Status add_figure(Run& run, Figure figure) {
    const auto known = std::ranges::find_if(
        run.figures, [&](const Figure& other) { return other.same_question(figure); });
    if (known == run.figures.end()) {
        run.figures.push_back(std::move(figure));
        return {};
    }
    if (known->values == figure.values) return {};
    return fail("line {} answers the same question otherwise; a file holds one run", known->line);
}

Status add_line(Run& run, std::string_view line, std::size_t number) {
    const Json object = parse_json(line);
    if (object.is_discarded() || !object.is_object()) return fail("this is no JSON object");
    const auto schema = object.find("schema");
    if (schema == object.end() || !schema->is_string()) return fail("it names no schema");
    const auto name = schema->get<std::string>();
    if (name == figure_schema) {
        auto figure = figure_of(object);
        if (!figure) return std::unexpected(figure.error());
        figure->line = number;
        return add_figure(run, std::move(*figure));
    }
    if (!name.starts_with(our_schemas)) return fail("its schema {} is not of via bench", name);
    Note note{name, {}};
    flatten(object, "", note.fields);
    std::erase_if(note.fields, [](const auto& field) { return field.first == "schema"; });
    run.notes.push_back(std::move(note));
    return {};
}

Result<std::string> text_of_file(const std::filesystem::path& path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (error) return fail("cannot read {} (stat): {}", path.string(), error.message());
    if (!std::filesystem::is_regular_file(status))  // others may have no end
        return fail("{} is no regular file", path.string());
    std::ifstream file(path);
    if (!file) return bench::fail_errno(fmt::format("cannot read {} (open)", path.string()));
    return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

std::string_view value_of(const Fields& fields, std::string_view name) {
    const auto at = std::ranges::find(fields, name, &Fields::value_type::first);
    return at == fields.end() ? std::string_view{} : std::string_view(at->second);
}

bool Figure::same_question(const Figure& other, bool any_mode) const {
    return bench == other.bench && device == other.device && ours == other.ours &&
           (any_mode || mode == other.mode) && size == other.size && question == other.question;
}

Result<Run> parse_run(const std::string& file, std::string_view text) {
    Run run;
    run.name = std::filesystem::path(file).stem().string();
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t length = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, length);
        text.remove_prefix(std::min(length + 1, text.size()));
        if (line.empty()) continue;
        if (auto added = add_line(run, line, number); !added) {
            return fail("{}:{}: {}", file, number, added.error().what);
        }
    }
    return run;
}

Result<std::vector<Run>> read_runs(const std::filesystem::path& place) {
    std::vector<std::filesystem::path> files;
    std::error_code error;
    if (std::filesystem::is_directory(place, error)) {
        for (const auto& entry : std::filesystem::directory_iterator(place, error)) {
            if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
        }
        std::sort(files.begin(), files.end());
    } else {
        files.push_back(place);
    }
    if (error) return fail("cannot read {} (stat, opendir): {}", place.string(), error.message());
    if (files.empty()) return fail("{}: there is no *.jsonl", place.string());
    std::vector<Run> runs;
    for (const auto& file : files) {
        const auto text = text_of_file(file);
        if (!text) return std::unexpected(text.error());
        auto run = parse_run(file.string(), *text);
        if (!run) return std::unexpected(run.error());
        runs.push_back(std::move(*run));
    }
    return runs;
}

Result<Fields> parse_machine(const std::string& file, std::string_view text) {
    const Json object = parse_json(text);
    if (object.is_discarded() || !object.is_object()) return fail("{}: no JSON object", file);
    Fields fields;
    flatten(object, "", fields);
    return fields;
}

Result<Fields> read_machine(const std::filesystem::path& folder) {
    const std::filesystem::path file = folder / "machine.json";
    std::error_code error;
    if (!std::filesystem::exists(file, error)) return Fields{};
    const auto text = text_of_file(file);
    return text ? parse_machine(file.string(), *text) : std::unexpected(text.error());
}

}  // namespace via::report
