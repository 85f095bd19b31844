// Reads a plan file, so that verification and replay work from the file alone. Every value is
// checked for type and range before it is used: any bytes give a plan or an error that names the
// place.
#include <map>

#include "base/sha256.h"
#include "base/utf8.h"
#include "json/parse.h"
#include "json/write.h"
#include "plan/bundle_json.h"
#include "plan/known_keys.h"
#include "plan/plan.h"
#include "plan/read_list.h"

namespace meshplan {
namespace {

// The schema's name and major version; unknown majors are refused by name, minor ones
// ("meshplan/plan/1.2") are read.
void check_schema(const Value& root) {
  static constexpr std::string_view family = "meshplan/plan/";
  const Value schema = root.at("schema");
  const std::string name = schema.text();
  if (name.substr(0, 14) == "meshplan/spec/")
    schema.fail("this is a spec; plan it first: meshplan plan SPEC -o PLAN");
  if (name.substr(0, family.size()) != family)
    schema.fail("\"" + printable(name) + "\" is not a plan; expected \"meshplan/plan/1\"");
  const std::string version = name.substr(family.size());
  const std::string major = version.substr(0, version.find('.'));
  if (major != "1") {
    schema.fail("\"" + printable(name) + "\" needs a meshplan that reads plans of version " +
                printable(major) + "; this one reads version 1");
  }
}

std::string read_digest(const Value& value) {
  std::string text = value.text();
  const bool named = text.size() == 71 && text.substr(0, 7) == "sha256:";
  if (!named || text.find_first_not_of("0123456789abcdef", 7) != std::string::npos)
    value.fail("expected a digest: \"sha256:\" and 64 digits of 0-9 a-f");
  return text;
}

constexpr std::string_view list_key = "redistributions";

// A plan file of any size: its redistributions are read and digested one after another while the
// text is parsed, so that no more than one of them is held as JSON.
//
// Keys ascend in the files that meshplan writes, so that what stands before the list is what its
// elements need (the meshes) and what the digest begins with. A file whose keys stand in another
// order is parsed twice: the second time all but the list is known beforehand. So is one with
// several universes, whose key stands behind the list.
class PlanFile {
 public:
  explicit PlanFile(bool check_digest) : check_digest_(check_digest) {}

  // Before the first element: `document` holds what stands before the list, or all but the list.
  void start(const JsonDocument& document) {
    started_ = true;
    members_before_ = count_before(document);
    if (check_digest_) {
      digest_ += '{';
      add_members(document, false);
      append_json_string(digest_, list_key);
      digest_ += ":[";
    }
    mesh_problem_ = attempt([&] {
      plan_.meshes = read_meshes(Value(document, 0));
      names_ = names_of(plan_.meshes);
    });
  }

  void take(const JsonDocument& document, uint32_t element) {
    if (!started_) start(document);
    if (mesh_problem_ || problem_) return;
    const Value value(document, element);
    problem_ = attempt([&] { list_.add(value, plan_.meshes, names_); });
    if (!unknown_key_ && !value.has("same_as"))
      unknown_key_ = attempt([&] { check_keys(value, form_of_redistribution()); });
    if (!check_digest_) return;
    if (elements_++ > 0) digest_ += ',';
    append_canonical(digest_, document, element);
    hash_.update(digest_);
    digest_.clear();
  }

  // Whether all that belongs before the list stood before it.
  [[nodiscard]] bool in_order(const JsonDocument& document) const {
    if (!started_) return true;
    return members_before_ == count_before(document) &&
           (!mesh_problem_ || !content_of(document).contains("universes"));
  }

  // `document`: all but the elements of the list. Problems are told in the order of the keys.
  Plan finish(const JsonDocument& document) {
    const Value root(document, 0);
    check_schema(root);
    if (!started_) start(document);
    plan_.spec_digest = read_digest(root.at("spec_digest"));
    if (mesh_problem_) throw Unreadable(*mesh_problem_);
    plan_.options = read_options(root.at("options"));
    plan_.topology = read_topology(root.at("topology"));
    root.at("groups").each(
        [&](const Value& group) { plan_.groups.push_back(read_group(group, plan_.meshes)); });
    if (root.at(list_key).kind() != JsonKind::array) root.at(list_key).fail("expected a list");
    if (problem_) throw Unreadable(*problem_);
    plan_.redistributions = list_.take();
    if (root.has("bundles"))
      plan_.bundles = read_bundles(root.at("bundles"), plan_.redistributions);
    plan_.totals = read_totals(root.at("totals"));
    if (root.has("digest")) plan_.digest = root.at("digest").text();
    if (root.at("schema").text() == "meshplan/plan/1") {
      check_keys(root, form_of_plan());
      if (unknown_key_) throw Unreadable(*unknown_key_);
    }
    // Last: in a plan changed by hand, an impossible value is more useful to name than the digest.
    if (check_digest_) check_content(document);
    return std::move(plan_);
  }

 private:
  template <class Read>
  static std::optional<Unreadable> attempt(const Read& read) {
    try {
      read();
    } catch (const Unreadable& problem) {
      return problem;
    }
    return std::nullopt;
  }

  // The members that the digest is over, by key.
  static std::map<std::string, uint32_t> content_of(const JsonDocument& document) {
    std::map<std::string, uint32_t> members;
    std::string buffer;
    for (uint32_t child = 1; child < document.nodes[0].next; child = document.nodes[child].next) {
      members.emplace(key_of(document, document.nodes[child], buffer), child);
    }
    members.erase("digest");
    return members;
  }

  static size_t count_before(const JsonDocument& document) {
    const auto members = content_of(document);
    return static_cast<size_t>(
        std::distance(members.begin(), members.lower_bound(std::string(list_key))));
  }

  // Those that stand before the list, each with the comma after it, or those behind the list, each
  // with the comma before it.
  void add_members(const JsonDocument& document, bool behind) {
    for (const auto& [key, member] : content_of(document)) {
      const int order = key.compare(list_key);
      if (behind ? order <= 0 : order >= 0) continue;
      if (behind) digest_ += ',';
      append_json_string(digest_, key);
      digest_ += ':';
      append_canonical(digest_, document, member);
      if (!behind) digest_ += ',';
    }
  }

  void check_content(const JsonDocument& document) {
    const Value given = Value(document, 0).at("digest");
    digest_ += ']';
    add_members(document, true);
    digest_ += '}';
    hash_.update(digest_);
    const std::string digest = "sha256:" + hash_.hex();
    if (digest != given.text()) {
      given.fail("the content has the digest " + digest +
                 ", so it was changed after planning; plan the spec again");
    }
  }

  bool check_digest_;
  bool started_ = false;
  size_t members_before_ = 0;
  size_t elements_ = 0;
  Plan plan_;
  std::vector<MeshNames> names_;
  RedistributionList list_;
  std::optional<Unreadable> mesh_problem_;
  std::optional<Unreadable> problem_;      // of the first element that has one
  std::optional<Unreadable> unknown_key_;  // the same
  Sha256 hash_;
  std::string digest_;  // canonical text that is not hashed yet
};

}  // namespace

std::variant<Plan, PlanRefusal> try_read_plan(std::string_view text, bool check_digest) {
  const JsonRules rules{.fractions = false};
  PlanFile file(check_digest);
  const auto parsed = parse_json_list(
      text, rules, list_key,
      [&](const JsonDocument& part, uint32_t element) { file.take(part, element); });
  if (const auto* refusal = std::get_if<JsonRefusal>(&parsed))
    return PlanRefusal{refusal->message, {}, refusal->byte};
  const JsonDocument& document = std::get<JsonDocument>(parsed);
  if (!file.in_order(document)) {
    file = PlanFile(check_digest);
    file.start(document);
    (void)parse_json_list(text, rules, list_key, [&](const JsonDocument& part, uint32_t element) {
      file.take(part, element);
    });
  }
  try {
    return file.finish(document);
  } catch (const Unreadable& problem) {
    return PlanRefusal{problem.message, problem.pointer, {}, problem.begin, problem.end};
  }
}

Result<Plan> read_plan(std::string_view text, bool check_digest) {
  auto read = try_read_plan(text, check_digest);
  if (auto* plan = std::get_if<Plan>(&read)) return std::move(*plan);
  const PlanRefusal& refusal = std::get<PlanRefusal>(read);
  if (refusal.byte) return bad_input(line_and_column(text, *refusal.byte) + ": " + refusal.message);
  return bad_input((refusal.pointer.empty() ? "the whole document" : refusal.pointer) + ": " +
                   refusal.message);
}

}  // namespace meshplan
