//===- Workers.cpp - checks in processes of their own ---------------------===//
#include "Workers.h"
#include "Generator.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace moa;
using namespace moa::random;
using Clock = std::chrono::steady_clock;

//===----------------------------------------------------------------------===//
// Results as text
//===----------------------------------------------------------------------===//

// Fields stand between the bytes 1, a result ends with the byte 2.
static std::string encode(uint64_t seed, const Result &result) {
  std::string sizes;
  for (const auto &[name, value] : result.sizes)
    sizes += name + "=" + std::to_string(value) + " ";
  std::string text;
  for (const std::string &field :
       {std::to_string(seed), result.failure, result.detail, std::to_string(result.round), sizes,
        std::to_string(result.equal), std::to_string(result.bounded), std::to_string(result.infinite),
        std::to_string(result.tried), std::to_string(result.seconds)})
    text += field + '\1';
  return text + '\2';
}

static std::pair<uint64_t, Result> decode(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> fields;
  text.split(fields, '\1');
  Result result;
  if (fields.size() < 10)
    return {0, result};
  auto number = [](llvm::StringRef field) { return std::strtoull(field.str().c_str(), nullptr, 10); };
  result.failure = fields[1].str();
  result.detail = fields[2].str();
  result.round = number(fields[3]);
  llvm::SmallVector<llvm::StringRef> sizes;
  fields[4].split(sizes, ' ', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef size : sizes)
    result.sizes[size.split('=').first.str()] = number(size.split('=').second);
  result.equal = number(fields[5]);
  result.bounded = number(fields[6]);
  result.infinite = number(fields[7]);
  result.tried = number(fields[8]);
  result.seconds = std::strtod(fields[9].str().c_str(), nullptr);
  return {number(fields[0]), result};
}

static void writeAll(int file, const std::string &text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n <= 0)
      _exit(1);
    done += n;
  }
}

//===----------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------===//

namespace {
/// A process and what it has written so far.
struct Worker {
  pid_t process = -1;
  int file = -1;
  std::string text;
  uint64_t next = 0, end = 0, step = 1; ///< its seeds
  Clock::time_point since;              ///< when it began with `next`
};
} // namespace

static void start(Worker &worker, llvm::function_ref<void(int)> work) {
  int ends[2];
  if (pipe(ends) != 0)
    std::abort();
  fflush(nullptr);
  worker.process = fork();
  if (worker.process == 0) {
    close(ends[0]);
    work(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  worker.file = ends[0];
  worker.text.clear();
  worker.since = Clock::now();
}

/// The way a process ended, as a failure, or nothing where it ended well.
static std::string finish(Worker &worker, bool late) {
  if (late)
    kill(worker.process, SIGKILL);
  int status = 0;
  waitpid(worker.process, &status, 0);
  close(worker.file);
  worker.process = worker.file = -1;
  if (late)
    return "timeout";
  if (WIFSIGNALED(status))
    return std::string("crash: ") + strsignal(WTERMSIG(status));
  return WEXITSTATUS(status) ? "crash: exit code " + std::to_string(WEXITSTATUS(status)) : "";
}

/// Reads what is there; false at the end of the file.
static bool receive(Worker &worker) {
  char buffer[1 << 16];
  ssize_t n = read(worker.file, buffer, sizeof buffer);
  if (n > 0)
    worker.text.append(buffer, n);
  return n > 0;
}

Result moa::random::checkApart(const Program &program, const CheckOptions &options, unsigned seconds) {
  Worker worker;
  start(worker, [&](int file) { writeAll(file, encode(0, check(program, options))); });
  bool late = false;
  for (;;) {
    pollfd wait = {worker.file, POLLIN, 0};
    std::chrono::duration<double> spent = Clock::now() - worker.since;
    if (spent.count() > seconds) {
      late = true;
      break;
    }
    if (poll(&wait, 1, 200) > 0 && !receive(worker))
      break;
  }
  Result result = decode(worker.text).second;
  std::string ended = finish(worker, late);
  if (!ended.empty()) {
    result = Result();
    result.failure = ended;
    if (options.sizes)
      result.sizes = *options.sizes;
  }
  return result;
}

/// A process ends after so many programs, which bounds what it keeps.
static constexpr uint64_t kPrograms = 250;

static void begin(Worker &worker, const CheckOptions &options) {
  start(worker, [&](int file) {
    for (uint64_t k = 0; k < kPrograms && worker.next < worker.end; ++k) {
      writeAll(file, encode(worker.next, check(makeProgram(worker.next), options)));
      worker.next += worker.step;
    }
  });
}

void moa::random::checkAll(uint64_t first, uint64_t count, unsigned jobs, const CheckOptions &options, unsigned seconds,
                           llvm::function_ref<void(uint64_t, const Result &)> done) {
  std::vector<Worker> workers(jobs);
  unsigned running = 0;
  auto next = [&](Worker &worker) {
    if (worker.next >= worker.end)
      return;
    begin(worker, options);
    ++running;
  };
  for (unsigned k = 0; k < jobs; ++k) {
    workers[k].next = first + k;
    workers[k].end = first + count;
    workers[k].step = jobs;
    next(workers[k]);
  }
  while (running > 0) {
    std::vector<pollfd> waits;
    for (Worker &worker : workers)
      if (worker.file >= 0)
        waits.push_back({worker.file, POLLIN, 0});
    poll(waits.data(), waits.size(), 200);
    for (Worker &worker : workers) {
      if (worker.file < 0)
        continue;
      pollfd wait = {worker.file, POLLIN, 0};
      bool open = poll(&wait, 1, 0) <= 0 || receive(worker);
      for (size_t at; (at = worker.text.find('\2')) != std::string::npos;) {
        auto [seed, result] = decode(llvm::StringRef(worker.text).take_front(at));
        worker.text.erase(0, at + 1);
        done(seed, result);
        worker.next = seed + worker.step;
        worker.since = Clock::now();
      }
      std::chrono::duration<double> spent = Clock::now() - worker.since;
      bool late = open && spent.count() > seconds;
      if (open && !late)
        continue;
      std::string ended = finish(worker, late);
      --running;
      if (!ended.empty()) {
        Result result;
        result.failure = ended;
        done(worker.next, result);
        worker.next += worker.step;
      }
      next(worker);
    }
  }
}
