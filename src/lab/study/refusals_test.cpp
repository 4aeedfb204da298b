// What a machine's file says and cannot be is refused with the file and the line that says it; what
// somebody asks for over it is not the file's.
#include <gtest/gtest.h>

#include <algorithm>

#include "lab/file/machine_file.hpp"
#include "lab/study/cluster.hpp"

namespace via::lab::study::refusals_test {

/// A file that is like `machine`, but for `lines`, which begin in line 5.
std::string refusal_of(const std::string& machine, const std::string& lines,
                       std::string_view words = "", std::int64_t vis = 1) {
    const std::string head =
        "name = \"a\"\ntitle = \"b\"\npaper = \"c\"\nlike = \"" + machine + "\"\n";
    const auto read = file::parse(head + lines, "my.toml");
    if (!read) return read.error();
    Trial trial{*read, read->design, {vis, 1 << 20}, {}};
    EXPECT_TRUE(design::add(trial.design, words).has_value());
    const auto made = Cluster::make(trial, 2, 1);
    return made ? "none" : made.error();
}

TEST(LabRefusals, AnAlternativeThatIsUnknownNamesItsLine) {
    EXPECT_EQ(refusal_of("firmvia", "[design]\npio = \"0\"\ncq = \"9\"\n"),
              "my.toml:7: cq=9: want one of 1, 2, 3");
    EXPECT_EQ(refusal_of("gnic2", "[design]\nstack = \"udp\"\n"),
              "my.toml:6: stack=udp: want one of via, tcp");
    EXPECT_EQ(refusal_of("clan", "[design]\nprocessors = \"4\"\n"),
              "my.toml:6: processors=4: want one of 1, 2");
}

TEST(LabRefusals, AWordThatTheMachineCannotHaveNamesItsLine) {
    EXPECT_TRUE(refusal_of("firmvia", "[design]\ndorbell = \"d1\"\n")
                    .starts_with("my.toml:6: there is no \"dorbell\"; there are at, doorbell, "));
    EXPECT_TRUE(refusal_of("gnic2", "[design]\n\nat = \"1\"\n")
                    .starts_with("my.toml:7: there is no \"at\" of this machine; there are "));
}

TEST(LabRefusals, ANumberThatTheMachineCannotHaveNamesItsLine) {
    EXPECT_EQ(refusal_of("firmvia", "[design]\nrqc = \"many\"\n"),
              "my.toml:6: rqc=many: want a number from 1 to 1048576");
    const auto firmvia = file::load("firmvia");
    ASSERT_TRUE(firmvia.has_value());
    const std::string packet_max = firmvia->origins.at("link.packet_max").at;
    EXPECT_TRUE(packet_max.starts_with("firmvia.toml:")) << packet_max;
    EXPECT_EQ(refusal_of("firmvia", "[design]\npacket = \"4096\"\n"),
              "my.toml:6: packet=4096: the machine's packets carry 2032 bytes at most "
              "(link.packet_max, " +
                  packet_max + ")");
    EXPECT_EQ(refusal_of("firmvia", "[design]\nways = \"3\"\n"),
              "my.toml:6: cache=128 is no multiple of ways=3");
    EXPECT_TRUE(refusal_of("gnic2", "[design]\nmtu = \"70000\"\n")
                    .starts_with("my.toml:6: mtu=70000: want a number from "));
}

TEST(LabRefusals, ACostThatLeavesNoRoomNamesItsLine) {
    EXPECT_TRUE(
        refusal_of("firmvia", "[link]\npacket_max = { cost = \"8 B\", assumed = \"a test\" }\n")
            .ends_with(": the machine's packets carry 0 bytes at most (link.packet_max, "
                       "my.toml:6)"));
    EXPECT_TRUE(
        refusal_of("gnic2", "[ethernet]\nbuffer = { cost = \"60 B\", assumed = \"a test\" }\n")
            .ends_with(" to 0 (ethernet.buffer, my.toml:6)"));
    EXPECT_EQ(
        refusal_of("gnic2", "[ethernet]\nring = { cost = \"0 packets\", assumed = \"a test\" }\n"),
        "my.toml:6: ethernet.ring: want a number of packets, for instance \"64 packets\"");
    EXPECT_TRUE(
        refusal_of("firmvia", "[nic]\nmemory = { cost = \"1 KB\", assumed = \"a test\" }\n", "", 8)
            .ends_with("there are 1024 (nic.memory, my.toml:6)"));
}

/// Words that are missing: nothing of a host's file is a design.
TEST(LabRefusals, AWordThatIsMissingNamesWhereItBelongs) {
    const auto firmvia =
        std::ranges::find(file::built_in(), std::string_view("firmvia"), &file::BuiltIn::name);
    std::string text(firmvia->text);
    const std::size_t at = text.find("\nrqc ");
    text.erase(at, text.find('\n', at + 1) - at);
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<long>(text.find("[design]")), '\n');
    const auto read = file::parse(text, "my.toml");
    ASSERT_TRUE(read.has_value()) << read.error();
    const auto made = Cluster::make({*read, read->design, {1, 1 << 20}, {}}, 2, 1);
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error(),
              "my.toml:" + std::to_string(line) + ": design.rqc is missing; there are no defaults");
}

TEST(LabRefusals, WhatSomebodyAsksForIsNotTheFiles) {
    EXPECT_EQ(refusal_of("firmvia", "", "cq=9"), "design of a: cq=9: want one of 1, 2, 3");
    EXPECT_EQ(refusal_of("firmvia", "[design]\ncq = \"9\"\n", "cq=2"), "none");
    EXPECT_EQ(refusal_of("firmvia", "[design]\npio = \"16\"\n", "packet=8"),
              "design of a: pio=16 is more than packet=8");
}

}  // namespace via::lab::study::refusals_test
