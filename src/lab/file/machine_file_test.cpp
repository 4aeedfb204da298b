#include "lab/file/machine_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "lab/file/quantity.hpp"

namespace via::lab::file::machine_file_test {

std::string firmvia() {
    const auto found = std::ranges::find(built_in(), std::string_view("firmvia"), &BuiltIn::name);
    return std::string(found->text);
}

std::string replaced(const std::string& from, const std::string& to) {
    std::string text = firmvia();
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
}

/// The error of that text; fails if there is none.
std::string error_of(const std::string& text) {
    const auto machine = parse(text, "my.toml");
    EXPECT_FALSE(machine.has_value());
    return machine ? "" : machine.error();
}

int line_of(const std::string& text, const std::string& part) {
    return static_cast<int>(
        1 + std::count(text.begin(), text.begin() + static_cast<long>(text.find(part)), '\n'));
}

TEST(MachineFile, BuiltInMachinesAreWhole) {
    for (const BuiltIn& machine : built_in()) {
        const auto read = parse(machine.text, machine.name);
        ASSERT_TRUE(read.has_value()) << read.error();
        EXPECT_EQ(read->name, machine.name);
        for (const Field& field : fields()) {
            EXPECT_EQ(read->origins.contains(field.key), read->needs(field.of)) << field.key;
        }
    }
}

TEST(MachineFile, ReadsCostsAndTheirOrigins) {
    const auto machine = load("firmvia");
    ASSERT_TRUE(machine.has_value()) << machine.error();
    EXPECT_EQ(machine->costs.pio_write, 330);
    EXPECT_EQ(machine->costs.bus_to_nic, 132'000'000);
    EXPECT_EQ(machine->costs.nic_memory, 512 * 1024);
    EXPECT_EQ(machine->origins.at("firmware.word").standing, Standing::calibrated);
    EXPECT_EQ(machine->origins.at("host.pio_write").source, "000 table 1");
    EXPECT_EQ(machine->design.at("doorbell"), "d2");
}

TEST(MachineFile, AtMostTwoNumbersOfAMachineAreCalibrated) {
    for (const BuiltIn& text : built_in()) {
        const auto machine = parse(text.text, text.name);
        ASSERT_TRUE(machine.has_value());
        int calibrated = 0;
        for (const auto& [key, origin] : machine->origins) {
            const bool own = origin.file.empty();
            calibrated += own && origin.standing == Standing::calibrated ? 1 : 0;
        }
        EXPECT_LE(calibrated, 2) << text.name;
    }
}

TEST(MachineFile, AnUnknownCostNamesTheLineAndWhatWasMeant) {
    const std::string text = replaced("pio_write =", "pio_writes =");
    EXPECT_EQ(error_of(text), "my.toml:" + std::to_string(line_of(text, "pio_writes")) +
                                  ": there is no cost host.pio_writes; did you mean "
                                  "host.pio_write?");
}

TEST(MachineFile, AMissingCostIsNeverADefault) {
    std::string text = firmvia();
    const std::size_t at = text.find("pio_write =");
    text.erase(at, text.find('\n', at) - at);
    EXPECT_NE(error_of(text).find("the cost host.pio_write is missing"), std::string::npos);
}

TEST(MachineFile, AUnitThatDoesNotFitSaysWhatIsWanted) {
    const std::string text = replaced("\"0.33 us/word\"", "\"0.33 MB/s\"");
    EXPECT_EQ(error_of(text), "my.toml:" + std::to_string(line_of(text, "0.33 MB/s")) +
                                  ": host.pio_write: want a time per word, for instance "
                                  "\"0.33 us/word\"");
}

TEST(MachineFile, ACostWithoutOriginIsRefused) {
    const std::string text = replaced("{ cost = \"0.33 us/word\", source = \"000 table 1\" }",
                                      "{ cost = \"0.33 us/word\" }");
    EXPECT_NE(error_of(text).find("host.pio_write: where from?"), std::string::npos);
}

TEST(MachineFile, AFirmwareThatLooksInNoTimeIsRefused) {
    const std::string like = "name = \"x\"\ntitle = \"x\"\npaper = \"x\"\nlike = \"firmvia\"\n";
    const std::string step = "[firmware]\nstep = { cost = \"0 ns\", assumed = \"x\" }\n";
    EXPECT_TRUE(parse(like + step, "my.toml")) << "its words take time";
    const std::string said = "my.toml:6: firmware.step and firmware.look words of firmware.word";
    for (const std::string zero : {"word = { cost = \"0 ns/word\"", "look = { cost = \"0 words\""})
        EXPECT_TRUE(error_of(like + step + zero + ", assumed = \"x\" }\n").starts_with(said));
    EXPECT_TRUE(error_of(like + step + "look_dma = { cost = \"0 words\", assumed = \"x\" }\n")
                    .starts_with("my.toml:6: firmware.step and firmware.look_dma words"));
}

TEST(MachineFile, ARoomThatHoldsNoFrameIsRefused) {
    EXPECT_EQ(error_of("name = \"a\"\ntitle = \"b\"\npaper = \"none\"\nlike = \"shm\"\n[software]\n"
                       "room = { cost = \"4 KB\", assumed = \"a test\" }\n"),
              "my.toml:6: software.room is 4096 B, and a frame takes 8192 B (software.frame, and a "
              "line at least)");
}

TEST(MachineFile, WhatIsNoTomlNamesTheLine) {
    EXPECT_EQ(error_of("name = \"a\"\ntitle = ").substr(0, 10), "my.toml:2:");
}

TEST(MachineFile, AHostsBasicCostsMayBeCalibratedOnce) {
    for (const BuiltIn& host : built_in_hosts()) {
        const std::string text = "name = \"a\"\ntitle = \"b\"\npaper = \"c\"\nlike = \"" +
                                 std::string(host.name) + "\"\n";
        // A host alone is no machine, but its file can be read: the first thing missing is a DMA.
        EXPECT_NE(error_of(text).find("the cost dma.start_to_nic is missing"), std::string::npos);
    }
    int calibrated = 0;
    const auto machine = load("gnic2");
    for (const auto& [key, origin] : machine.value().origins)
        calibrated += origin.file == "linux22" && origin.standing == Standing::calibrated ? 1 : 0;
    EXPECT_EQ(calibrated, 3);
}

TEST(MachineFile, AMachineLikeAnotherSaysOnlyWhatDiffers) {
    const auto machine = parse(
        "name = \"a\"\ntitle = \"b\"\npaper = \"none\"\nlike = \"firmvia\"\n"
        "[host]\npio_write = { cost = \"1 us/word\", assumed = \"a test\" }\n"
        "[design]\nat = \"2\"\n",
        "my.toml");
    ASSERT_TRUE(machine.has_value()) << machine.error();
    EXPECT_EQ(machine->costs.pio_write, 1000);
    EXPECT_EQ(machine->origins.at("host.pio_write").file, "");
    EXPECT_EQ(machine->costs.pio_read, 870);
    EXPECT_EQ(machine->origins.at("host.pio_read").file, "firmvia");
    EXPECT_EQ(machine->design.at("at"), "2");
    EXPECT_EQ(machine->design.at("doorbell"), "d2");
    EXPECT_EQ(error_of("name = \"a\"\ntitle = \"b\"\npaper = \"c\"\nlike = \"nobody\"\n"),
              "my.toml:4: like: there is no machine or host \"nobody\"");
}

TEST(MachineFile, PartsThatAMachineDoesNotHaveHaveNoCosts) {
    EXPECT_EQ(error_of(replaced("parts = \"adapter\"", "parts = \"adapter+kernal\"")),
              "my.toml:" + std::to_string(line_of(firmvia(), "parts =")) +
                  ": parts: \"kernal\": want adapter, kernel, ethernet, window, or some of them as "
                  "\"kernel+ethernet\"; or software");
    EXPECT_NE(error_of(replaced("parts = \"adapter\"", "parts = \"adapter+software\""))
                  .find("software goes with nothing else"),
              std::string::npos);
    const std::string text = replaced("[fifo]",
                                      "[kernel]\nlock = { cost = \"1 us\", "
                                      "assumed = \"a test\" }\n[fifo]");
    EXPECT_EQ(error_of(text), "my.toml:" + std::to_string(line_of(text, "lock = { cost = \"1 us")) +
                                  ": kernel.lock is a cost of part kernel, which this machine does "
                                  "not have");
    EXPECT_NE(error_of(replaced("parts = \"adapter\"", "parts = \"adapter+kernel\""))
                  .find("the cost kernel.trap is missing"),
              std::string::npos);
}

TEST(MachineFile, AMachineThatIsNotThereIsSaid) {
    EXPECT_NE(load("nonsense").error().find("no machine \"nonsense\""), std::string::npos);
    EXPECT_NE(load("./nonsense.toml").error().find("cannot read"), std::string::npos);
    EXPECT_NE(load("/tmp").error().find("cannot read"), std::string::npos) << "a folder";
}

TEST(Quantity, ReadsWhatFitsAndNothingElse) {
    EXPECT_EQ(quantity("2.27 us", Unit::time).value(), 2270);
    EXPECT_EQ(quantity("132 MB/s", Unit::rate).value(), 132'000'000);
    EXPECT_EQ(quantity("5 words", Unit::words).value(), 5);
    for (const char* text : {"", "us", "-1 us", "nan us", "inf us", "1e300 us", "1 us x", "1"}) {
        EXPECT_FALSE(quantity(text, Unit::time).has_value()) << text;
    }
    EXPECT_FALSE(quantity("0 MB/s", Unit::rate).has_value());
    EXPECT_EQ(quantity("5 %", Unit::percent).value(), 5);
    EXPECT_FALSE(quantity("101 %", Unit::percent).has_value());
    EXPECT_FALSE(quantity("2000 MB", Unit::size).has_value());
    EXPECT_EQ(quantity("1 command", Unit::commands).value(), 1);
    EXPECT_FALSE(quantity("0 commands", Unit::commands).has_value()) << "no DMA could ever begin";
}

}  // namespace via::lab::file::machine_file_test
