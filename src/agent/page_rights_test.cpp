#include "agent/page_rights.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

namespace via::agent::page_rights_test {
namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t none = PageRights::none;

/// Pages that were never touched, each with its own protection; -1: none there.
class Pages {
public:
    explicit Pages(std::vector<int> protections)
        : length_(protections.size() * page),
          at_(static_cast<char*>(
              mmap(nullptr, length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        for (std::size_t n = 0; n < protections.size(); ++n) {
            if (protections[n] < 0)
                EXPECT_EQ(0, munmap(at_ + n * page, page));
            else
                EXPECT_EQ(0, mprotect(at_ + n * page, page, protections[n]));
        }
    }
    ~Pages() { munmap(at_, length_); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    std::uint64_t address(std::uint64_t number) const {
        return reinterpret_cast<std::uint64_t>(at_) + number * page;
    }
    char* at() const { return at_; }

private:
    std::uint64_t length_;
    char* at_;
};

constexpr int both = PROT_READ | PROT_WRITE;

class PageRightsTest : public testing::TestWithParam<Mappings::Way> {
protected:
    static PageRights ask(std::uint64_t begin, std::uint64_t end) {
        Mappings mappings(GetParam());
        return page_rights(mappings, begin, end);
    }
};

INSTANTIATE_TEST_SUITE_P(Ways, PageRightsTest,
                         testing::Values(Mappings::Way::by_address, Mappings::Way::by_text),
                         [](const auto& way) {
                             return way.param == Mappings::Way::by_text ? "Text" : "Address";
                         });

TEST_P(PageRightsTest, NamesTheFirstPageOfEachKind) {
    const Pages pages({both, both, PROT_READ, both, PROT_NONE, PROT_READ, -1, both, -1, both});
    const PageRights all = ask(pages.address(0), pages.address(10));
    EXPECT_EQ(all.unmapped, pages.address(6));
    EXPECT_EQ(all.closed, pages.address(4));
    EXPECT_EQ(all.read_only, pages.address(2));
    const PageRights good = ask(pages.address(0) + 5, pages.address(2));
    EXPECT_EQ(good.unmapped, none);
    EXPECT_EQ(good.closed, none);
    EXPECT_EQ(good.read_only, none);
    EXPECT_EQ(ask(pages.address(2) + 17, pages.address(3)).read_only, pages.address(2) + 17);
    EXPECT_EQ(ask(pages.address(0), pages.address(2) + 1).read_only, pages.address(2));
    EXPECT_EQ(ask(pages.address(8), pages.address(10)).unmapped, pages.address(8));
    EXPECT_EQ(ask(pages.address(9), pages.address(9) + 1).unmapped, none);
}

TEST_P(PageRightsTest, TouchesNothing) {
    const Pages pages({both, both, both, both});
    ask(pages.address(0), pages.address(4));
    unsigned char present[4] = {1, 1, 1, 1};
    ASSERT_EQ(mincore(pages.at(), 4 * page, present), 0);
    for (const unsigned char one : present) EXPECT_EQ(one & 1, 0);
}

/// As a program that maps more than it made, or whose file was cut by another.
TEST_P(PageRightsTest, NamesTheFirstPageBehindTheEndOfAFile) {
    constexpr std::uint64_t pages = 16;
    const int file = memfd_create("cut", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(file, 5 * page + 1), 0);
    for (const int sharing : {MAP_SHARED, MAP_PRIVATE}) {
        char* const at = static_cast<char*>(mmap(nullptr, pages * page, both, sharing, file, 0));
        ASSERT_NE(at, MAP_FAILED);
        if (madvise(at + 6 * page, page, MADV_POPULATE_READ) == 0)
            GTEST_SKIP() << "this kernel does not tell";
        const auto begin = reinterpret_cast<std::uint64_t>(at);
        EXPECT_EQ(ask(begin + 3, begin + 6 * page).no_file, none);
        EXPECT_EQ(ask(begin + 3, begin + 6 * page + 1).no_file, begin + 6 * page);
        EXPECT_EQ(ask(begin, begin + pages * page).no_file, begin + 6 * page);
        EXPECT_EQ(ask(begin + 9 * page + 7, begin + 10 * page).no_file, begin + 9 * page + 7);
        munmap(at, pages * page);
    }
    close(file);
}

TEST_P(PageRightsTest, BeyondAllMappingsNothingIsMapped) {
    EXPECT_EQ(ask(1ULL << 62, (1ULL << 62) + page).unmapped, 1ULL << 62);
    EXPECT_EQ(ask(64, 128).unmapped, 64U);
}

TEST_P(PageRightsTest, ManyMappingsAreReadToTheLast) {
    // Two thousand mappings in front of it.
    std::vector<int> protections;
    for (int n = 0; n < 2000; ++n) protections.push_back(n % 2 == 0 ? both : PROT_READ);
    protections.push_back(PROT_NONE);
    const Pages pages(protections);
    EXPECT_EQ(ask(pages.address(0), pages.address(2001)).closed, pages.address(2000));
}

TEST(PageRights, AreSaidInWords) {
    EXPECT_FALSE(fault_of({}));
    EXPECT_FALSE(fault_of({none, none, 0x1000})) << "to be read only";
    EXPECT_EQ(fault_of({0x3000, 0x1000, 0x1000}), "0x3000 is not mapped");
    EXPECT_EQ(fault_of({none, 0x1000, 0x1000}),
              "0x1000 may be neither read nor written (PROT_NONE)");
    EXPECT_EQ(fault_of({none, none, none, 0x2000}),
              "0x2000 is behind the end of the file that is mapped there");
}

}  // namespace
}  // namespace via::agent::page_rights_test
