#include "agent/configuration.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "agent/addresses.hpp"
#include "agent/test_support.hpp"

namespace via::agent::test::configuration_test {
namespace {

constexpr std::string_view media[] = {"shm", "loopback", "udp"};

Source file(std::string text) { return {"/etc/openvia/nics.conf", false, true, std::move(text)}; }
Source variable(std::string text) { return {"OPENVIA_NICS", true, true, std::move(text)}; }

/// What somebody was told.
struct Complaints {
    std::vector<std::string> lines;
    Complain hear() {
        return [this](const std::string& text) { lines.push_back(text); };
    }
    bool say(const std::string& part) const {
        for (const std::string& line : lines)
            if (line.find(part) != line.npos) return true;
        return false;
    }
};

std::string target_of(std::string_view name, std::vector<Source> sources, Complaints& complaints) {
    return find_nic(name, sources, media, complaints.hear()).target;
}

// NICs --------------------------------------------------------------------------------------------

TEST(NicNames, StandInLinesWithCommentsAndBlanks) {
    Complaints complaints;
    const std::vector<Source> sources = {
        file("# all of it\n\n  \t\r\nnic0 = shm:left # theirs\n/dev/via0=loopback\r\n"
             "\tnic1\t=\tshm:a.b-c_d  \nopt=shm,pin=never\nlast = udp:eth0:9000")};
    EXPECT_EQ(target_of("nic0", sources, complaints), "shm:left");
    EXPECT_EQ(target_of("/dev/via0", sources, complaints), "loopback");
    EXPECT_EQ(target_of("nic1", sources, complaints), "shm:a.b-c_d");
    EXPECT_EQ(target_of("opt", sources, complaints), "shm,pin=never") << "an '=' is no sign here";
    EXPECT_EQ(target_of("last", sources, complaints), "udp:eth0:9000") << "no newline at the end";
    EXPECT_EQ(target_of("NIC1", sources, complaints), "") << "case counts";
    EXPECT_EQ(target_of("nic", sources, complaints), "");
    EXPECT_EQ(target_of("", sources, complaints), "");
    EXPECT_TRUE(complaints.lines.empty()) << complaints.lines[0];
}

TEST(NicNames, EveryBadLineIsToldWithItsPlaceAndTheOthersHold) {
    struct Bad {
        std::string line;
        const char* why;
    };
    const Bad bad[] = {
        {"nic2", "no '='"},
        {"= shm", "no name before"},
        {"nic2 =", "nothing behind"},
        {"nic2 = # shm", "nothing behind"},
        {"nic2 = shm loopback", "more than one target"},
        {"nic two = shm", "blank in it"},
        {"nic2 = eth0", "no NIC"},
        {"nic2 = nic0", "no NIC"},
        {"nic2 = = shm", "more than one target"},
        {"nic2 == shm", "more than one target"},
        {"shm = loopback", "own name already"},
        {"shm:left = loopback", "own name already"},
        {"shm,left = loopback", "own name already"},
        {"nic0 = loopback", "earlier line"},
        {std::string(64, 'n') + " = shm", "longer than 63"},
        {std::string("nic2\0 = x", 9), "no NIC"},
    };
    for (const Bad& one : bad) {
        Complaints complaints;
        const std::vector<Source> sources = {
            file("nic0 = shm:a\n" + one.line + "\nnic9 = shm:z\n")};
        EXPECT_EQ(target_of("nic0", sources, complaints), "shm:a") << one.line;
        ASSERT_EQ(complaints.lines.size(), 1U) << one.line;
        EXPECT_NE(complaints.lines[0].find("/etc/openvia/nics.conf:2: "), std::string::npos)
            << complaints.lines[0];
        EXPECT_TRUE(complaints.say(one.why)) << complaints.lines[0];
        EXPECT_EQ(target_of("nic9", sources, complaints), "shm:z") << one.line;
        EXPECT_EQ(target_of("nic2", sources, complaints), "") << one.line;
        for (const char letter : complaints.lines[0])
            EXPECT_TRUE(letter >= ' ' && letter <= '~') << one.line;
    }
}

TEST(NicNames, EntriesOfAVariableEndAtSemicolons) {
    Complaints complaints;
    const std::vector<Source> sources = {variable("nic0=shm:a; bad ;nic1 = shm:b # c;nic2=shm")};
    EXPECT_EQ(target_of("nic0", sources, complaints), "shm:a");
    EXPECT_EQ(target_of("nic1", sources, complaints), "shm:b");
    EXPECT_EQ(target_of("nic2", sources, complaints), "shm");
    EXPECT_TRUE(complaints.say("OPENVIA_NICS, entry 2: \"bad\"")) << complaints.lines[0];
    Complaints in_file;
    target_of("nic0", {file("nic0=shm; nic1=loopback")}, in_file);
    EXPECT_EQ(in_file.lines.size(), 1U) << "in a file a ';' is no end of a line";
}

TEST(NicNames, TheFirstSourceThatKnowsANameDecides) {
    Complaints complaints;
    const std::vector<Source> sources = {variable("one=shm:v"), file("one=shm:f\ntwo=shm:g"),
                                         file("one=shm:h\ntwo=shm:i\nthree=shm:j\nnic0=loopback")};
    EXPECT_EQ(target_of("one", sources, complaints), "shm:v");
    EXPECT_EQ(target_of("two", sources, complaints), "shm:g");
    EXPECT_EQ(target_of("three", sources, complaints), "shm:j");
    EXPECT_EQ(target_of("nic0", sources, complaints), "loopback") << "before the built-in names";
    EXPECT_TRUE(complaints.lines.empty());
}

TEST(NicNames, WithoutFilesTheWellKnownOnesWorkAndAScanEnds) {
    Complaints complaints;
    for (const std::string_view name : built_in_nics())
        EXPECT_EQ(target_of(name, {}, complaints), built_in_target) << name;
    for (const char* name : {"nic1", "VINIC1", "/dev/via1", "/dev/via_eth1", "nic00", "nic"})
        EXPECT_EQ(target_of(name, {}, complaints), "") << name;
}

TEST(NicNames, WhoIsNotFoundIsToldWhereWeLooked) {
    Complaints complaints;
    const Source missing{"/there/.config/openvia/nics.conf", false, false, {}};
    const NicTarget found =
        find_nic("nic7", std::vector{variable("a=shm"), missing}, media, complaints.hear());
    EXPECT_EQ(found.where,
              "OPENVIA_NICS, /there/.config/openvia/nics.conf (not there), "
              "the built-in names");
}

// Hosts -------------------------------------------------------------------------------------------

TEST(HostNames, HaveOneOrMoreAddresses) {
    Complaints complaints;
    const HostTable hosts(
        std::vector{file("Node1 = 10.0.0.1  # first\nnode2 = 10.0.0.2:80, [fe80::2] ,shm:left\n"
                         "node1 = 10.1.0.1:99\nhere=shm\nnode.example.org = 10.0.0.9\n"),
                    file("node1 = 10.9.9.9\nnode3 = 10.0.0.3\n")},
        complaints.hear());
    EXPECT_TRUE(complaints.lines.empty()) << complaints.lines[0];
    const auto texts = [&](std::string_view name) {
        std::string text;
        for (const HostAddress& address : hosts.find(name)) text += to_text(address) + " ";
        return text;
    };
    EXPECT_EQ(texts("node1"), "10.0.0.1:9741 10.1.0.1:99 ") << "of the first source alone";
    EXPECT_EQ(texts("NODE1"), texts("node1"));
    EXPECT_EQ(texts("node2"),
              "10.0.0.2:80 [fe80::2]:9741 " + to_text(address_of_name("left")) + " ");
    EXPECT_EQ(texts("node3"), "10.0.0.3:9741 ");
    EXPECT_EQ(texts("here"), "127.0.0.1:9741 ");
    EXPECT_EQ(texts("node.example.org"), "10.0.0.9:9741 ");
    EXPECT_EQ(texts("node"), "");
    EXPECT_EQ(texts(""), "");
    EXPECT_EQ(hosts.name_of(*parse_address("10.1.0.1:99")), "node1");
    EXPECT_EQ(hosts.name_of(*parse_address("10.0.0.1")), "Node1") << "as it was written";
    EXPECT_EQ(hosts.name_of(*parse_address("10.0.0.1:1")), "");
}

TEST(HostNames, EveryBadLineIsToldWithItsPlaceAndTheOthersHold) {
    struct Bad {
        std::string line;
        const char* why;
    };
    const Bad bad[] = {
        {"node2", "no '='"},
        {"10.0.0.2 node2", "no '='"},
        {"= 10.0.0.2", "no name before"},
        {"node2 =", "nothing behind"},
        {"node2 = ,", "no address"},
        {"node2 = node1", "\"node1\" is none of"},
        {"node2 = 10.0.0.2 10.0.0.256", "\"10.0.0.256\" is none of"},
        {"node2 = 10.0.0.2:0", "is none of"},
        {"node2 = fe80::2", "is none of"},
        {"node2 = loopback", "is none of"},
        {"node2 = shm:", "is none of"},
        {"node two = 10.0.0.2", "blank in it"},
        {std::string(256, 'n') + " = 10.0.0.2", "longer than 255"},
    };
    for (const Bad& one : bad) {
        Complaints complaints;
        const HostTable hosts(
            std::vector{file("node1 = 10.0.0.1\n" + one.line + "\nnode3 = 10.0.0.3\n")},
            complaints.hear());
        ASSERT_EQ(complaints.lines.size(), 1U) << one.line;
        EXPECT_TRUE(complaints.say(":2: ") && complaints.say(one.why)) << complaints.lines[0];
        EXPECT_EQ(hosts.find("node1").size(), 1U);
        EXPECT_EQ(hosts.find("node2").size(), 0U) << one.line << " counts in whole or not at all";
        EXPECT_EQ(hosts.find("node3").size(), 1U);
    }
}

// Sources -----------------------------------------------------------------------------------------

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::vector<Source> read_all(Complaints& complaints) {
    return read_sources("OPENVIA_TEST_NAMES", "test-names", complaints.hear());
}

TEST(Sources, AreVariableUserAndSystemInThisOrder) {
    const TemporaryFolder folder;
    Complaints complaints;
    ASSERT_EQ(mkdir((folder / "openvia").c_str(), 0700), 0);
    write(folder / "openvia/test-names", "a = shm\n");
    {
        const Variable entries("OPENVIA_TEST_NAMES", "b=shm");
        const Variable configuration("XDG_CONFIG_HOME", folder.path().c_str());
        const std::vector<Source> sources = read_all(complaints);
        ASSERT_EQ(sources.size(), 3U);
        EXPECT_TRUE(sources[0].is_there && sources[0].is_variable);
        EXPECT_EQ(sources[0].text, "b=shm");
        EXPECT_TRUE(sources[1].is_there && !sources[1].is_variable);
        EXPECT_EQ(sources[1].name, folder / "openvia/test-names");
        EXPECT_EQ(sources[1].text, "a = shm\n");
        EXPECT_FALSE(sources[2].is_there);
        EXPECT_EQ(sources[2].name, "/etc/openvia/test-names");
    }
    const Variable configuration("XDG_CONFIG_HOME", "relative");
    const Variable home("HOME", folder.path().c_str());
    const std::vector<Source> sources = read_all(complaints);
    EXPECT_FALSE(sources[0].is_there);
    EXPECT_EQ(sources[1].name, folder / ".config/openvia/test-names");
    const Variable homeless("HOME", nullptr);
    EXPECT_EQ(read_all(complaints).size(), 2U) << "no user's file";
    EXPECT_TRUE(complaints.lines.empty()) << complaints.lines[0];
}

TEST(Sources, MayBeginWithAByteOrderMark) {
    const TemporaryFolder folder;
    Complaints complaints;
    write(folder / "names", "\xEF\xBB\xBFnic0 = shm:left\n");
    const std::vector<Source> sources = {read_source(folder / "names", complaints.hear())};
    EXPECT_EQ(target_of("nic0", sources, complaints), "shm:left");
    EXPECT_TRUE(complaints.lines.empty()) << complaints.lines[0];
}

TEST(ConfiguredNetwork, IsWhatStandsBehindUdp) {
    const TemporaryFolder folder;
    const Variable configuration("XDG_CONFIG_HOME", folder.path().c_str());
    Complaints complaints;
    EXPECT_EQ(configured_network(media, complaints.hear()), "");
    for (const auto& [line, place] : {std::pair{"network = udp:eth0", "eth0"},
                                      {"network = udp:10.0.0.1:9800", "10.0.0.1:9800"},
                                      {"network = udp:eth0,silence=1000", "eth0"},
                                      {"other = udp:eth0", ""}}) {
        const Variable names("OPENVIA_NICS", line);
        EXPECT_EQ(configured_network(media, complaints.hear()), place) << line;
    }
    EXPECT_TRUE(complaints.lines.empty()) << complaints.lines[0];
}

TEST(ConfiguredNetwork, ThatIsNoPlaceIsToldAndNotIgnored) {
    for (const char* target :
         {"auto:eth0", "auto", "shm:left", "udp", "udp:", "udp:,silence=1000"}) {
        std::vector<std::string_view> all(std::begin(media), std::end(media));
        all.push_back("auto");
        const Variable names("OPENVIA_NICS", (std::string("network=") + target).c_str());
        Complaints complaints;
        EXPECT_EQ(configured_network(all, complaints.hear()), "") << target;
        ASSERT_EQ(complaints.lines.size(), 1U) << target;
        EXPECT_TRUE(complaints.say(std::string("OPENVIA_NICS: \"network = ") + target + "\"") &&
                    complaints.say("network wants udp:INTERFACE"))
            << complaints.lines[0];
    }
}

TEST(Sources, ThatCannotBeReadAreTold) {
    const TemporaryFolder folder;
    Complaints complaints;
    const std::string path = folder / "names";
    EXPECT_FALSE(read_source(path, complaints.hear()).is_there);
    EXPECT_FALSE(read_source(path + "/below", complaints.hear()).is_there);
    EXPECT_TRUE(complaints.lines.empty()) << "a missing file is no fault";
    ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
    EXPECT_FALSE(read_source(path, complaints.hear()).is_there);
    EXPECT_TRUE(complaints.say(path) && complaints.say("not a file"));
    ASSERT_EQ(rmdir(path.c_str()), 0);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_FALSE(read_source(path, complaints.hear()).is_there) << "and does not block";
    ASSERT_EQ(unlink(path.c_str()), 0);
    write(path, std::string(64 * 1024, '\n'));
    EXPECT_TRUE(read_source(path, complaints.hear()).is_there);
    write(path, std::string(64 * 1024 + 1, '\n'));
    complaints.lines.clear();
    const Source source = read_source(path, complaints.hear());
    EXPECT_TRUE(!source.is_there && source.text.empty());
    EXPECT_TRUE(complaints.say("longer than 64 KiB"));
    complaints.lines.clear();
    const DescriptorLimit none(0);
    EXPECT_FALSE(read_source(path, complaints.hear()).is_there);
    EXPECT_TRUE(complaints.say("Too many open files"));
}

TEST(Shown, IsShortAndPrintable) {
    EXPECT_EQ(shown("nic0"), "nic0");
    EXPECT_EQ(shown("a\nb\x1b[31m\xFF"), "a?b?[31m?");
    EXPECT_EQ(shown(std::string(100000, 'n')), std::string(64, 'n') + "...");
}

}  // namespace
}  // namespace via::agent::test::configuration_test
