//===- Decisions.cpp - decisions of a run ---------------------------------===//
#include "Decisions.h"
#include "lib/Support/Tolerance.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace llvm;

namespace moa {

/// Returns true for plans, which are integers; estimates are floats.
static bool isPlan(const HostArray &output) {
  return !output.getInfo().decisionOf.empty() && output.getInfo().elementType == "i32";
}

static std::string indexText(const std::vector<int64_t> &index) {
  return "[" + join(map_range(index, [](int64_t i) { return std::to_string(i); }), ", ") + "]";
}

/// Prints "plan 1", or "not shown" if a tolerance for every input is not proved.
static std::string planText(int64_t plan) { return plan < 0 ? "not shown" : "plan " + std::to_string(plan); }

/// Prints, for example, "7.9e-3, 2.1e-4 of 3e-2 (lse: …)": the estimate or bound of each plan at
/// one index, first that of the baseline kernel.
static std::string estimateText(const KernelInfo &info, const std::vector<HostArray> &outputs, size_t plan,
                                int64_t element) {
  std::string text;
  for (size_t k = plan + 1; k < outputs.size(); ++k) {
    const HostArray &output = outputs[k];
    const std::string &of = output.getInfo().decisionOf;
    if (of.empty() || isPlan(output))
      break;
    int64_t plans = output.getShape().back();
    std::vector<std::string> numbers;
    for (int64_t p = 0; p < plans; ++p) {
      double value = output.get(element * plans + p);
      numbers.push_back(std::isnan(value) ? "none" : std::isinf(value) ? "inf" : getNumberText(value, 3));
    }
    auto result = find_if(info.parameters, [&](const ParameterInfo &p) { return p.isOutput && p.name == of; });
    if (!result->within->isSampled)
      numbers.front() = "as written " + numbers.front();
    text += "; " + of + ": " + join(numbers, ", ") + " of " + getNumberText(result->within->epsilon);
  }
  return text;
}

void printDecisions(raw_ostream &os, const KernelInfo &info, const std::vector<HostArray> &outputs) {
  constexpr int64_t shown = 64;
  for (size_t k = 0; k < outputs.size(); ++k) {
    const HostArray &output = outputs[k];
    if (!isPlan(output))
      continue;
    std::map<int64_t, int64_t> counts;
    for (int64_t e = 0; e < output.getNumElements(); ++e)
      ++counts[int64_t(output.get(e))];
    os << "plans    " << output.getInfo().decisionOf << ":";
    if (counts.empty()) {
      os << " nothing to decide, as [" << join(output.getInfo().extents, ", ") << "] has no indices\n";
      continue;
    }
    const char *before = " ";
    for (auto [plan, count] : counts)
      os << std::exchange(before, ", ") << planText(plan) << " at " << count;
    os << " of " << output.getNumElements() << " indices of [" << join(output.getInfo().extents, ", ") << "]\n";
    for (int64_t e = 0; e < std::min(output.getNumElements(), shown); ++e)
      os << "  " << indexText(output.getIndex(e)) << " " << planText(int64_t(output.get(e)))
         << estimateText(info, outputs, k, e) << "\n";
    if (output.getNumElements() > shown)
      os << "  and " << output.getNumElements() - shown << " more\n";
  }
}

std::string getPlans(Compilation &compilation, const KernelInfo &info, const std::vector<HostArray> &outputs) {
  json::Object lists, meaning;
  for (const HostArray &output : outputs)
    if (isPlan(output)) {
      json::Array list;
      for (int64_t e = 0; e < output.getNumElements(); ++e)
        list.push_back(std::max<int64_t>(0, int64_t(output.get(e))));
      const std::string key = info.name + "." + output.getInfo().decisionOf;
      lists[key] = std::move(list);
      meaning[key] = json::Array(compilation.spent(info.name, output.getInfo().decisionOf));
    }
  return formatv("{0:2}\n", json::Value(json::Object{{"plans", std::move(lists)}, {"meaning", std::move(meaning)}}));
}

} // namespace moa
