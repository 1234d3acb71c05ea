//===- Progress.h - a line for anything that takes long ---------*- C++ -*-===//
#ifndef MOA_TOOLS_MOA_RUN_PROGRESS_H
#define MOA_TOOLS_MOA_RUN_PROGRESS_H

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace moa {

/// While it lives, says on standard error every two seconds what is being done
/// and for how long.
class Progress {
public:
  explicit Progress(std::string what);
  ~Progress();
  /// Part of the work that is done; shown where there is a total.
  void advance(int64_t done, int64_t total);

private:
  void watch();
  std::string what;
  std::atomic<int64_t> done{0}, total{0};
  bool finished = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::thread thread;
};

} // namespace moa

#endif // MOA_TOOLS_MOA_RUN_PROGRESS_H
