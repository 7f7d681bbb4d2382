// Copies of bytes that may lie in a mapped file. A file that has shrunk, or whose disk fails, answers an access by SIGBUS,
// which would end the program: here it ends the copy. Each addon that includes this has a handler of its own; it passes other
// signals on to the handler before.
#pragma once

#include <setjmp.h>
#include <signal.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bus {

// What memory this thread may use by its protection keys (x86). The kernel takes most of it away while a signal is handled, and
// gives it back when that returns, which a jump out of it never does: V8 could not run WebAssembly any more.
class KeyRights {
 public:
#if defined(__x86_64__)
  KeyRights() {
    if (hasKeys()) __asm__ volatile(".byte 0x0f, 0x01, 0xee" : "=a"(rights_) : "c"(0) : "rdx");
  }
  void restore() const {
    if (hasKeys()) __asm__ volatile(".byte 0x0f, 0x01, 0xef" : : "a"(rights_), "c"(0), "d"(0) : "memory");
  }

 private:
  static bool hasKeys() {
    static const bool has = [] {
      unsigned a = 0, b = 0, c = 0, d = 0;
      // The system has them switched on (OSPKE).
      return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & (1u << 4)) != 0;
    }();
    return has;
  }
  unsigned rights_ = 0;
#else
  void restore() const {}
#endif
};

struct Copy {
  const uint8_t* from;
  size_t length;
  KeyRights rights;
  sigjmp_buf back;
};

inline thread_local Copy* under = nullptr;
inline struct sigaction before;

inline void caught(int signal, siginfo_t* info, void* context) {
  Copy* copy = under;
  const uint8_t* place = static_cast<const uint8_t*>(info->si_addr);
  // A page may begin before the copy does.
  constexpr size_t kPage = 64 * 1024;
  if (copy != nullptr && place + kPage > copy->from && place < copy->from + copy->length) siglongjmp(copy->back, 1);
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  // No handler is left: the access is repeated, and ends the program as by default.
  sigaction(SIGBUS, &before, nullptr);
}

// Once an addon: in its NAPI_MODULE_INIT.
inline void watch() {
  static const bool watched = [] {
    struct sigaction act = {};
    act.sa_sigaction = caught;
    // Left by a jump, the handler never returns: the signal must not stay blocked.
    act.sa_flags = SA_SIGINFO | SA_NODEFER;
    return sigaction(SIGBUS, &act, &before) == 0;
  }();
  (void)watched;
}

// False where the bytes are not to be had any more. A frame of its own: nothing of the caller's is held in registers over the jump.
[[gnu::noinline]] inline bool copied(char* to, const uint8_t* from, size_t length) {
  if (length == 0) return true;
  Copy copy;
  copy.from = from;
  copy.length = length;
  if (sigsetjmp(copy.back, 0) != 0) {
    copy.rights.restore();
    under = nullptr;
    return false;
  }
  under = &copy;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  memcpy(to, from, length);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  under = nullptr;
  return true;
}

}  // namespace bus
