// What a signal that ends the process leaves behind: one line in a file that was opened before. See README.md for why.
#include <errno.h>
#include <fcntl.h>
#include <node_api.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "../calls.h"

namespace {

constexpr size_t kPathMax = 4096;
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
constexpr size_t kCount = sizeof(kSignals) / sizeof(kSignals[0]);

struct sigaction before[kCount];
volatile int note = -1;
// The first thread that falls writes; others that fall meanwhile write nothing.
std::atomic_flag taken = ATOMIC_FLAG_INIT;

const char* nameOf(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGABRT: return "SIGABRT";
    case SIGILL: return "SIGILL";
    default: return "SIGFPE";
  }
}

// Everything below runs inside a signal handler: system calls alone, and no memory but the stack's and this.
char line[kPathMax + 128];
char maps[65536];

uintptr_t hexAt(const char*& at, const char* end) {
  uintptr_t found = 0;
  for (; at < end; ++at) {
    const char letter = *at;
    if (letter >= '0' && letter <= '9') found = found * 16 + static_cast<uintptr_t>(letter - '0');
    else if (letter >= 'a' && letter <= 'f') found = found * 16 + static_cast<uintptr_t>(letter - 'a' + 10);
    else break;
  }
  return found;
}

// Appends the path of the file that is mapped at `place` to `line`, and returns where it ends.
size_t appendFileAt(uintptr_t place, size_t length) {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return length;
  size_t held = 0;
  for (;;) {
    const ssize_t got = read(file, maps + held, sizeof(maps) - held);
    if (got <= 0) break;
    held += static_cast<size_t>(got);
    const char* at = maps;
    const char* end = maps + held;
    for (;;) {
      const char* stop = static_cast<const char*>(memchr(at, '\n', static_cast<size_t>(end - at)));
      if (stop == nullptr) break;
      // start-end rights offset device inode path
      const char* reader = at;
      const uintptr_t from = hexAt(reader, stop);
      if (reader < stop) ++reader;
      const uintptr_t to = hexAt(reader, stop);
      const char* path = static_cast<const char*>(memchr(at, '/', static_cast<size_t>(stop - at)));
      if (place >= from && place < to && path != nullptr) {
        const char between[] = " in ";
        memcpy(line + length, between, 4);
        length += 4;
        size_t size = static_cast<size_t>(stop - path);
        if (size > kPathMax) size = kPathMax;
        memcpy(line + length, path, size);
        length += size;
        close(file);
        return length;
      }
      at = stop + 1;
    }
    held = static_cast<size_t>(end - at);
    if (held == sizeof(maps)) break;
    memmove(maps, at, held);
  }
  close(file);
  return length;
}

bool isDatabase(size_t from, size_t to) {
  constexpr char kName[] = "/data.mdb";
  constexpr size_t kLength = sizeof(kName) - 1;
  return to - from >= kLength && memcmp(line + to - kLength, kName, kLength) == 0;
}

// Bytes that were written. `isEnding`: the handlers before this one have let go of the signal.
off_t writeNote(int signal, const siginfo_t* info, bool isEnding) {
  if (note < 0 || taken.test_and_set()) return 0;
  off_t written = 0;
  const int code = errno;
  size_t length = strlen(nameOf(signal));
  memcpy(line, nameOf(signal), length);
  const size_t named = length;
  if (signal != SIGABRT) length = appendFileAt(reinterpret_cast<uintptr_t>(info->si_addr), length);
  // Copies of files whose disk fails are ended by this signal, and not the process (bus.h): those of databases are not such. What
  // reads a mapped file in place, as an index segment is read, is ended by it, too.
  if (signal == SIGBUS && !isEnding && !isDatabase(named, length)) {
    taken.clear();
  } else {
    line[length++] = '\n';
    // The disk may refuse: then nothing is left to do.
    const ssize_t done = write(note, line, length);
    if (done > 0) written = done;
  }
  errno = code;
  return written;
}

// The handler before this one has dealt with it, as V8's does with memory that WebAssembly may not touch: nothing ended.
void takeBack(off_t written) {
  const int code = errno;
  struct stat found;
  if (fstat(note, &found) == 0 && found.st_size >= written) {
    [[maybe_unused]] int done = ftruncate(note, found.st_size - written);
  }
  taken.clear();
  errno = code;
}

void caught(int signal, siginfo_t* info, void* context);

// False where the earlier handler let go of the signal, so that the process ends when this one returns. Who aborts, or sends a
// signal, means to end it in any case.
bool isDealtWith(int signal, const siginfo_t* info) {
  struct sigaction now = {};
  if ((signal != SIGSEGV && signal != SIGBUS) || info->si_code <= 0) return false;
  return sigaction(signal, nullptr, &now) == 0 && now.sa_sigaction == caught;
}

void caught(int signal, siginfo_t* info, void* context) {
  const off_t written = writeNote(signal, info, false);
  for (size_t at = 0; at < kCount; at += 1) {
    if (kSignals[at] != signal) continue;
    const struct sigaction& earlier = before[at];
    const bool isDetailed = (earlier.sa_flags & SA_SIGINFO) != 0;
    if (isDetailed || (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN)) {
      if (isDetailed) earlier.sa_sigaction(signal, info, context);
      else earlier.sa_handler(signal);
      // A copy that was ended has jumped out of the handler: what returns from it was none.
      if (isDealtWith(signal, info)) {
        if (written > 0) takeBack(written);
      } else if (signal == SIGBUS) {
        writeNote(signal, info, true);
      }
      return;
    }
    if (signal == SIGBUS) writeNote(signal, info, true);
    // The fault is repeated, or sent again, and ends the process as by default.
    sigaction(signal, &earlier, nullptr);
    if (info->si_code <= 0) raise(signal);
    return;
  }
}

// keep(path) -> 0, or an errno: from now on a line is added to this file where a signal ends the process. Once a process.
napi_value keep(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "keep");
  const std::string path = arguments.text(0, kPathMax);
  if (!arguments.good) return nullptr;
  if (note >= 0) return numberOf(env, EBUSY);
  const int opened = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (opened < 0) return numberOf(env, errno);
  note = opened;
  for (size_t at = 0; at < kCount; at += 1) {
    struct sigaction act = {};
    act.sa_sigaction = caught;
    act.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    if (sigaction(kSignals[at], &act, &before[at]) != 0) return numberOf(env, errno);
  }
  return numberOf(env, 0);
}

}  // namespace

NAPI_MODULE_INIT() { return give(env, exports, {{"keep", keep}}); }
