#include "report/page.hpp"

#include <algorithm>

namespace via::report {

std::string escaped_markup(std::string_view text) {
    static constexpr std::pair<char, std::string_view> names[] = {
        {'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}};
    std::string safe;
    for (const char c : text) {
        const auto* const name =
            std::ranges::find(names, c, &std::pair<char, std::string_view>::first);
        safe += name == std::end(names) ? std::string_view(&c, 1) : name->second;
    }
    return safe;
}

namespace {

constexpr std::string_view style = R"(
:root{color-scheme:light dark;--text:#24292f;--back:#fff;--soft:#f3f5f7;--line:#d0d7de;
--ours:#c8262c}
@media(prefers-color-scheme:dark){:root{--text:#d0d7de;--back:#16191d;--soft:#20252b;--line:#3a424b;
--ours:#ff7b7b}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--text);background:var(--back);margin:0 auto;
max-width:70rem;padding:1rem 1.5rem 4rem}
h1,h2,h3{line-height:1.2}h2{border-bottom:1px solid var(--line);margin-top:2.5rem}
figure{margin:1rem 0;overflow-x:auto}svg{max-width:100%;height:auto;color:var(--text)}
.table{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;margin:1rem 0;
font-variant-numeric:tabular-nums}
th,td{padding:.2rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{background:var(--soft)}td:nth-child(2),th:nth-child(2){text-align:left}
.words td{text-align:left;white-space:normal}tr.ours{color:var(--ours);font-weight:600}
pre{background:var(--soft);padding:.7rem;overflow-x:auto}summary{cursor:pointer}
)";

std::string cells(const std::vector<std::string>& row, std::string_view tag) {
    std::string text;
    for (const std::string& cell : row)
        text += fmt::format("<{}>{}</{}>", tag, escaped_markup(cell), tag);
    return text;
}

struct Html {
    std::string operator()(const Heading& heading) const {
        return fmt::format("<h{}>{}</h{}>\n", heading.level, escaped_markup(heading.text),
                           heading.level);
    }
    std::string operator()(const Paragraph& paragraph) const {
        return fmt::format("<p>{}</p>\n", escaped_markup(paragraph.text));
    }
    std::string operator()(const Commands& commands) const {
        std::string text;
        for (const std::string& line : commands.lines) text += escaped_markup(line) + "\n";
        return fmt::format("<pre>{}</pre>\n", text);
    }
    std::string operator()(const Picture& picture) const {
        return fmt::format("<figure role=\"img\" aria-label=\"{}\">\n{}</figure>\n",
                           escaped_markup(picture.title), picture.svg);
    }
    std::string operator()(const Table& table) const {
        const bool words = table.head.size() == 2;
        std::string text = fmt::format("<div class=\"table\"><table{}>\n<tr>{}</tr>\n",
                                       words ? " class=\"words\"" : "", cells(table.head, "th"));
        for (std::size_t i = 0; i < table.rows.size(); ++i) {
            text += fmt::format("<tr{}>{}</tr>\n", table.ours[i] ? " class=\"ours\"" : "",
                                cells(table.rows[i], "td"));
        }
        text += "</table></div>\n";
        if (!table.is_long()) return text;
        return fmt::format("<details><summary>{}</summary>\n{}</details>\n",
                           escaped_markup(table.summary), text);
    }
};

}  // namespace

std::string html_of(const Page& page) {
    std::string text = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n"
        "<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n",
        escaped_markup(page.title), style, escaped_markup(page.title));
    for (const Block& block : page.blocks) text += std::visit(Html{}, block);
    return text + "</body>\n</html>\n";
}

}  // namespace via::report
