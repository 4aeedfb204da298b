#include "bench/peers/their_tool.hpp"

#include "bench/peers/printed.hpp"
#include "bench/tool.hpp"

namespace via::bench {

Status TheirTool::find() {
    auto tool = find_program(names_.tool, names_.package, setup_peers);
    if (!tool) return std::unexpected(tool.error());
    auto informer = find_program(names_.informer, names_.package, setup_peers);
    if (!informer) return std::unexpected(informer.error());
    tool_ = *tool;
    informer_ = *informer;
    return {};
}

Result<std::string> TheirTool::version() const {
    const auto printed = printed_by(names_.informer, {informer_, names_.option});
    if (!printed) return std::unexpected(printed.error());
    for (const std::string_view line : split(*printed, "\n")) {
        const auto words = split(line, "#: ");
        if (words.size() == 2 && words[0] == names_.word) {
            return fmt::format("{} {}", names_.library, words[1]);
        }
    }
    return via::bench::makes_no_sense(names_.informer, *printed);
}

Question TheirTool::adapt(const Question& asked) const {
    Question question = ToolPeer::adapt(asked);
    question.reuse = 100;
    return question;
}

std::unexpected<Failure> TheirTool::makes_no_sense(std::string_view printed) const {
    return via::bench::makes_no_sense(names_.tool, printed);
}

}  // namespace via::bench
