// A peer that is measured by a tool of its own makers, who ship another one that tells versions.
#pragma once

#include <string>

#include "bench/peers/tool_peer.hpp"

namespace via::bench {

class TheirTool : public ToolPeer {
public:
    Status find() override;
    Result<std::string> version() const override;
    // One buffer is all that these tools have.
    Question adapt(const Question& asked) const override;

protected:
    struct Names {
        const char* tool;
        const char* informer;
        const char* option;   // that lets it tell its version
        const char* word;     // that stands before the version
        const char* library;  // of what
        const char* package;
    };
    explicit TheirTool(const Names& names) : names_(names) {}

    const std::string& tool() const { return tool_; }
    std::unexpected<Failure> makes_no_sense(std::string_view printed) const;

private:
    Names names_;
    std::string tool_;
    std::string informer_;
};

}  // namespace via::bench
