//===- Forms.cpp - pass onf-find-forms ------------------------------------===//
#include "lib/Conversion/ONFToDevice/Forms.h"
#include "lib/Conversion/ONFToDevice/ONFToDevice.h"
#include "lib/Conversion/ONFToVector/Running.h"
#include "mlir/IR/BuiltinOps.h"

namespace moa {
#define GEN_PASS_DEF_FINDFORMS
#include "lib/Conversion/ConversionPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;

static const KernelForm *const allForms[] = {
#define MOA_FORM(NAME) &forms::NAME,
#include "lib/Conversion/ONFToDevice/Forms.def"
};

bool moa::applies(const KernelForm &form, onf::ForOp nest) { return bool(form.match(nest)); }

const KernelForm *moa::getForm(StringRef name) {
  auto found = llvm::find_if(allForms, [&](const KernelForm *form) { return form->name == name; });
  return found != std::end(allForms) ? *found : nullptr;
}

ArrayAttr moa::findForms(onf::ForOp nest) {
  Builder b(nest.getContext());
  SmallVector<Attribute> found;
  const KernelForm *first = nullptr; // that applies
  bool isScan = rows::findRunningFold(nest).has_value();
  auto add = [&](const KernelForm &form, Attribute content) {
    found.push_back(onf::FormAttr::get(b.getContext(), form.name, content));
  };
  auto refuse = [&](const KernelForm &form, const Twine &why) { add(form, b.getStringAttr(why)); };
  for (const KernelForm *form : allForms) {
    if (form->isForOthers && first) {
      refuse(*form, "it has the form '" + first->name + "'");
      continue;
    }
    auto match = form->match(nest);
    if (!match) {
      refuse(*form, match.why());
    } else if (isScan && form != &forms::rows) { // sequential along its axis
      refuse(*form, "its fold is a scan along an axis of the nest");
    } else {
      add(*form, (*match)->describe());
      first = first ? first : form;
    }
  }
  return b.getArrayAttr(found);
}

void moa::setForms(onf::KernelOp kernel) {
  for (auto nest : kernel.getBody().getOps<onf::ForOp>())
    nest->setAttr(onf::kFormsAttr, findForms(nest));
}

namespace {
struct FindForms final : moa::impl::FindFormsBase<FindForms> {
  void runOnOperation() final {
    for (auto kernel : getOperation().getOps<onf::KernelOp>())
      setForms(kernel);
  }
};
} // namespace

std::unique_ptr<Pass> moa::createFindFormsPass() { return std::make_unique<FindForms>(); }
