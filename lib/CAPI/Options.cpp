//===- Options.cpp - options of compilations in C -------------------------===//

#include "lib/CAPI/Handles.h"

using namespace moa;
using namespace moa::capi;

moa_options *moa_options_create(void) {
  return guarded(nullptr, [] { return new moa_options(); });
}
void moa_options_destroy(moa_options *options) { delete options; }

/// Changes the options if there are any and the value is allowed.
template <typename Function> static moa_status change(moa_options *options, bool isAllowed, Function work) noexcept {
  if (!options || !isAllowed)
    return MOA_STATUS_ARGUMENT;
  try {
    work(options->options);
    return MOA_STATUS_OK;
  } catch (const std::bad_alloc &) {
    return MOA_STATUS_MEMORY;
  } catch (...) {
    return MOA_STATUS_INTERNAL;
  }
}

/// Changes the options of accuracy, which are there from then on.
template <typename Function>
static moa_status changeAccuracy(moa_options *options, bool isAllowed, Function work) noexcept {
  return change(options, isAllowed, [&](CompilerOptions &changed) {
    AccuracyOptions accuracy = changed.accuracy.value_or(AccuracyOptions());
    work(accuracy);
    changed.accuracy = std::move(accuracy);
  });
}

static moa_status setText(moa_options *options, std::string CompilerOptions::*member, const char *text) {
  return change(options, true, [&](CompilerOptions &changed) { changed.*member = orEmpty(text); });
}

static moa_status setFlag(moa_options *options, bool AccuracyOptions::*member, bool value) {
  return changeAccuracy(options, true, [&](AccuracyOptions &accuracy) { accuracy.*member = value; });
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

moa_status moa_options_add_setting(moa_options *options, const char *setting) {
  return change(options, setting, [&](CompilerOptions &changed) { changed.settings.push_back(setting); });
}

moa_status moa_options_set_schedule(moa_options *options, const char *text, const char *file) {
  return change(options, true, [&](CompilerOptions &changed) {
    std::string schedule = orEmpty(text), scheduleFile = orEmpty(file);
    changed.schedule = std::move(schedule);
    changed.scheduleFile = std::move(scheduleFile);
  });
}

moa_status moa_options_set_processor(moa_options *options, const char *processor) {
  return setText(options, &CompilerOptions::processor, processor);
}

moa_status moa_options_set_architecture(moa_options *options, const char *architecture) {
  return setText(options, &CompilerOptions::architecture, architecture);
}

moa_status moa_options_set_optimization(moa_options *options, uint32_t level) {
  return change(options, level <= 3, [&](CompilerOptions &changed) { changed.optimization = level; });
}

moa_status moa_options_set_explain(moa_options *options, bool explain) {
  return change(options, true, [&](CompilerOptions &changed) { changed.explain = explain; });
}

moa_status moa_options_set_dump_directory(moa_options *options, const char *directory) {
  return setText(options, &CompilerOptions::dumpDirectory, directory);
}

//===----------------------------------------------------------------------===//
// Accuracy
//===----------------------------------------------------------------------===//

moa_status moa_options_add_tolerance(moa_options *options, const char *tolerance) {
  return changeAccuracy(options, tolerance,
                        [&](AccuracyOptions &accuracy) { accuracy.tolerances.push_back(tolerance); });
}

moa_status moa_options_set_checks_tolerances(moa_options *options, bool checks) {
  return setFlag(options, &AccuracyOptions::checksTolerances, checks);
}

moa_status moa_options_set_mixed_precision(moa_options *options, bool mixed) {
  return setFlag(options, &AccuracyOptions::mixedPrecision, mixed);
}

moa_status moa_options_set_mixed_precision_from(moa_options *options, int64_t count) {
  return changeAccuracy(options, count == 0 || count >= 256,
                        [&](AccuracyOptions &accuracy) { accuracy.mixedPrecisionFrom = count; });
}

moa_status moa_options_set_pilot_from(moa_options *options, int64_t operations) {
  return changeAccuracy(options, operations >= -1, [&](AccuracyOptions &accuracy) { accuracy.pilotFrom = operations; });
}

moa_status moa_options_set_variants_of_gpu(moa_options *options, bool uses) {
  return setFlag(options, &AccuracyOptions::variantsOfGpu, uses);
}

moa_status moa_options_set_low_rank_from(moa_options *options, int64_t count) {
  return changeAccuracy(options, count == 0 || count >= 256,
                        [&](AccuracyOptions &accuracy) { accuracy.lowRankFrom = count; });
}

moa_status moa_options_set_decisions(moa_options *options, bool decisions) {
  return setFlag(options, &AccuracyOptions::decisions, decisions);
}

moa_status moa_options_set_plans(moa_options *options, const char *text, const char *file) {
  return changeAccuracy(options, true, [&](AccuracyOptions &accuracy) {
    accuracy.plans = orEmpty(text);
    accuracy.plansFile = orEmpty(file);
  });
}

moa_status moa_options_set_checks_plans(moa_options *options, bool checks) {
  return setFlag(options, &AccuracyOptions::checksPlans, checks);
}

moa_status moa_options_set_warns_if_unused(moa_options *options, bool warns) {
  return setFlag(options, &AccuracyOptions::warnsIfUnused, warns);
}
