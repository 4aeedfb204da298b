// One JSON object a line, built member by member.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>

namespace via::cli {

class JsonLine {
public:
    explicit JsonLine(std::string_view schema) { text("schema", schema); }
    /// A member of another one: without a schema.
    JsonLine() = default;

    JsonLine& text(std::string_view name, std::string_view value) {
        return raw(name, quoted(value));
    }
    template <class Number>
    JsonLine& number(std::string_view name, Number value) {
        return raw(name, fmt::format("{}", value));
    }
    JsonLine& boolean(std::string_view name, bool value) {
        return raw(name, value ? "true" : "false");
    }
    /// Six digits: measured figures deserve no more.
    JsonLine& figure(std::string_view name, double value) {
        return raw(name, fmt::format("{:.6g}", value));
    }
    /// The same, or null for what is not more than 0.
    JsonLine& figure_if_any(std::string_view name, double value) {
        return value > 0 ? figure(name, value) : null(name);
    }
    JsonLine& figures(std::string_view name, std::span<const double> values) {
        std::string list;
        for (const double value : values) {
            list += fmt::format("{}{:.6g}", list.empty() ? "" : ",", value);
        }
        return raw(name, '[' + list + ']');
    }
    JsonLine& null(std::string_view name) { return raw(name, "null"); }
    JsonLine& texts(std::string_view name, std::span<const std::string> values) {
        std::string list;
        for (const std::string& value : values) list += (list.empty() ? "" : ",") + quoted(value);
        return raw(name, '[' + list + ']');
    }
    JsonLine& objects(std::string_view name, std::span<const JsonLine> objects) {
        std::string list;
        for (const JsonLine& object : objects)
            list += (list.empty() ? "" : ",") + object.line_ + '}';
        return raw(name, '[' + list + ']');
    }
    /// Members until close() belong to an object called `name`.
    JsonLine& open(std::string_view name) {
        raw(name, "{");
        first_ = true;
        ++depth_;
        return *this;
    }
    JsonLine& close() {
        line_ += '}';
        first_ = false;
        --depth_;
        return *this;
    }
    /// The whole line, with its end.
    std::string line() const { return line_ + std::string(depth_ + 1, '}') + '\n'; }

private:
    static std::string quoted(std::string_view text);
    JsonLine& raw(std::string_view name, std::string_view value) {
        if (!first_) line_ += ',';
        first_ = false;
        line_ += fmt::format("\"{}\":{}", name, value);
        return *this;
    }
    std::string line_ = "{";
    bool first_ = true;
    std::size_t depth_ = 0;
};

}  // namespace via::cli
