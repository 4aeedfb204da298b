#include "bench/suite.hpp"

#include <string_view>

namespace via::bench {

namespace {

using Words = std::vector<std::string>;

Words words_of(std::string_view text) {
    Words words;
    while (!text.empty()) {
        const std::size_t length = std::min(text.find(' '), text.size());
        if (length > 0) words.emplace_back(text.substr(0, length));
        text.remove_prefix(std::min(length + 1, text.size()));
    }
    return words;
}

// "--segments 2", "--segments 4" and so on; if quick, the first and the last.
std::vector<Words> each(std::string_view option, std::vector<std::string_view> values, bool quick,
                        std::string_view more = {}) {
    if (quick && values.size() > 2) values = {values.front(), values.back()};
    std::vector<Words> all;
    for (const std::string_view value : values) {
        all.push_back(
            words_of(std::string(option) + " " + std::string(value) + " " + std::string(more)));
    }
    return all;
}

}  // namespace

std::vector<SuiteQuestion> suite_questions(bool quick) {
    const auto sizes = [&](std::string_view bench, std::string_view whole, std::string_view few) {
        return words_of(std::string(bench) + " --size " + std::string(quick ? few : whole));
    };
    std::vector<SuiteQuestion> all;
    const auto ask = [&](std::string name, Words words, std::vector<Words> variants = {}) {
        all.push_back({std::move(name), std::move(words), std::move(variants), false, false, {}});
    };
    // Beside channels of ours alone, or of those wanted as well.
    const auto beside = [&](std::string name, Words words, std::string_view channels) {
        all.push_back({std::move(name), std::move(words), {}, false, false, words_of(channels)});
    };
    const auto compare = [&](std::string name, Words words, std::string_view channels) {
        all.push_back({std::move(name), std::move(words), {}, true, false, words_of(channels)});
    };

    ask("operations", words_of("operations"));
    ask("register", sizes("register", "4K,64K,1M,16M", "4K,1M"));
    compare("latency", sizes("latency", "8,512,4K,64K,1M", "8,64K"), "line two-copy cma");
    compare("bandwidth", sizes("bandwidth", "4K,64K,1M", "64K"), "ring cma");
    // UCX's tool has one buffer.
    compare("latency-reused", sizes("latency --reuse 100", "4K,64K,1M", "64K"), "");
    compare("bandwidth-reused", sizes("bandwidth --reuse 100", "64K,1M", "64K"), "");
    compare("rate", words_of("rate --size 8"), "spsc");
    beside("rate-vectored", words_of("rate --size 8 --post-many 16"), "spsc plain");
    compare("latency-blocking", words_of("latency --wait block --size 8"), "futex");
    compare("latency-one-spinner", words_of("latency --size 8 --spinners 1"), "");
    compare("latency-two-spinners", words_of("latency --size 8 --spinners 2"), "");
    beside("latency-sizes", sizes("latency", "netpipe:1M", "8,64,4K,64K"), "two-copy unix-socket");
    beside("bandwidth-sizes", sizes("bandwidth", "netpipe:1M", "4K,64K,1M"), "ring unix-socket");
    beside("latency-cq", words_of("latency --cq --size 8"), "plain");
    beside("rate-cq", words_of("rate --cq --size 8"), "plain");
    beside("latency-1000-vis", words_of("latency --cq --active-vis 1000 --size 8"), "plain");
    ask("latency-write", sizes("latency --op write", "8,64,4K,64K,1M", "8,64K"));
    ask("latency-read", sizes("latency --op read", "8,64,4K,64K,1M", "8,64K"));
    ask("latency-atomic", words_of("latency --op atomic --size 8"));
    ask("bandwidth-write", sizes("bandwidth --op write", "4K,64K,1M", "64K"));
    ask("bandwidth-read", sizes("bandwidth --op read", "4K,64K,1M", "64K"));
    for (const std::string_view bench : {"latency", "bandwidth"}) {
        beside(std::string(bench) + "-exported",
               sizes(std::string(bench) + " --op write --export", "8,64,4K,64K,1M", "8,1M"),
               bench == "latency" ? "put" : "put memcpy");
        all.back().in_segments = true;
    }
    ask("latency-immediate", words_of("latency --immediate --size 8"),
        {words_of("--op send"), words_of("--op write")});
    ask("latency-active-vis", words_of("latency --cq --size 8"),
        each("--active-vis", {"2", "10", "100"}, quick));
    ask("latency-idle-vis", words_of("latency --size 8"),
        each("--vis", {"1", "10", "100", "1000"}, quick));
    ask("rate-active-vis", words_of("rate --cq --size 8"),
        each("--active-vis", {"2", "10", "100", "1000"}, quick));
    ask("latency-segments", sizes("latency", "64,4K,64K", "4K"),
        each("--segments", {"2", "4", "16", "64"}, quick));
    ask("bandwidth-segments", words_of("bandwidth --size 64K"),
        each("--segments", {"2", "4", "16", "64"}, quick));
    ask("latency-reuse", words_of("latency --size 4K,64K"),
        each("--reuse", {"0", "25", "50", "75", "100"}, quick));
    ask("bandwidth-reuse", words_of("bandwidth --size 4K,64K"),
        each("--reuse", {"0", "25", "50", "75", "100"}, quick));
    ask("bandwidth-depth", words_of("bandwidth --size 4K,64K"),
        each("--depth", {"1", "2", "4", "64", "256"}, quick));
    ask("rate-depth", words_of("rate --size 8"),
        each("--depth", {"1", "2", "4", "64", "256"}, quick));
    ask("latency-reliability", words_of("latency --size 8,4K"),
        each("--reliability", {"unreliable", "reception"}, quick));
    ask("rate-reliability", words_of("rate --size 8"),
        each("--reliability", {"unreliable", "reception"}, quick));
    ask("rate-both-ways", words_of("rate --both-ways --size 8"));
    ask("bandwidth-both-ways", sizes("bandwidth --both-ways", "4K,64K,1M", "64K"));
    ask("rate-senders", words_of("rate --size 8"), each("--senders", {"2", "4", "8"}, quick));
    ask("bandwidth-senders", words_of("bandwidth --size 64K"),
        each("--senders", {"2", "4", "8"}, quick));
    return all;
}

std::vector<Words> commands_of(const SuiteQuestion& question, const Words& common,
                               const Words& against, bool one_host) {
    Words channels;
    for (const std::string& channel : question.beside) {
        if (one_host || channel == "plain") channels.push_back(channel);
    }
    if (question.compared) channels.insert(channels.end(), against.begin(), against.end());
    std::vector<Words> commands;
    for (const Words& variant :
         question.variants.empty() ? std::vector<Words>{{}} : question.variants) {
        Words words = question.words;
        for (const Words* more : {&variant, &common}) {
            words.insert(words.end(), more->begin(), more->end());
        }
        if (!channels.empty()) {
            std::string list;
            for (const std::string& name : channels) list += (list.empty() ? "" : ",") + name;
            words.insert(words.end(), {"--against", list});
        }
        words.emplace_back("--json");
        commands.push_back(std::move(words));
    }
    return commands;
}

std::string joined(const Words& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

}  // namespace via::bench
