#include "report/page.hpp"

#include <gtest/gtest.h>

#include "report/gnuplot.hpp"

namespace via::report::page_test {
namespace {

Figure figure(std::string device, std::uint64_t size, double median, std::string mode = "near") {
    Figure made;
    made.bench = "latency";
    made.device = std::move(device);
    made.mode = std::move(mode);
    made.unit = "us";
    made.ours = made.device == "shm";
    made.size = size;
    made.question = {{"op", "send"}, {"vis", "0"}};
    made.median = median;
    made.values = {median, median, median};
    return made;
}

report::Run three_sizes() {
    report::Run run{"run", {}, {}};
    for (const std::uint64_t size : {8u, 64u, 4096u}) {
        run.figures.push_back(figure("shm", size, 0.1));
        run.figures.push_back(figure("pi|pe", size, 2));
        run.figures.back().ratio = 0.05;
    }
    run.figures.push_back(figure("shm", 8, 0.3, "far"));
    return run;
}

Result<std::string> drawn(const std::string& name, const std::string&) {
    return "<svg>" + name + "</svg>";
}

TEST(Charts, ModesAreNeverMixed) {
    const report::Run run = three_sizes();
    const auto groups = groups_of(run);
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].figures.size(), 6u);
    EXPECT_EQ(groups[1].mode, "far");
    EXPECT_FALSE(chart_over_size(run, groups[1]).has_value()) << "one point is no line";
}

TEST(Charts, LatencyOverSizeAndItsSaturation) {
    const report::Run run = three_sizes();
    const auto groups = groups_of(run);
    const auto over_size = chart_over_size(run, groups[0]);
    ASSERT_TRUE(over_size.has_value());
    ASSERT_EQ(over_size->curves.size(), 2u);
    EXPECT_TRUE(over_size->curves[0].ours);
    EXPECT_DOUBLE_EQ(over_size->curves[0].points[2].x, 4096);
    const auto saturation = saturation_chart(run, groups[0]);
    ASSERT_TRUE(saturation.has_value());
    EXPECT_DOUBLE_EQ(saturation->curves[1].points[2].x, 2);
    EXPECT_DOUBLE_EQ(saturation->curves[1].points[2].y, 2048);
}

TEST(Charts, WhereNoSizeVariesAnotherNumberMakesTheAxis) {
    report::Run run{"run", {figure("shm", 8, 0.1), figure("shm", 8, 0.2)}, {}};
    run.figures[1].question[1].second = "100";
    const auto groups = groups_of(run);
    EXPECT_EQ(label_of(run.figures[1], groups[0]), "shm vis 100");
    const auto chart = chart_over_size(run, groups[0]);
    ASSERT_TRUE(chart.has_value());
    ASSERT_EQ(chart->curves.size(), 1u);
    EXPECT_EQ(chart->curves[0].label, "shm");
    EXPECT_DOUBLE_EQ(chart->curves[0].points[1].x, 100);
}

TEST(Charts, BarsTellHowManyTimesAsGoodOursIs) {
    report::Run run = three_sizes();
    run.figures[3].unit = run.figures[2].unit = "MB/s";
    const auto groups = groups_of(run);
    const auto times = ratio_bars(run, groups[0]);
    const auto rates = ratio_bars(run, groups[1]);
    ASSERT_TRUE(times.has_value() && rates.has_value());
    EXPECT_DOUBLE_EQ(times->values[0][0].value_or(0), 20) << "a twentieth of the time";
    EXPECT_DOUBLE_EQ(rates->values[0][0].value_or(0), 0.05) << "a twentieth of the bandwidth";
}

TEST(Charts, ASizeThatNobodyElseAnsweredHasNoBar) {
    report::Run run = three_sizes();
    run.figures[3].ratio.reset();  // gnuplot refuses a place without any bar
    const auto groups = groups_of(run);
    const auto bars = ratio_bars(run, groups[0]);
    ASSERT_TRUE(bars.has_value());
    EXPECT_EQ(bars->keys, (std::vector<std::string>{"8", "4K"}));
    ASSERT_EQ(bars->values.size(), 1u);
    EXPECT_EQ(bars->values[0].size(), 2u);
}

TEST(Charts, ManySizesAreShownByTheUsualOnes) {
    report::Run run{"run", {}, {}};
    for (std::uint64_t size = 1; size < 100; ++size) run.figures.push_back(figure("shm", size, 1));
    const auto groups = groups_of(run);
    EXPECT_EQ(sizes_of(groups[0], 6), (std::vector<std::uint64_t>{8, 64}));
    EXPECT_EQ(sizes_of(groups[0], 200).size(), 99u);
}

TEST(Gnuplot, NoTextLeavesItsQuotes) {
    Chart chart{"n", "a\"; system 'x'; `y`", {"x"}, {"y"}, {{"\n$(z)\\", true, {{1, 1, 1, 1}}}}};
    const std::string script = script_of(chart);
    EXPECT_NE(script.find("set title \"a?; system 'x'; ?y?\"\n"), std::string::npos) << script;
    EXPECT_NE(script.find("(z)?\""), std::string::npos) << script;
}

TEST(Gnuplot, BlackFollowsThePageAndNothingIsDropped) {
    EXPECT_EQ(fit_for_page("<?xml?>\n<svg a=\"1\">\n<g color=\"black\">\n</g>\n<g x=\"2\">\n"
                           "<path stroke='black' id='gpPt3'/></g>\n</svg>\n",
                           "n"),
              "<svg a=\"1\">\n<g x=\"2\">\n<path stroke='currentColor' id='n-p3'/></g>\n</svg>\n");
    EXPECT_NE(fit_for_file("<svg a=\"1\">x</svg>").find("prefers-color-scheme:dark"),
              std::string::npos);
}

TEST(Page, HoldsPicturesTablesAndTheMachine) {
    report::Run run = three_sizes();
    run.figures[1].version = "Pipes 2.0";
    run.notes.push_back({"via-bench-register-1", {{"size", "4096"}}});
    const Fields machine{{"kernel", "6.1 <x>"},
                         {"run.command", "via bench latency; via bench rate"}};
    const auto page = page_of({run}, machine, drawn);
    ASSERT_TRUE(page.has_value()) << page.error().what;
    const std::string html = html_of(*page);
    for (const char* text :
         {"<svg>run-latency-near</svg>", "<svg>run-saturation-near</svg>",
          "<svg>run-latency-ratio-near</svg>", "6.1 &lt;x&gt;", "pi|pe: Pipes 2.0",
          "<pre>via bench latency\nvia bench rate\n</pre>",
          "<tr class=\"ours\"><td>8</td><td>shm</td><td>0.1000</td>", "via-bench-register-1"}) {
        EXPECT_NE(html.find(text), std::string::npos) << text;
    }
    EXPECT_EQ(html.find("http"), std::string::npos) << "it needs nothing from elsewhere";
    const std::string markdown = markdown_of(*page, "pictures");
    for (const char* text : {"](pictures/run-latency-near.svg)", "| pi\\|pe |", "| **shm** |",
                             "    via bench latency\n", "6.1 &lt;x>"}) {
        EXPECT_NE(markdown.find(text), std::string::npos) << text;
    }
}

TEST(Page, FailsAsItsPicturesDo) {
    const auto page = page_of({three_sizes()}, {}, [](const std::string&, const std::string&) {
        return Result<std::string>(fail("no gnuplot"));
    });
    ASSERT_FALSE(page.has_value());
    EXPECT_EQ(page.error().what, "no gnuplot");
}

}  // namespace
}  // namespace via::report::page_test
