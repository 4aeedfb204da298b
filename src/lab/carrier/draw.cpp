#include "lab/carrier/draw.hpp"

#include <vector>

#include "lab/kernel/setting.hpp"

namespace via::lab::carrier {
namespace {

void draw_parts(const Machine& machine, design::Options& options, Random& random) {
    std::map<std::string_view, std::vector<std::string_view>> names;
    for (const design::Alternative& one : design::alternatives())
        names[one.part].push_back(one.name);
    // A miss takes longer than the product's device allows a message on the way.
    std::erase(names["at"], "dynamic");
    if (!machine.has(Has::window)) std::erase(names["at"], "both");
    for (const char* part : {"cbh", "pch", "miss"}) names.erase(part);
    for (const auto& [part, all] : names)
        options[std::string(part)] = std::string(all[random.below(all.size())]);
}

/// Of a machine whose kernel takes part. More than two hosts need a switch.
void draw_kernel(const Machine& machine, design::Options& options, Random& random) {
    options["processors"] = random.chance(50) ? "1" : "2";
    if (!machine.has(Has::ethernet)) return;
    options["wiring"] = "switch";
    options["stack"] = random.chance(50) ? "via" : "tcp";
    options["mtu"] = std::to_string(random.between(256, 9000));
}

void draw_numbers(const Machine& machine, design::Options& options, Random& random) {
    const auto set = [&](const char* name, std::uint64_t low, std::uint64_t high) {
        options[name] = std::to_string(random.between(low, high));
    };
    set("pio", 0, random.chance(50) ? 16 : 64);
    if (machine.has(Has::window))
        set("packet", 16, 64);
    else
        set("packet", 64, 2032);
    set("rqc", 1, random.chance(50) ? 4 : 64);
    set("csqc", 1, random.chance(50) ? 4 : 64);
    set("watermark", 0, random.chance(50) ? 1 : 64);
    set("slots", 1, 4);
    const std::uint64_t ways = std::uint64_t{1} << random.below(4);
    options["ways"] = std::to_string(ways);
    options["cache"] = std::to_string(ways * random.between(1, 32));
}

}  // namespace

design::Options draw_design(const Machine& machine, const Load& load, Random& random) {
    design::Options options = machine.design;
    if (machine.has(Has::kernel)) draw_kernel(machine, options, random);
    if (!machine.has(Has::adapter)) return options;
    for (int tries = 0; tries < 100; ++tries) {
        design::Options tried = options;
        draw_parts(machine, tried, random);
        draw_numbers(machine, tried, random);
        if (design::make(machine, kernel::adapter_words(machine, tried), load)) return tried;
    }
    return options;
}

std::string to_text(const design::Options& options) {
    std::string text;
    for (const auto& [word, value] : options) {
        if (!text.empty()) text += ',';
        text.append(word).append("=").append(value);
    }
    return text;
}

}  // namespace via::lab::carrier
