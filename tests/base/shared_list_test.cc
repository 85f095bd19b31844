#include "base/shared_list.h"

#include <doctest/doctest.h>

#include <string>

using namespace meshplan;

namespace {

bool share(const SharedList<std::string>& a, const SharedList<std::string>& b) { return a.list().data() == b.list().data(); }

}  // namespace

TEST_CASE("copies share their elements until one is changed") {
  SharedList<std::string> a = {"one", "two"};
  const SharedList<std::string> b = a;
  SharedList<std::string> c = b;
  CHECK(share(a, b));
  CHECK(a == b);
  c[1] = "three";
  CHECK(!share(c, b));
  CHECK(b[1] == "two");
  CHECK(c != b);
  a.push_back("four");
  CHECK(a.list() == std::vector<std::string>{"one", "two", "four"});
  CHECK(b.list() == std::vector<std::string>{"one", "two"});
  CHECK(c.list() == std::vector<std::string>{"one", "three"});
}

TEST_CASE("the only owner changes its elements in place") {
  SharedList<std::string> a = {"one", "two"};
  const std::string* const before = &a.list()[0];
  for (std::string& text : a) text += "!";
  a.back() = "last";
  a.front() = "first";
  CHECK(&a.list()[0] == before);
  CHECK(a == SharedList<std::string>{"first", "last"});
}

TEST_CASE("reading shares on, every way to change does not") {
  const SharedList<std::string> kept = {"one", "two"};
  const auto leaves_kept = [&](const auto& change) {
    SharedList<std::string> copy = kept;
    change(copy);
    CHECK(!share(copy, kept));
    return kept.list() == std::vector<std::string>{"one", "two"};
  };
  using List = SharedList<std::string>;
  CHECK(leaves_kept([](List& l) { *l.begin() = "x"; }));
  CHECK(leaves_kept([](List& l) { *(l.end() - 1) = "x"; }));
  CHECK(leaves_kept([](List& l) { l[0] = "x"; }));
  CHECK(leaves_kept([](List& l) { l.front() = "x"; }));
  CHECK(leaves_kept([](List& l) { l.back() = "x"; }));
  CHECK(leaves_kept([](List& l) { l.pop_back(); }));
  CHECK(leaves_kept([](List& l) { l.clear(); }));
  CHECK(leaves_kept([](List& l) { l.own().erase(l.own().begin()); }));
  CHECK(leaves_kept([](List& l) { l = std::vector<std::string>{"x"}; }));
  const List copy = kept;
  size_t bytes = copy.front().size() + copy.back().size() + copy[0].size() + copy.size();
  for (const std::string& text : copy) bytes += text.size();
  CHECK(bytes == 3 + 3 + 3 + 2 + 6);
  CHECK(share(copy, kept));
}

TEST_CASE("a list without elements is as any other") {
  SharedList<int> none;
  CHECK(none.empty());
  CHECK(none.size() == 0);
  CHECK(none.begin() == none.end());
  CHECK(none == SharedList<int>(std::vector<int>{}));
  SharedList<int> emptied = {1};
  emptied.pop_back();
  CHECK(emptied == none);
  const std::vector<int>& as_list = emptied;
  CHECK(as_list.empty());
  none.push_back(3);
  CHECK(none.list() == std::vector<int>{3});
}
