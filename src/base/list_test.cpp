#include "base/list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "base/random.hpp"

namespace via::list_test {
namespace {

struct RedLink : ListLink {};
struct BlueLink : ListLink {};
struct Item : RedLink, BlueLink {
    int number = 0;
};
using Red = List<Item, RedLink>;
using Blue = List<Item, BlueLink>;

std::vector<Item*> content(Red& list) {
    std::vector<Item*> items;
    for (Item* item = list.front(); item != nullptr; item = list.next(*item)) items.push_back(item);
    return items;
}

bool in_red(const Item& item) { return static_cast<const RedLink&>(item).linked(); }

TEST(List, BeginsEmpty) {
    Red list;
    EXPECT_TRUE(list.empty());
    EXPECT_EQ(list.front(), nullptr);
    EXPECT_EQ(list.pop_front(), nullptr);
    list.rotate();
    EXPECT_TRUE(list.empty());
}

TEST(List, KeepsTheOrderOfArrival) {
    Red list;
    Item items[3];
    for (Item& item : items) list.push_back(item);
    EXPECT_EQ(content(list), (std::vector<Item*>{&items[0], &items[1], &items[2]}));
    EXPECT_EQ(list.pop_front(), &items[0]);
    EXPECT_FALSE(in_red(items[0]));
    list.push_back(items[0]);
    EXPECT_EQ(content(list), (std::vector<Item*>{&items[1], &items[2], &items[0]}));
}

TEST(List, RotatesFirstToLast) {
    Red list;
    Item items[3];
    for (Item& item : items) list.push_back(item);
    list.rotate();
    EXPECT_EQ(content(list), (std::vector<Item*>{&items[1], &items[2], &items[0]}));
    Red one;
    Item alone;
    one.push_back(alone);
    one.rotate();
    EXPECT_EQ(content(one), std::vector<Item*>{&alone});
}

TEST(List, MembershipsByTagAreIndependent) {
    Red red;
    Blue blue;
    Item item;
    red.push_back(item);
    blue.push_back(item);
    EXPECT_EQ(blue.front(), &item) << "the object, not the place of its link";
    Red::remove(item);
    EXPECT_TRUE(red.empty());
    EXPECT_FALSE(blue.empty());
    Red::remove_if_linked(item);
    Blue::remove_if_linked(item);
    EXPECT_TRUE(blue.empty());
}

TEST(List, MatchesAModelUnderRandomUse) {
    constexpr std::size_t count = 40;
    Red list;
    std::vector<Item> items(count);
    std::deque<Item*> model;
    Random random(1);
    for (int step = 0; step < 20'000; ++step) {
        Item& item = items[random.below(count)];
        const bool member = std::find(model.begin(), model.end(), &item) != model.end();
        ASSERT_EQ(in_red(item), member);
        switch (random.below(4)) {
            case 0:
                if (!member) {
                    list.push_back(item);
                    model.push_back(&item);
                }
                break;
            case 1:
                Red::remove_if_linked(item);
                std::erase(model, &item);
                break;
            case 2:
                ASSERT_EQ(list.pop_front(), model.empty() ? nullptr : model.front());
                if (!model.empty()) model.pop_front();
                break;
            default:
                list.rotate();
                if (!model.empty()) std::rotate(model.begin(), model.begin() + 1, model.end());
        }
        ASSERT_EQ(content(list), std::vector<Item*>(model.begin(), model.end())) << step;
    }
}

TEST(ListDeathTest, WrongUseStopsTheProgram) {
    Red list;
    Item item;
    EXPECT_DEATH(Red::remove(item), "broken invariant: link.linked");
    list.push_back(item);
    EXPECT_DEATH(list.push_back(item), "broken invariant: !link.linked");
}

}  // namespace
}  // namespace via::list_test
