#include "report/page.hpp"

namespace via::report {

namespace {

constexpr std::size_t columns = 110;

// What Markdown or HTML would take for its own.
std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : text) {
        if (c == '|' || c == '*' || c == '_' || c == '`' || c == '[' || c == ']' || c == '\\') {
            safe += '\\';
        }
        if (c == '<') {
            safe += "&lt;";
        } else {
            safe += c == '\n' ? ' ' : c;
        }
    }
    return safe;
}

std::string wrapped(std::string_view text) {
    std::string lines;
    while (text.size() > columns) {
        const std::size_t at = text.rfind(' ', columns);
        if (at == std::string_view::npos || at == 0) break;
        lines += fmt::format("{}\n", text.substr(0, at));
        text.remove_prefix(at + 1);
    }
    return lines + fmt::format("{}\n", text);
}

std::string row_of(const std::vector<std::string>& cells, bool strong) {
    std::string line = "|";
    for (const std::string& cell : cells) {
        const bool stressed = strong && !cell.empty() && cell != "-";
        line += stressed ? fmt::format(" **{}** |", escaped(cell))
                         : fmt::format(" {} |", escaped(cell));
    }
    return line + "\n";
}

struct Markdown {
    const std::string& pictures;

    std::string operator()(const Heading& heading) const {
        return fmt::format("{} {}\n", std::string(static_cast<std::size_t>(heading.level), '#'),
                           escaped(heading.text));
    }
    std::string operator()(const Paragraph& paragraph) const {
        return wrapped(escaped(paragraph.text));
    }
    std::string operator()(const Commands& commands) const {
        std::string text;
        for (const std::string& line : commands.lines) text += "    " + line + "\n";
        return text;
    }
    std::string operator()(const Picture& picture) const {
        return fmt::format("![{}]({}/{}.svg)\n", escaped(picture.title), pictures, picture.name);
    }
    std::string operator()(const Table& table) const {
        std::string text = row_of(table.head, false) + "|";
        for (std::size_t i = 0; i < table.head.size(); ++i) {
            text += i == 1 || table.head.size() == 2 ? "---|" : "---:|";
        }
        text += "\n";
        for (std::size_t i = 0; i < table.rows.size(); ++i) {
            text += row_of(table.rows[i], table.ours[i]);
        }
        if (!table.is_long()) return text;
        return fmt::format("<details><summary>{}</summary>\n\n{}\n</details>\n",
                           escaped(table.summary), text);
    }
};

}  // namespace

std::string markdown_of(const Page& page, const std::string& pictures) {
    std::string text = fmt::format("# {}\n", escaped(page.title));
    for (const Block& block : page.blocks) text += "\n" + std::visit(Markdown{pictures}, block);
    return text;
}

}  // namespace via::report
