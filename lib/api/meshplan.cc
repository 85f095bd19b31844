#include "api/meshplan.h"

#include <functional>
#include <memory>
#include <new>
#include <string>

#include "api/pricer.h"
#include "api/texts.h"
#include "api/transfers.h"
#include "base/text.h"
#include "cost/topology.h"
#include "diag/outcome_codes.h"
#include "diag/render.h"
#include "json/write.h"
#include "render/bundle_transfers_text.h"
#include "verify/verify.h"

using namespace meshplan;

struct meshplan_pricer {
  std::unique_ptr<Pricer> pricer;
};

struct meshplan_answer {
  int code = 0;
  std::string text;
  std::string diagnostics;
};

namespace {

constexpr const char* text_name = "-";  // of what is asked about, in places

std::string rendered(const Diagnostics& diagnostics) {
  return render(diagnostics, {DiagnosticFormat::json, false, MESHPLAN_VERSION});
}

// Runs one call: what it adds to the diagnostics is rendered, what it throws becomes an answer.
using Call = std::function<void(meshplan_answer& answer, Diagnostics& diagnostics)>;
meshplan_answer* answer_of(const Call& call) noexcept {
  auto* answer = new (std::nothrow) meshplan_answer;
  if (answer == nullptr) return nullptr;
  try {
    Diagnostics diagnostics;
    try {
      call(*answer, diagnostics);
    } catch (const std::bad_alloc&) {
      answer->code = exit_code(Fault::environment);
      diagnostics.add(diagnostic_of(whole_file(""), out_of_memory()));
    }
    if (answer->code != 0) answer->text.clear();
    answer->diagnostics = rendered(diagnostics);
    return answer;
  } catch (const std::bad_alloc&) {
    delete answer;
    return nullptr;
  } catch (const std::exception& error) {
    answer->code = internal_error;
    answer->text.clear();
    try {
      Diagnostics bug;
      bug.add(diagnostic_of_bug(MESHPLAN_VERSION, error.what()));
      answer->diagnostics = rendered(bug);
    } catch (...) {
      delete answer;
      return nullptr;
    }
    return answer;
  }
}

void refuse(const Error& error, meshplan_answer& answer, Diagnostics& diagnostics) {
  diagnostics.add(diagnostic_of(whole_file(text_name), error));
  answer.code = exit_code(error.fault);
}

// A call about the text of a plan, which adds to the text of the answer.
using PlanCall = std::function<Status(const Plan& plan, std::string& text)>;
meshplan_answer* answer_of_plan(const char* plan, size_t bytes, const PlanCall& call) noexcept {
  return answer_of([=, &call](meshplan_answer& answer, Diagnostics& diagnostics) {
    const auto read = load_plan_text(std::string(plan, bytes), text_name, diagnostics, answer.code);
    if (!read) return;
    if (const Status done = call(*read, answer.text); !done)
      refuse(done.error(), answer, diagnostics);
  });
}

TextSink behind(std::string& text) {
  return [&text](std::string_view part) -> Status {
    text += part;
    return Done{};
  };
}

Result<std::string> refuse_file(const std::string& name) {
  return bad_input("'" + name + "' is not read here; put its content into the spec");
}

// Of a caller that names a preset, or none. Empty: reported.
std::optional<SpecQuestion> question_with(const char* topology, meshplan_answer& answer,
                                          Diagnostics& diagnostics) {
  SpecQuestion question;
  question.name = text_name;
  if (topology == nullptr) return question;
  question.topology = topology_preset(topology);
  if (question.topology) return question;
  refuse(bad_input("there is no preset \"" + std::string(topology) + "\"; the presets are " +
                   join(topology_preset_names(), " ")),
         answer, diagnostics);
  return std::nullopt;
}

std::optional<PlannedSpec> planned(const char* spec, size_t bytes, const char* topology,
                                   meshplan_answer& answer, Diagnostics& diagnostics) {
  const auto question = question_with(topology, answer, diagnostics);
  if (!question) return std::nullopt;
  return plan_spec_text(std::string(spec, bytes), refuse_file, *question, diagnostics, answer.code);
}

std::string prices_text(const Plan& plan) {
  JsonWriter out(2, Breaks::one_line);
  out.open('{', Breaks::lines);
  out.list("redistributions", Breaks::lines, plan.redistributions,
           [&](const PlannedRedistribution& r) {
             out.object({{"collectives", r.totals.collectives},
                         {"id", r.request.id},
                         {"lower_bound_ns", ns_of_ps(r.totals.lower_bound_ps)},
                         {"peak_bytes", r.totals.peak_bytes},
                         {"predicted_ns", ns_of_ps(r.totals.predicted_ps)},
                         {"wire_bytes", r.totals.wire_bytes}});
           });
  out.close();
  return out.take();
}

}  // namespace

int meshplan_api_version(void) { return MESHPLAN_API_VERSION; }
const char* meshplan_version(void) { return MESHPLAN_VERSION; }

int meshplan_code(const meshplan_answer* answer) { return answer->code; }
const char* meshplan_text(const meshplan_answer* answer) { return answer->text.c_str(); }
size_t meshplan_text_bytes(const meshplan_answer* answer) { return answer->text.size(); }
const char* meshplan_diagnostics(const meshplan_answer* answer) {
  return answer->diagnostics.c_str();
}
void meshplan_free(meshplan_answer* answer) { delete answer; }

meshplan_answer* meshplan_plan(const char* spec, size_t bytes, const char* topology) {
  return answer_of([=](meshplan_answer& answer, Diagnostics& diagnostics) {
    const auto plan = planned(spec, bytes, topology, answer, diagnostics);
    if (plan) answer.text = write_plan(plan->plan);
  });
}

meshplan_answer* meshplan_price(const char* spec, size_t bytes, const char* topology) {
  return answer_of([=](meshplan_answer& answer, Diagnostics& diagnostics) {
    const auto plan = planned(spec, bytes, topology, answer, diagnostics);
    if (plan) answer.text = prices_text(plan->plan);
  });
}

meshplan_answer* meshplan_verify(const char* plan, size_t bytes) {
  return answer_of_plan(plan, bytes, [](const Plan& read, std::string& text) -> Status {
    std::vector<std::string> left_out;
    if (auto proven = verify_plan(read, &left_out); !proven) return proven;
    JsonWriter out(2, Breaks::one_line);
    out.object({{"left_out", left_out}});
    text = out.take();
    return Done{};
  });
}

meshplan_answer* meshplan_transfers(const char* plan, size_t bytes, const char* id, int64_t rank) {
  return answer_of_plan(plan, bytes, [=](const Plan& read, std::string& text) -> Status {
    TransfersQuestion question;
    if (id != nullptr) question.ids.emplace_back(id);
    if (rank >= 0) question.rank = rank;
    if (auto known = check_transfers(read, question); !known) return known;
    return write_transfers_json(read, question, behind(text));
  });
}

meshplan_answer* meshplan_bundle_transfers(const char* plan, size_t bytes, const char* bundle,
                                           int64_t rank) {
  return answer_of_plan(plan, bytes, [=](const Plan& read, std::string& text) -> Status {
    const auto named = bundle_named(read, bundle);
    if (!named) return named.error();
    BundleTransfersQuestion question{*named, {}};
    if (rank >= 0) question.rank = rank;
    if (auto known = check_transfers(read, {{}, question.rank}); !known) return known;
    return write_bundle_transfers_json(read, question, behind(text));
  });
}

meshplan_answer* meshplan_pricer_make(const char* spec, size_t bytes, const char* mesh,
                                      const char* topology, meshplan_pricer** made) {
  *made = nullptr;
  return answer_of([=](meshplan_answer& answer, Diagnostics& diagnostics) {
    const auto question = question_with(topology, answer, diagnostics);
    if (!question) return;
    auto pricer = make_pricer(std::string(spec, bytes), refuse_file, *question,
                              mesh == nullptr ? "" : mesh, diagnostics, answer.code);
    if (!pricer) return;
    JsonWriter out(2, Breaks::one_line);
    out.object({{"dims", pricer->dims()}});
    answer.text = out.take();
    *made = new meshplan_pricer{std::move(pricer)};
  });
}

void meshplan_pricer_free(meshplan_pricer* pricer) { delete pricer; }

meshplan_answer* meshplan_pricer_ask(meshplan_pricer* pricer, const meshplan_questions* questions,
                                     int64_t* ns) {
  return answer_of([=](meshplan_answer& answer, Diagnostics& diagnostics) {
    const PriceBatch batch{questions->count,  questions->tensor_dims, questions->shapes,
                           questions->dtypes, questions->src,         questions->dst};
    const auto priced = pricer->pricer->price(batch, ns);
    if (!priced) refuse(priced.error(), answer, diagnostics);
  });
}
