// Flags: each is described, parsed and completed, and old spellings of values hold.
#include <doctest/doctest.h>

#include "cli/arguments.h"
#include "fake_system.h"

namespace meshplan {
namespace {

using namespace test;

TEST_CASE("every flag of every command is described, parsed and completed") {
  FakeSystem system;
  const std::string bash = run(system, {"completion", "bash"}).out;
  const std::string fish = run(system, {"completion", "fish"}).out;
  const std::string man = run(system, {"--help-man"}).out;
  for (const CommandDescription& command : command_descriptions()) {
    CAPTURE(command.name);
    CHECK(!command.examples.empty());
    CHECK(help_text(command.name).rfind("Examples:\n  ", 0) == 0);
    CHECK(bash.find(command.name) != std::string::npos);
    CHECK(man.find("meshplan " + command.name) != std::string::npos);
    for (const FlagDescription& flag : command.flags) {
      CAPTURE(flag.names);
      const std::string name = flag.names.substr(flag.names.rfind(',') + 1);
      CHECK(help_text(command.name).find(name) != std::string::npos);
      CHECK(bash.find(name) != std::string::npos);
      CHECK(fish.find(" -l " + name.substr(2)) != std::string::npos);
      // A flag that the table describes and the parser does not bind is an unknown word to CLI11.
      std::vector<std::string> words = {command.name, "x", name};
      if (!flag.value.empty())
        words.push_back(flag.value == "N" || flag.value == "K" || flag.value == "R" || flag.value == "BYTES"
                            ? "1"
                            : flag.value.substr(0, flag.value.find_first_of("|[")));
      if (command.name == "diff" && name != "--against") words.insert(words.begin() + 2, "y");
      const auto parsed = parse_arguments(words);
      CHECK_MESSAGE(parsed.ok(), (parsed.ok() ? "" : parsed.error().message));
    }
  }
}

TEST_CASE("an empty name, as of a variable that was never set, is told as one") {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"plan", ""},
                                                                                     {"check", ""},
                                                                                     {"check", "a.json", ""},
                                                                                     {"diff", "a.json", ""},
                                                                                     {"explain", ""},
                                                                                     {"compare", "p.json", "--ran", ""}}) {
    CAPTURE(words[0]);
    const auto parsed = parse_arguments(words);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().message.find("a name is empty") != std::string::npos);
  }
}

TEST_CASE("a flag that is given twice, or without its value, is told so in words of ours") {
  const auto message = [](const std::vector<std::string>& words) {
    const auto parsed = parse_arguments(words);
    REQUIRE_FALSE(parsed.ok());
    return parsed.error().message;
  };
  CHECK(message({"plan", "s.json", "-o", "a", "-o", "b"}) == "meshplan plan: --output is given more than once; give it once");
  CHECK(message({"plan", "s.json", "--planner", "greedy", "--planner", "graph"}) ==
        "meshplan plan: --planner is given more than once; give it once");
  CHECK(message({"plan", "s.json", "--topology"}) == "meshplan plan: --topology needs a value: NAME|FILE");
  CHECK(message({"plan", "s.json", "--color"}) == "meshplan plan: --color needs a value: auto|always|never");
  CHECK(message({"--color", "never", "plan", "s.json"}) ==
        "unknown command --color; flags come behind the command, and meshplan --help lists both");
  CHECK(message({"diff", "a", "b", "--fail-on", "slower=5"}).ends_with("not \"slower=5\"; did you mean slower=5%?"));
}

TEST_CASE("stdin that several files name is refused, and an id that is a dash is none of them") {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"diff", "-", "-"},
                                                                                     {"diff", "-", "b.json", "--topology", "-"},
                                                                                     {"check", "-", "-"},
                                                                                     {"plan", "-", "--topology=-"},
                                                                                     {"run", "-", "--against", "-"},
                                                                                     {"compare", "-", "--ran", "-"}}) {
    CAPTURE(words[0]);
    const auto parsed = parse_arguments(words);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().message == "stdin is read once, and \"-\" names it 2 times; write all but one to files");
  }
  CHECK(parse_arguments({"explain", "-", "-"}).ok());
  CHECK(parse_arguments({"transfers", "-", "-"}).ok());
  CHECK(parse_arguments({"plan", "-", "-o", "-"}).ok());
}

TEST_CASE("a number that is out of range is told the end that it is beyond") {
  const auto message = [](const std::string& number) {
    const auto parsed = parse_arguments({"run", "p.json", "--seed", number});
    REQUIRE_FALSE(parsed.ok());
    return parsed.error().message;
  };
  CHECK(message("9223372036854775808").ends_with("expected an integer of at most 9223372036854775807, not \"9223372036854775808\""));
  CHECK(message("-1").ends_with("expected an integer of at least 0, not \"-1\""));
  CHECK(message("1x").ends_with("expected an integer of at least 0, not \"1x\""));
}

TEST_CASE("old spellings of option values are accepted") {
  const auto apart = parse_arguments({"diff", "a", "b", "--fail-on", "dearer=5%", "--only-if", "dearer"});
  REQUIRE(apart.ok());
  CHECK(apart->fail_on == std::vector<std::string>{"slower=5%"});
  CHECK(apart->only_if == "slower");
  const auto joined = parse_arguments({"diff", "a", "b", "--fail-on=dearer", "--only-if=dearer"});
  REQUIRE(joined.ok());
  CHECK(joined->fail_on == std::vector<std::string>{"slower"});
  CHECK(joined->only_if == "slower");
}

}  // namespace
}  // namespace meshplan
