#include "replay/fault.h"

#include <doctest/doctest.h>

using namespace meshplan;

TEST_CASE("faults print as they parse") {
  for (const std::string& kind : fault_kind_names()) {
    auto fault = parse_fault("2:15:" + kind);
    REQUIRE(fault.ok());
    CHECK(to_text(*fault) == "2:15:" + kind);
  }
  for (const char* text : {"", "1", "1:2", "a:2:flip", "1:b:flip", "-1:2:flip", "1:2:", "1:2:flop", "1:2:flip:3"}) {
    auto fault = parse_fault(text);
    REQUIRE_MESSAGE(!fault.ok(), text);
    CHECK(fault.error().fault == Fault::bad_input);
  }
  CHECK(parse_fault("0:0:flop").error().message.find("did you mean flip?") != std::string::npos);
}
