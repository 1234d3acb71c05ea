//===- Progress.cpp - progress of long tasks ------------------------------===//

#include "Progress.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

namespace moa {

Progress::Progress(std::string what) : what(std::move(what)), thread([this] { watch(); }) {}

Progress::~Progress() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    finished = true;
  }
  changed.notify_all();
  thread.join();
}

void Progress::advance(int64_t newDone, int64_t newTotal) {
  done = newDone;
  total = newTotal;
}

void Progress::watch() {
  std::unique_lock<std::mutex> lock(mutex);
  for (int seconds = 2; !changed.wait_for(lock, std::chrono::seconds(2), [this] { return finished; }); seconds += 2) {
    llvm::errs() << "  " << what << " … " << seconds << " s";
    if (total)
      llvm::errs() << ", " << done << " of " << total;
    llvm::errs() << "\n";
  }
}

} // namespace moa
